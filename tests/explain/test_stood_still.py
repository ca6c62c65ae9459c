"""A training that hung until it was stopped: what stopped it is not why it hung."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

START = datetime(2026, 3, 18, 10, 0, 0)  # noqa: DTZ001  (logs have no time zone)
INTERRUPTED = "W0318 {}.000000 4711 torch/distributed/elastic/agent/server/api.py:719] Received 2 death signal, shutting down workers\n"
TERMINATED = "W0318 {}.000000 4711 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM death signal, shutting down workers\n"
LIMIT = "slurmstepd: error: *** JOB 12 ON hosta CANCELLED AT 2026-03-18T{} DUE TO TIME LIMIT ***\n"
WITHOUT_LIMIT = "[INFO] HCCL(4000,python3):2026-03-18-10:00:01.000.000 [externalinput.cc:1060] [4000][HCCL_ENV] HCCL_EXEC_TIMEOUT set by environment to [0]s\n"


def clock(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%H:%M:%S")


def said(command_line: CommandLine, stop: str, *, silence: float, line: str = "step {}/9000 loss 2.1") -> str:
    """Return the answer about two ranks that write each minute for an hour, and are stopped later."""
    folder = command_line.folder / "logs"
    folder.mkdir()
    for rank in range(2):
        lines = [
            f"2026-03-18 {clock(60 * step)} INFO [rank {rank}] {line.format(step)}\n" for step in range(60)
        ]
        (folder / f"rank_{rank}.log").write_text("".join(lines))
    (folder / "torchrun.log").write_text(stop.format(clock(59 * 60 + silence)))
    return command_line("explain", "logs").out


@pytest.mark.parametrize("stop", [INTERRUPTED, TERMINATED, LIMIT])
def test_a_training_that_is_silent_for_hours_before_its_stop(command_line: CommandLine, stop: str) -> None:
    first = said(command_line, stop, silence=7_200).splitlines()[0]
    assert first.startswith(
        "The job hung until it was stopped: the last line of its logs is: 2026-03-18 10:59"
    )
    assert "it was stopped 2 h 0 min after it, at 2026-03-18 12:59:00" in first
    assert "Certain" not in first


@pytest.mark.parametrize(("silence", "hung"), [(1801, True), (1799, False), (60, False)])
def test_a_training_hung_that_is_silent_for_half_an_hour(
    command_line: CommandLine, silence: float, hung: bool
) -> None:
    assert said(command_line, INTERRUPTED, silence=silence).startswith("The job hung") is hung


def test_a_service_that_had_nothing_to_do(command_line: CommandLine) -> None:
    out = said(command_line, INTERRUPTED, silence=7_200, line="GET /health {} 200 OK")
    assert out.startswith("A user interrupted the job with Ctrl-C")


def test_a_time_limit_after_which_nothing_is_reported(command_line: CommandLine) -> None:
    plog = command_line.folder / "logs" / "run" / "plog" / "plog-4000_20260318100001000.log"
    out = said(command_line, INTERRUPTED, silence=7_200)
    assert "HCCL_EXEC_TIMEOUT" not in out.split("What to do")[0]
    plog.parent.mkdir(parents=True)
    plog.write_text(WITHOUT_LIMIT)
    assert "HCCL_EXEC_TIMEOUT is 0" in command_line("explain", "logs").out.split("What to do")[0]
