"""What is the cause of this job: ties by process, time and progress; effects, launchers and earlier jobs are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain import explaining, sources
from tests.support.growth import steps

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

CHILD_FAILED = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
WATCHDOG = (
    "[rank{0}]:[E318 10:30:00.123456789 compiler_depend.ts:907] [Rank {0}] Watchdog caught collective operation"
    " timeout: WorkHCCL(SeqNum=42, OpType=ALLGATHER, Timeout(ms)=1800000) ran for 1800087 milliseconds before timing out."
)
OOM = "[ 1234.567890] Out of memory: Killed process {} (python3) total-vm:812345kB"
PORT = (
    "[ERROR] HCCL(4000,python3):2026-03-18-10:00:01.000.000 [x.cc:1] [4000]socket type[2], listen on ip[10.0.0.1]"
    " and specific port[60000] fail. Please check"
)
JOINED = (
    "[INFO] HCCL(4000,python3):2026-03-18-10:00:09.000.000 [op_base.cc:1] [4000]HcclCommInitRootInfo success,"
    " take time [2832416]us, rankNum[2], rank[0], deviceLogicId[0]"
)
KEY_ERROR = "2026-03-18 10:40:00,000 INFO step 300\nKeyError: 'metric'\n"

ENTRY = (
    "[INFO] HCCL({0},python3):2026-03-18-10:{1}:00.000.000 [op_base.cc:1] [{0}]Entry-HcclCommInitRootInfo:ranks[2],"
    " rank[{2}], rootinfo: host ip[10.0.0.1] port[60000] nicDeploy[1] identifier[10.0.0.1%eth0_60000_0_17], deviceLogicId[0]"
)
NO_LINK = (
    "[ERROR] HCCL({0},python3):2026-03-18-10:24:07.000.000 [comm_base.cc:1] [{0}]"
    "   |  192.168.0.{1}({1})   |   192.168.0.{2}({2})   |  server  | no connect |"
)


def begun_and_failed(pid: int, minute: int, rank: int) -> str:
    return f"{ENTRY.format(pid, minute, rank)}\n{NO_LINK.format(pid, 1 - rank, rank)}\n"


CASES = {
    "ranks that began 10 minutes apart and gave up together had met": (
        {
            "10.0.0.1/plog-4000_1.log": begun_and_failed(4000, 10, 0),
            "10.0.0.2/plog-4001_1.log": begun_and_failed(4001, 20, 1),
        },
        "two devices did not connect",
    ),
    "the exception of a launcher is no cause": (
        {"torchrun.log": f"{CHILD_FAILED}\n", "rank_1.log": "[rank1]: ValueError: bad shape\n"},
        "Rank 1: the program raised an exception: ValueError: bad shape.",
    ),
    "a lost connection is an effect of its other end": (
        {
            "rank_0.log": "ConnectionResetError: [Errno 104] Connection reset by peer\n",
            "rank_1.log": "2026-03-18 10:00:00,000 INFO step 1\nValueError: bad shape\n",
        },
        "Rank 1: the program raised an exception: ValueError: bad shape.",
    ),
    "lost connections alone leave the cause open": (
        {
            "rank_0.log": "ConnectionResetError: [Errno 104] Connection reset by peer\n",
            "rank_1.log": "step 1\n",
        },
        (
            "Rank 0: the program lost the connection to another process: ConnectionResetError: [Errno 104] Connection"
            " reset by peer. The other end ended it first (the logs do not show the cause)."
        ),
    ),
    "the exit code of torchrun names the process that the kernel killed": (
        {
            "dmesg.txt": OOM.format(4711) + "\n",
            "torchrun.log": f"{CHILD_FAILED}\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 4711)\n",
            "rank_0.log": "2026-03-18 10:00:00,000 INFO step 1\n[rank0]: received SIGTERM\n",
        },
        "Rank 1: the kernel's out-of-memory killer ended a process. Certain: the log says so.",
    ),
    "a process that no log names may be of another job": (
        {
            "dmesg.txt": OOM.format(4712) + "\n",
            "torchrun.log": f"{CHILD_FAILED}\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 4711)\n",
            "rank_1.log": "2026-03-18 10:00:00,000 INFO step 1\n[rank1]: ValueError: bad shape\n",
        },
        "Rank 1: the program raised an exception: ValueError: bad shape.",
    ),
    "the only rank without a line of the watchdog": (
        {f"rank_{rank}.log": (WATCHDOG.format(rank) if rank != 2 else "step 41") + "\n" for rank in range(4)},
        "Rank 2: silent while other ranks wait: the last line of rank 2 is: step 41. All other ranks report that they waited (this rank reports no error, and others waited for it: look at it first).",
    ),
    "a rank that joined after all has recovered": (
        {"plog-4000_1.log": f"{PORT}\n{JOINED}\n", "rank_1.log": "[rank1]: ValueError: bad shape\n"},
        "Rank 1: the program raised an exception: ValueError: bad shape.",
    ),
    "a rank that did not join has not": (
        {"plog-4000_1.log": f"{PORT}\n", "rank_1.log": "[rank1]: ValueError: bad shape\n"},
        "another process listens on the port of the host that HCCL needs: port 60000",
    ),
    "a job that went on for 40 minutes": (
        {"plog-4000_1.log": f"{PORT}\n", "rank_1.log": KEY_ERROR},
        "Rank 1: the program raised an exception: KeyError: 'metric'.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cause_is_of_this_job(command_line: CommandLine, name: str) -> None:
    files, answer = CASES[name]
    for file, text in files.items():
        (command_line.folder / "logs" / file).parent.mkdir(parents=True, exist_ok=True)
        (command_line.folder / "logs" / file).write_text(text)

    done = command_line("explain", "logs")

    assert answer in done.out.splitlines()[0]


def test_one_failure_of_a_process_is_one_cause(command_line: CommandLine) -> None:
    at = "2026-03-18-10:00:20.137.508"
    command_line.write(
        "rank_6.log",
        f"[CRITICAL] DEVICE(4711,ffff,python):{at} [x.cc:1] Malloc device memory failed, size[1], ret[207001], Device 6\n"
        f"EL0004: [PID: 4711] {at} Failed to allocate memory.\n",
    )

    done = command_line("explain", "rank_6.log")

    assert done.code == 0
    assert "also a cause" not in done.out


def test_a_fault_between_lines_with_times_is_the_cause_of_waits_without_a_year(
    command_line: CommandLine,
) -> None:
    (command_line.folder / "logs").mkdir()
    for rank in range(1, 4):
        (command_line.folder / "logs" / f"rank_{rank}.log").write_text(f"{WATCHDOG.format(rank)}\n")
    (command_line.folder / "logs" / "rank_0.log").write_text(
        "2026-03-18 09:59:00,000 INFO saving\nOSError: [Errno 28] No space left on device: '/data/x'\n"
        "2026-03-18 10:29:59,000 INFO still saving\n"
    )

    done = command_line("explain", "logs")

    assert done.out.startswith("Rank 0: a disk is full. ")


@pytest.mark.slow
def test_processes_are_joined_in_linear_time(tmp_path: Path) -> None:
    def taken(count: int) -> int:
        log = tmp_path / f"{count}.log"
        log.write_text(
            "".join(
                f"[ERROR] HCCL({number + 1},python):2026-03-18-10:{number // 60 % 60:02}:{number % 60:02}.000.000"
                f" [x.cc:1] [1]Rank {number} of node 10.0.0.1 has the same physical device ID {number} as the rank 0.\n"
                for number in range(count)
            )
        )
        found, _ = sources.collect([str(log)])
        return steps(lambda: explaining.explain(found))

    assert taken(2000) < 8 * taken(500)  # the square would be 16
