"""Which job a line belongs to: two jobs at the same time, and what came after the last message of a job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jsonschema
import pytest

from hccl_tools.formats.schema import schema_text
from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

SLURM = "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT 2026-03-18T{} DUE TO TIME LIMIT ***\n"
OOM = "[Wed Mar 18 {} 2026] Out of memory: Killed process 4000 (python3) total-vm:812345kB\n"


@dataclass
class Beside(Plogs):
    """Another job on the same host: on devices 4 and on, with other processes."""

    def device(self, rank: int) -> int:
        return 4 + rank


def first_line(command_line: CommandLine) -> str:
    return command_line("explain", "logs").out.splitlines()[0]


def test_two_jobs_that_run_beside_each_other(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    other = Beside(command_line.folder / "logs", 4).start("other")
    other.error(1, 5, f"socket type[0], listen on ip[{other.address(1)}] and specific port[16666] fail.")
    for rank in (0, 1, 2):
        job.notify(rank, None, 1840)
    job.screen(3, "ValueError: bad shape")
    lines = command_line("explain", "logs").out.splitlines()

    assert lines[0].startswith(
        "Rank 3 (device 3 of 10.0.0.1, address 192.168.0.103): the program raised an exception"
    )
    assert "  messages of another job were left out: of process 4005, at 2026-03-18 10:00:05.000" in lines


def test_ranks_of_one_job_in_several_communicators(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    for rank in range(4):
        job.identity(rank, rank % 2, 2, f"tp{rank // 2}")
    job.error(1, 5, f"socket type[0], listen on ip[{job.address(1)}] and specific port[16666] fail.")
    for rank in (0, 2, 3):
        job.no_link(rank, 1, 125)
    lines = command_line("explain", "logs").out.splitlines()

    assert lines[0].startswith("Rank 1 (device 1 of 10.0.0.1")
    assert not [line for line in lines if "another job" in line]


def test_the_time_limit_of_a_job_that_wrote_nothing_for_hours(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(0, "step 40")
    (command_line.folder / "logs" / "slurm-12.out").write_text(SLURM.format("14:00:00"))

    assert first_line(command_line).startswith("The job reached its time limit, at 2026-03-18 14:00:00.")


def test_the_time_limit_of_a_job_of_another_day(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(0, "step 40")
    (command_line.folder / "logs" / "slurm-12.out").write_text(SLURM.format("14:00:00").replace("18T", "20T"))

    assert first_line(command_line).startswith("no cause found")


def test_a_job_lasts_until_its_last_line(command_line: CommandLine) -> None:
    """Its last message is of its start, its last step of 40 minutes later."""
    job = Plogs(command_line.folder / "logs", 2).start()
    (command_line.folder / "logs" / "dmesg.txt").write_text(OOM.format("10:40:10"))
    before = first_line(command_line)
    job.screen(0, "2026-03-18 10:40:00,000 INFO step 900")
    after = first_line(command_line)

    assert before.startswith("no cause found")
    assert after.startswith(
        "Rank 0 (device 0 of 10.0.0.1, address 192.168.0.100): the kernel's out-of-memory killer"
    )


def test_the_log_of_a_later_process_is_no_part_of_the_job(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(0, "2026-03-18 10:01:00,000 INFO step 1")
    (command_line.folder / "logs" / "10.0.0.1" / "debug" / "plog" / "plog-9_1.log").parent.mkdir(parents=True)
    (command_line.folder / "logs" / "10.0.0.1" / "debug" / "plog" / "plog-9_1.log").write_text(
        "[INFO] HCCL(9,python3):2026-03-18-10:40:00.000.000 [x.cc:1] ready\n"
    )
    (command_line.folder / "logs" / "dmesg.txt").write_text(OOM.format("10:40:10"))

    assert first_line(command_line).startswith("no cause found")


@pytest.mark.slow
def test_jobs_that_are_all_rank_0_are_compared_in_linear_time(command_line: CommandLine) -> None:
    """Each of many processes says that it is rank 0 of a job of its own, all at the same moment."""
    line = (
        "[INFO] HCCL({0},python):2026-03-18-10:00:00.000.000 [x.cc:1] [1]SetupAgent rankNum[2], rank[0], rootInfo"
        " identifier[{0}], server[10.0.0.1%eth0], serverPort[60000]deviceType[2], logicDevId[0], phydevId[0],"
        " deviceIp[192.168.0.100]\n"
    )
    command_line.write("logs", "".join(line.format(number) for number in range(1, 3000)))

    assert command_line("explain", "logs").code == 1


def also_seen(command_line: CommandLine) -> list[str]:
    lines = command_line("explain", "logs").out.splitlines()
    return lines[lines.index("also seen:") + 1 :] if "also seen:" in lines else []


def test_a_process_of_another_program_is_also_seen(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.notify(0, None, 1840)
    job.screen(1, "ValueError: bad shape")
    (job.folder / "dmesg.txt").write_text(OOM.format("10:00:10").replace("4000 (python3)", "999 (mysqld)"))

    assert first_line(command_line).startswith("Rank 1 (")
    assert also_seen(command_line) == [
        "  the kernel's out-of-memory killer ended a process (process 999 (mysqld) is not a process of the job)"
    ]
    answer = json.loads(command_line("explain", "logs", "-f", "json").out)
    jsonschema.validate(answer, json.loads(schema_text("explain")))
    assert [one["why"] for one in answer["also_seen"]] == ["process 999 (mysqld) is not a process of the job"]


def test_a_fault_before_the_cause_is_also_seen(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(0, "2026-03-18 10:00:10,000 OSError: [Errno 28] No space left on device: '/cache'")
    job.screen(0, "2026-03-18 10:30:00,000 step 400")
    job.screen(1, "2026-03-18 10:30:10,000 step 400\nValueError: bad shape")

    assert first_line(command_line).startswith("Rank 1 (")
    assert also_seen(command_line) == [
        "  rank 0: a disk is full (earlier than the cause: nothing shows that the job ended because of it)"
    ]


def test_what_follows_the_cause_is_no_other_thing(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.error(1, 5, f"socket type[0], listen on ip[{job.address(1)}] and specific port[16666] fail.")
    job.no_link(0, 1, 125)

    assert also_seen(command_line) == []


def test_a_job_without_a_cause_has_the_faults_of_others(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    (job.folder / "dmesg.txt").write_text(OOM.format("10:00:10").replace("4000 (python3)", "999 (mysqld)"))
    lines = command_line("explain", "logs").out.splitlines()

    assert lines[0].startswith("no cause found in ")
    assert "  also seen:" in lines


#: A screen without steps: most of its lines have no time.
LOADS = (
    "UserWarning: a private function\n" * 300
    + "[2026-03-18 10:00:00] INFO reading /ckpt/iter_0012000\n"
    + "[rank4]: Traceback (most recent call last):\n"
    + "[rank4]: RuntimeError: PytorchStreamReader failed reading zip archive\n"
)


def test_the_kernel_ended_a_process_days_before_the_job_of_a_screen(command_line: CommandLine) -> None:
    command_line.write("logs/train.log", LOADS)
    command_line.write("logs/dmesg.txt", OOM.format("02:00:00").replace("Wed Mar 18", "Mon Mar 16"))
    lines = command_line("explain", "logs").out.splitlines()

    assert lines[0].startswith("Rank 4: the program raised an exception")
    assert any("it is from 2026-03-16 02:00, the job from 2026-03-18 10:00" in line for line in lines)


def test_the_kernel_ended_a_process_while_the_job_of_a_screen_ran(command_line: CommandLine) -> None:
    command_line.write("logs/train.log", LOADS)
    command_line.write("logs/dmesg.txt", OOM.format("10:00:30"))

    assert "out-of-memory killer" in first_line(command_line)


def test_the_logs_of_processes_of_an_earlier_job(command_line: CommandLine) -> None:
    """The later job has a screen with its failure, and no process of it wrote an error."""
    job = Plogs(command_line.folder / "logs", 2).start()
    job.error(1, 60, f"socket type[0], listen on ip[{job.address(1)}] and specific port[16666] fail.")
    command_line.write("logs/train.log", LOADS.replace("03-18", "03-25"))
    lines = command_line("explain", "logs").out.splitlines()

    assert lines[0].startswith("Rank 4: the program raised an exception")
    assert any(line.startswith("  messages of another job were left out") for line in lines)


@pytest.mark.parametrize(("day", "is_over"), [("18", False), ("26", True)])
def test_a_complete_job_beside_the_rotated_log_of_a_failed_one(
    command_line: CommandLine, day: str, *, is_over: bool
) -> None:
    steps = "".join(f"[2026-03-18 09:{minute}:00] step {minute}/59\n" for minute in range(10, 60))
    command_line.write("logs/train.log.1", steps + "Fatal Python error: Segmentation fault\n")
    later = steps.replace("03-18 09", f"03-{day} 10")
    command_line.write(
        "logs/train.log", later + f"[after training is done] datetime: 2026-03-{day} 11:00:00\n"
    )

    assert first_line(command_line).startswith("The job is complete") is is_over
