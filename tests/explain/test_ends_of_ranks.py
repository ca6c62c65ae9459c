"""How ranks ended: by a signal, by their user, with a host; and who is odd among equals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain import candidates, cluster, sources, verdicts
from hccl_tools.explain.locations import Places
from hccl_tools.explain.scanning import scans
from tests.support.growth import steps
from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

TORCHRUN = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Root Cause (first observed failure):
[0]:
  time      : 2026-03-18_10:20:25
  rank      : {rank} (local_rank: {rank})
  exitcode  : -{number} (pid: {pid})
  traceback : Signal {number} ({name}) received by PID {pid}
"""
TLS = (
    'Value Disable for config "tls" is invalid. Current status : rankList for enabled tls:[10.0.0.1/3]; '
    "rankList for disabled tls:[{}]; rankList for query failure tls:"
)


def answer(command_line: CommandLine) -> list[str]:
    return command_line("explain", "logs").out.splitlines()


def lost(job: Plogs, rank: int, peer: int, at: float) -> None:
    """A rank writes that the heartbeat of another one was lost."""
    where = f"[{job.host(peer)}/{job.device(peer)}]"
    job.error(
        rank, at,
        f"[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:{where}, "
        "Arrival Time:[Wed Mar 18 10:20:40 2026], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1.",
    )  # fmt: skip


def test_a_signal_that_torchrun_names_is_the_cause(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    (job.folder / "torchrun.log").write_text(TORCHRUN.format(rank=3, number=9, name="SIGKILL", pid=4003))

    lines = answer(command_line)

    assert lines[0].startswith(
        "Rank 3 (device 3 of 10.0.0.1, address 192.168.0.103): a signal ended the rank"
    )
    assert "signal SIGKILL" in lines[0]
    assert not any("the job from" in line for line in lines)


def test_a_lost_heartbeat_has_the_signal_for_its_cause(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 8, 4).start()
    text = TORCHRUN.format(rank=5, number=11, name="SIGSEGV", pid=4001)
    sent = "".join(f"W0318 Sending process {4000 + device} closing signal SIGTERM\n" for device in (0, 2, 3))
    (job.folder / job.host(5) / "torchrun.log").write_text(sent + text)
    for rank in range(4):
        for peer in (4, 5, 6):
            lost(job, rank, peer, 1300.0)

    lines = answer(command_line)

    assert lines[0].startswith(
        "Rank 5 (device 1 of 10.0.0.2, address 192.168.1.101): a signal ended the rank"
    )
    assert "SIGSEGV" in lines[0]
    assert "also a cause:" not in lines


GONE = "[rank{rank}]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:40100\n"
STEP = "[rank{rank}]: 2026-03-18 {time},000 [INFO] step 400\n"


@pytest.mark.parametrize(
    ("gone", "number", "name", "time", "is_cause"),
    [
        ((0, 1, 3), 9, "SIGKILL", "10:20:03", True),
        ((0, 1, 3), 11, "SIGSEGV", "10:20:03", True),
        ((0, 1, 3), 6, "SIGABRT", "10:20:03", False),  # A library aborts when its connection is lost.
        ((2,), 9, "SIGKILL", "10:20:03", False),  # Its own connection was lost before.
        ((0, 1, 3), 9, "SIGKILL", "10:19:26", True),
        ((0, 1, 3), 9, "SIGKILL", "10:19:22", False),  # It was killed long after the others had lost theirs.
    ],
)
def test_ranks_that_lose_the_connection_to_a_killed_one(
    command_line: CommandLine, gone: tuple[int, ...], number: int, name: str, time: str, *, is_cause: bool
) -> None:
    lines = "".join(STEP.format(rank=rank, time=time) for rank in range(4))
    lines += "".join(GONE.format(rank=rank) for rank in gone)
    lines += STEP.format(rank=1, time=time)
    (command_line.folder / "logs").mkdir()
    end = TORCHRUN.format(rank=2, number=number, name=name, pid=4110)
    (command_line.folder / "logs" / "screen.log").write_text(lines + end)

    first = answer(command_line)[0]

    assert first.startswith(f"Rank 2: a signal ended the rank: signal {name}") is is_cause


def test_a_job_that_its_user_stopped(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(0, "KeyboardInterrupt")

    done = command_line("explain", "logs")

    assert done.out.startswith("Rank 0") or done.out.startswith("The process was interrupted (SIGINT)")
    assert "if a user pressed Ctrl-C" in done.out.splitlines()[0]


def test_an_exception_is_not_hidden_by_the_interrupt_that_followed(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(1, "ValueError: bad shape")
    job.screen(0, "KeyboardInterrupt")

    assert answer(command_line)[0].startswith(
        "Rank 1 (device 1 of 10.0.0.1, address 192.168.0.101): the program"
    )


def test_the_device_whose_switch_differs_is_named(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 8).start()
    off = ", ".join(f"10.0.0.1/{device}" for device in range(8) if device != 3)
    for rank in range(8):
        job.error(rank, 2.0, TLS.format(off))

    lines = answer(command_line)

    assert lines[0].startswith("Rank 3 (device 3 of 10.0.0.1, address 192.168.0.103): the TLS switch")
    assert "It is on for 10.0.0.1/3, and off for 7 others (certain: the log says so)" in lines[0]
    assert not any("TLS" in line for line in lines[3:])


def test_a_host_that_vanished_is_named_with_all_its_ranks(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 8, 4).start()
    for rank in range(4):
        lost(job, rank, 5, 1300.0)
        job.notify(rank, 5, 1840.0)

    lines = answer(command_line)

    assert lines[0].startswith("Host 10.0.0.2 (ranks 4-7): HCCL's heartbeat lost the process")


def test_a_lost_rank_beside_ranks_that_report_is_named_alone(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 8, 4).start()
    for rank in (0, 1, 2, 3, 4, 6, 7):
        lost(job, rank, 5, 1300.0)
        job.notify(rank, 5, 1840.0)

    assert answer(command_line)[0].startswith("Rank 5 (device 1 of 10.0.0.2, address 192.168.1.101): HCCL's")


def broken(job: Plogs, rank: int, peer: int, at: float) -> None:
    """A rank writes that an operation to the device of another one failed, and who HCCL takes for the culprit."""
    ends = [
        f"{{server[{job.host(one)}],deviceId[{job.device(one)}],deviceIp[{job.address(one)}]}}"
        for one in (rank, peer)
    ]
    job.error(
        rank, at,
        f"[TaskExecStage][HeartbeatAbnormal][ROCE CQE ERROR]cqe error status[12], time:[2026-03-18 10:10:00.0],"
        f"localInfo{ends[0]}, remoteIP{ends[1]}",
    )  # fmt: skip


def test_a_link_that_two_ranks_blame_is_that_of_their_peer(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 6, 2).start()
    broken(job, 0, 4, 600.0)
    broken(job, 2, 4, 600.1)
    where = f"[{job.host(0)}/{job.device(0)}]"
    for rank in range(6):
        job.error(
            rank, 1300.0,
            f"[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:{where}, "
            "Arrival Time:[Wed Mar 18 10:10:40 2026], ExceptionType:[Error cqe Occurred], Possible Reason:1.",
        )  # fmt: skip

    lines = answer(command_line)

    assert lines[0].startswith(
        "Rank 4 (device 0 of 10.0.0.3, address 192.168.2.100): the network between two devices"
    )
    assert "2 ranks report errors of their connection to it" in lines[0]


@pytest.mark.parametrize(("code", "blamed"), [("507057", False), ("507055", False), ("507035", True)])
def test_a_code_for_the_other_end_is_no_fault_of_the_device(
    command_line: CommandLine, code: str, blamed: bool
) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    broken(job, 0, 2, 600.0)
    broken(job, 2, 0, 600.1)
    job.screen(2, f"RuntimeError: npuSynchronizeDevice: NPU function error, error code is {code}")

    line = answer(command_line)[0]

    assert ("the network between two devices failed" not in line) == blamed


@pytest.mark.slow
def test_as_many_verdicts_as_ranks_are_joined_in_linear_time(tmp_path: Path) -> None:
    def taken(ranks: int) -> int:
        job = Plogs(tmp_path / str(ranks), ranks).start()
        for rank in range(ranks):
            broken(job, rank, (rank + 1) % ranks, 600.0)
            lost(job, rank, (rank + 1) % ranks, 1300.0)
        found, _ = sources.collect([str(job.folder)])
        scanned = list(scans(found, (), None))
        events = [event for scan in scanned for event in scan.events]
        case = candidates.of(cluster.build(events, found, Places()), (), ())
        assert len(verdicts.causes(case)) == ranks
        return steps(lambda: verdicts.causes(case))

    assert taken(800) < 8 * taken(200)  # the square would be 16


def test_a_process_that_the_kernel_blocks_explains_a_rank_that_is_stuck(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 8, 4).start()
    for rank in (0, 1, 2, 3, 4, 6, 7):
        lost(job, rank, 5, 1300.0)
    kernel = job.folder / job.host(5) / "dmesg.txt"
    kernel.write_text(
        "[Wed Mar 18 10:05:00 2026] INFO: task python3:4001 blocked for more than 120 seconds.\n"
        "[Wed Mar 18 10:07:00 2026] INFO: task python3:4001 blocked for more than 240 seconds.\n"
        "[Wed Mar 18 10:30:00 2026] eth0: link is up\n"
    )

    lines = answer(command_line)

    assert lines[0].startswith(
        "Rank 5 (device 1 of 10.0.0.2, address 192.168.1.101): a process waits in the kernel"
    )


def test_the_original_exception_of_a_worker_is_shown(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(
        1,
        "Traceback (most recent call last):\n"
        '  File "train.py", line 1, in <module>\n'
        "OSError: Caught OSError in DataLoader worker process 5.\n"
        "Original Traceback (most recent call last):\n"
        '  File "loader.py", line 3, in get\n'
        "OSError: cannot identify image file '/data/1.jpg'\n",
    )

    assert "OSError: cannot identify image file '/data/1.jpg'" in answer(command_line)[0]


def test_ranks_that_fail_with_the_same_words_are_named_together(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 8, 4).start()
    for rank in (4, 5, 6, 7):
        job.screen(rank, "ModuleNotFoundError: No module named 'webdataset'")
    for rank in range(4):
        job.no_link(rank, rank + 4, 200.0)

    assert answer(command_line)[0].startswith("Host 10.0.0.2 (ranks 4-7): Python does not find a module")


def test_a_rank_that_fails_with_other_words_is_named_alone(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    job.screen(1, "FileNotFoundError: /data/1")
    job.screen(2, "FileNotFoundError: /data/2")

    assert answer(command_line)[0].startswith("Rank 1 ")


def of_one_host(job: Plogs) -> None:
    """The ranks of the first host write that the heartbeat of a device without logs was lost."""
    for rank in range(4):
        lost(job, rank, 5, 1300.0)


def test_a_container_that_ended_explains_the_only_lost_device(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 4).start()
    of_one_host(job)
    (job.folder / "describe.txt").write_text("    Last State:   Terminated\n      Reason:     OOMKilled\n")

    lines = answer(command_line)

    assert lines[0].startswith("Device 1 of 10.0.0.2: a container reached its memory limit")
    assert "HCCL's heartbeat lost device 1 of 10.0.0.2 then" in lines[0]
    assert "(inferred from the order in time)" in lines[0]


def test_two_ends_in_two_logs_explain_no_lost_device(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 4).start()
    of_one_host(job)
    (job.folder / "describe.txt").write_text("      Reason:     OOMKilled\n")
    (job.folder / "train.txt").write_text("line 3:  4711 Segmentation fault (core dumped) python3 a.py\n")

    assert "HCCL's heartbeat lost the process" in answer(command_line)[0]


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("RuntimeError: Error(s) in loading state_dict for Net:", "\tsize mismatch for w: [4] and [8]"),
        ("pydantic.ValidationError: 1 validation error for Config", "  Value error, 28 by 8"),
    ],
)
def test_the_reason_below_the_head_of_an_exception_is_shown(
    command_line: CommandLine, head: str, reason: str
) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(1, f"{head}\n{reason}\nmore")

    line = answer(command_line)[0]

    assert f"{head} {reason.strip()}" in line
    assert "more" not in line


def test_an_exception_with_its_reason_has_no_next_line(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(1, "ValueError: bad shape\nstep 7 follows")

    assert "step 7" not in answer(command_line)[0]


class InFolders(Plogs):
    """A job whose lines do not say which host wrote them: only the folders do."""

    def host(self, rank: int) -> str:
        return f"host-{rank // self.per_host}"

    def begin(self, late: int) -> None:
        """Let the ranks begin, and all give up but one, which is late."""
        for rank in range(self.ranks):
            at = 300.0 if rank == late else 1.0 + 0.1 * rank
            self.run(
                rank, at,
                f"Entry-HcclCommInitRootInfoInner:ranks[{self.ranks}], rank[{rank}], rootinfo: host ip[10.0.0.1] "
                f"port[60000] nicDeploy[1] identifier[10.0.0.1%eth0_60000_0_17], deviceLogicId[{self.device(rank)}]",
            )  # fmt: skip
            if rank != late:
                self.error(
                    rank,
                    at + 125,
                    "[Wait][LinkEstablish]wait socket establish timeout, role[1] rank[0] timeout[120 s]",
                )


def test_folders_of_hosts_without_names_have_their_clocks(command_line: CommandLine) -> None:
    InFolders(command_line.folder / "logs", 8, 4, clocks={1: -8 * 3600.0}).begin(late=5)

    lines = answer(command_line)

    assert lines[0].startswith("Rank 5 (host host-1): the rank came later")
    assert "It began 299" in lines[0]
    assert any("another time zone" in line for line in lines)
