"""Rows of ``sacct`` say how the job whose logs they fit ended; those of other jobs say nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools import cli
from tests.support.growth import least

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

HEAD = "JobID   JobName  Partition  State  ExitCode  Start  End  NodeList\n"
ROW = "12  train  gpu  {state}  {code}  2026-03-18T{start} 2026-03-18T{end}  n[1-2]\n"
NOISE = "[rank{}]: BrokenPipeError: [Errno 32] Broken pipe\n"


def job(command_line: CommandLine, *, last: str = "training finished\n", end: str = "") -> None:
    """Write the logs of two ranks, which end at 10:59."""
    folder = command_line.folder / "logs"
    folder.mkdir()
    for rank in range(2):
        steps = [f"2026-03-18 10:{step:02}:00 INFO step {step}/60 loss 2.1\n" for step in range(60)]
        (folder / f"rank_{rank}.log").write_text("".join([*steps, last, end.format(rank)]))


def said(command_line: CommandLine, state: str, *, start: str = "09:58:00", end: str = "11:00:30") -> str:
    row = ROW.format(state=state, code="0:0", start=start, end=end)
    (command_line.folder / "logs" / "sacct.txt").write_text(HEAD + row)
    return command_line("explain", "logs").out


@pytest.mark.parametrize(("start", "end"), [("09:58:00", "11:00:30"), ("08:00:00", "09:30:00")])
def test_a_job_that_is_complete_by_slurm(command_line: CommandLine, start: str, end: str) -> None:
    """The row of a job that ended before says nothing of this one."""
    job(command_line, end=NOISE)
    out = said(command_line, "COMPLETED", start=start, end=end)
    assert out.startswith("The job ended with exit code 0") is (end == "11:00:30")


def test_a_job_whose_script_hides_a_failure(command_line: CommandLine) -> None:
    job(command_line, last="[rank0]: ValueError: bad shape\n")
    assert not said(command_line, "COMPLETED").startswith("The job ended with exit code 0")


@pytest.mark.parametrize(
    ("state", "first"),
    [
        ("PREEMPTED", "A job of higher priority took the nodes: Slurm preempted the job"),
        ("TIMEOUT", "The job reached its time limit"),
        ("CANCELLED by 1001", "A user or an administrator cancelled the job (scancel)"),
        ("CANCELLED+", "A user or an administrator cancelled the job (scancel)"),
    ],
)
def test_a_job_that_was_ended_from_outside(command_line: CommandLine, state: str, first: str) -> None:
    job(command_line, last="")
    assert said(command_line, state).startswith(first)


@pytest.mark.parametrize("end", ["11:13:00", "11:16:00"])
def test_a_row_that_ends_long_after_the_logs(command_line: CommandLine, end: str) -> None:
    job(command_line, last="")
    out = said(command_line, "PREEMPTED", end=end)
    assert out.startswith("A job of higher priority") is (end == "11:13:00")


@pytest.mark.parametrize(
    ("device", "first"),
    [(0, "names a device that this host or container does not have"), (4, "a device number does not fit")],
)
def test_a_device_that_a_container_does_not_have(command_line: CommandLine, device: int, first: str) -> None:
    line = f"[ERROR] Set visible device failed, invalid device={device}, input visible devices:4,5,6,7\n"
    command_line.write("screen.txt", line)
    out = command_line("explain", "screen.txt").out
    assert first in out.splitlines()[0]
    assert "counted from 0 (in a container with four devices 0,1,2,3" in out.splitlines()[0]


STEP = "{job}  node1  host1  {state}  0:125  2026-03-18T10:00:00 2026-03-18T10:33:52\n"


def time_of(folder: Path, files: int) -> float:
    """Return the CPU time of an explanation of files with rows of steps that failed."""
    folder.mkdir()
    for rank in range(4):
        (folder / f"rank_{rank}.log").write_text("2026-03-18 10:33:00 RuntimeError: x\n")
    for place in range(files):
        states = ["OUT_OF_ME+", "NODE_FAIL"]
        text = "".join(STEP.format(job=f"{100 + place}.{row}", state=states[row % 2]) for row in range(8))
        (folder / f"sacct_{place}.txt").write_text(f"JobID JobName NodeList State ExitCode Start End\n{text}")
    return least(lambda: cli.run(cli.cli, ("explain", str(folder)), "hccl-tools"))


@pytest.mark.slow
def test_many_files_with_rows_take_linear_time(tmp_path: Path) -> None:
    assert time_of(tmp_path / "many", 1000) < 2.5 * time_of(tmp_path / "few", 500)
