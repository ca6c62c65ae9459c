"""What HCCL's heartbeat reports of a rank is where to look, not why: its own log and its host say that."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.explain.test_stacks_of_ranks import READ, REDUCE, spied
from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

START = datetime(2026, 3, 18, 10, 0, 0)  # noqa: DTZ001  (logs have no time zone)
STUCK, LOST = "Stuck Occurred", "Heartbeat Lost Occurred"
FULL = "RuntimeError: NPU out of memory. Tried to allocate 3.50 GiB (NPU 0; 60.97 GiB total capacity)"
KILLED = "[Wed Mar 18 10:15:01 2026] Out of memory: Killed process 99123 (python3) total-vm:812345kB\n"
#: The event log of a BMC, of a host that lost its power at the 900th second of the job.
SUPPLY = (
    "  {} | 03/18/2026 | 10:15:{:02} | Power Supply #0x5{} PS{} Status | Power Supply AC lost | Asserted\n"
)
OFF = "  34 | 03/{}/2026 | 10:15:01 | Power Unit #0x01 | Power off/down | Asserted\n"
RESTARTED = "reboot   system boot  5.10.0-136 Wed Mar 18 {}   still running\n"


def moment(at: float, style: str = "%Y-%m-%d %H:%M:%S") -> str:
    return (START + timedelta(seconds=at)).strftime(style)


def job_of(command_line: CommandLine, reported: list[int], exception: str, arrival: float = 930.0) -> Plogs:
    """Return a job of 16 ranks, whose ranks wait until the time limit for those that are reported."""
    job = Plogs(command_line.folder / "logs", 16).start()
    for rank in set(range(16)) - set(reported):
        job.notify(rank, None, 1900)
        for other in reported:
            arrived = moment(arrival, "%a %b %d %H:%M:%S %Y")
            job.error(
                rank, 1901,
                f"[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[{job.host(other)}/{job.device(other)}],"
                f" Arrival Time:[{arrived}], Discoverer:[{job.host(rank)}/{job.device(rank)}], ExceptionType:[{exception}]",
            )  # fmt: skip
    return job


def screen(job: Plogs, rank: int, *lines: tuple[float, str]) -> None:
    path = job.folder / job.host(rank) / f"rank_{rank}.log"
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{moment(at)} {text}\n" for at, text in lines)


def said(command_line: CommandLine) -> str:
    return command_line("explain", "logs").out


def test_a_rank_that_is_reported_and_still_works(command_line: CommandLine) -> None:
    job = job_of(command_line, [8], STUCK)
    screen(
        job,
        8,
        (800, "step 500/9000 loss 2.1"),
        (810, "generating samples: 40%| 205/512"),
        (2400, "eval done"),
    )
    first = said(command_line).splitlines()[0]
    assert first.startswith("Rank 8 (device 0 of 10.0.0.2, address 192.168.1.100): still at work")
    assert "HCCL's heartbeat reports it as stuck, and ranks 0-7,9-15 gave up waiting" in first
    assert "Certain" not in first


def test_a_rank_that_is_reported_and_whose_log_says_nothing(command_line: CommandLine) -> None:
    job = job_of(command_line, [8], STUCK)
    screen(job, 8, (800, "step 500/9000 loss 2.1"))
    out = said(command_line)
    assert out.startswith("Rank 8 (device 0 of 10.0.0.2, address 192.168.1.100): HCCL's heartbeat reports")
    assert "Certain" not in out.splitlines()[0]
    assert "Below it is the last line of its own log (reported by other ranks, which do not know why" in out
    assert "step 500/9000" in out


def test_a_rank_that_is_reported_and_has_an_error_of_its_own(command_line: CommandLine) -> None:
    job = job_of(command_line, [8], STUCK)
    screen(job, 8, (800, "step 500/9000 loss 2.1"), (801, FULL))
    first = said(command_line).splitlines()[0]
    assert "the device has no memory left" in first
    assert "certain: the log says so" in first


def test_two_ranks_of_a_host_that_are_reported_are_one_cause(command_line: CommandLine) -> None:
    job_of(command_line, [8, 9], STUCK)
    out = said(command_line)
    assert out.startswith("Ranks 8-9: HCCL's heartbeat reports")
    assert "also a cause" not in out


@pytest.mark.parametrize("host", ["10.0.0.2", "10.0.0.1"])
def test_a_process_that_ended_on_another_host_than_that_of_a_lost_rank(
    command_line: CommandLine, host: str
) -> None:
    job = job_of(command_line, [8], LOST)
    (job.folder / host / "dmesg.txt").write_text(KILLED)
    first = said(command_line).splitlines()[0]
    assert ("out-of-memory killer" in first) is (host == "10.0.0.2")
    assert "Certain" not in first


def lost_host(command_line: CommandLine, files: dict[str, str], last: float = 899.0) -> str:
    job = job_of(command_line, list(range(8, 16)), LOST)
    for rank in range(16):
        screen(
            job, rank, (800, "step 500/9000 loss 2.1"), (last if rank == 8 else 899.0, "step 520/9000 loss")
        )
    for name, text in files.items():
        (job.folder / name).write_text(text)
    return said(command_line).splitlines()[0]


@pytest.mark.parametrize(
    ("day", "is_cause"), [("18", True), ("17", False)], ids=["at that time", "a day before"]
)
def test_a_host_that_lost_its_power(command_line: CommandLine, day: str, is_cause: bool) -> None:
    first = lost_host(command_line, {"10.0.0.2/sel.txt": OFF.format(day)})
    assert ("the host lost its power" in first) is is_cause
    assert first.startswith("Host 10.0.0.2 (ranks 8-15): ")
    assert "The logs of ranks 8-15 end together at 2026-03-18 10:14:59" in first
    assert "Certain" not in first


@pytest.mark.parametrize("supplies", [1, 2])
def test_power_supplies_that_lost_their_input(command_line: CommandLine, supplies: int) -> None:
    """A host goes on with the second supply."""
    lines = "".join(SUPPLY.format(30 + number, number, number, number) for number in range(1, supplies + 1))
    first = lost_host(command_line, {"10.0.0.2/sel.txt": lines})
    assert ("the host lost its power" in first) is (supplies == 2)


@pytest.mark.parametrize(("time", "is_cause"), [("10:21", True), ("09:20", False)])
def test_a_host_that_started_again(command_line: CommandLine, time: str, is_cause: bool) -> None:
    first = lost_host(command_line, {"10.0.0.2/last.txt": RESTARTED.format(time)})
    assert ("the host started again" in first) is is_cause


@pytest.mark.parametrize(("time", "is_cause"), [("10:15", True), ("09:10", False)])
def test_a_host_that_was_shut_down(command_line: CommandLine, time: str, is_cause: bool) -> None:
    """A planned restart says so, before the line about the start of the system."""
    down = f"shutdown system down  5.10.0-136 Wed Mar 18 {time} - 10:21  (00:06)\n"
    first = lost_host(command_line, {"10.0.0.2/last.txt": RESTARTED.format("10:21") + down})
    assert ("the host was shut down or restarted on purpose" in first) is is_cause


def test_the_files_of_another_host_say_nothing_of_a_lost_one(command_line: CommandLine) -> None:
    assert "lost its power" not in lost_host(command_line, {"10.0.0.1/sel.txt": OFF.format("18")})


def test_the_logs_of_a_lost_host_that_do_not_end_together(command_line: CommandLine) -> None:
    first = lost_host(command_line, {}, last=840.0)
    assert first.startswith("Host 10.0.0.2 (ranks 8-15): HCCL's heartbeat lost the process")
    assert "end together" not in first


@pytest.mark.parametrize(("exception", "causes"), [(STUCK, ["HCM996"]), (LOST, ["HCM996", "HCM343"])])
def test_the_stacks_of_ranks_say_why_a_rank_is_stuck_but_not_why_it_is_lost(
    command_line: CommandLine, exception: str, causes: list[str]
) -> None:
    job = job_of(command_line, [8], exception)
    for rank in range(4):
        frames = READ if rank == 2 else REDUCE
        (job.folder / f"stack_{rank}.txt").write_text(spied(rank, frames))

    found = json.loads(command_line("explain", "logs", "-f", "json").out)["causes"]

    assert [cause["message"] for cause in found] == causes
