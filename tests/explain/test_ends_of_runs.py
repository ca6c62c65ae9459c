"""``explain`` of a run by its report alone: what to do follows from how the first rank ended."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

RUN = "log/20261128-103732-fccacd30"


def explained(command_line: CommandLine, log: str, first: dict[str, Any] | None) -> str:
    """Return what ``explain`` says of a run of one rank with this log; it left no report without ``first``."""
    host = os.uname().nodename
    ranks = [{"rank": 0, "host": host, "here": True, "argv": ["true"], "log": "rank_0.log"}]
    command_line.write(f"{RUN}/plan.json", {"world_size": 1, "hosts": [host], "processes": ranks})
    command_line.write(f"{RUN}/launcher", f"1\n{host}\n1.0\nlaunch\n1\n")
    command_line.write(f"{RUN}/rank_0.log", log)
    if first is not None:
        found = {"rank": 0, "name": "rank 0", "host": host} | first
        report = {"exit_code": 1, "reason": "rank", "ranks": [], "first_failure": found}
        command_line.write(f"{RUN}/report.json", report)
    done = command_line("explain", "20261128")
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize(
    ("signal", "wanted", "other"),
    [
        ("SIGSEGV", "--faulthandler", "kill -9"),
        ("SIGKILL", "kill -9", "dmesg"),
        ("SIGUSR1", "sent", "kill -9"),
    ],
)
def test_the_advice_is_that_for_the_signal(
    command_line: CommandLine, signal: str, wanted: str, other: str
) -> None:
    first = {"how": f"killed by {signal}", "signal": signal, "killed_by_oom": False}

    shown = explained(command_line, "step 1\n", first)

    assert f"killed by {signal}" in shown
    assert wanted in shown.split("What to do:")[1]
    assert other not in shown


def test_a_kill_that_may_be_the_kernels_is_left_open(command_line: CommandLine) -> None:
    shown = explained(command_line, "step 1\n", {"how": "killed by SIGKILL", "signal": "SIGKILL"})

    assert "if `dmesg` names the process" in shown


@pytest.mark.parametrize(("log", "is_silent"), [("", True), ("step 1\n", False)])
def test_nobody_is_sent_to_an_empty_log(command_line: CommandLine, log: str, is_silent: bool) -> None:
    shown = explained(command_line, log, {"how": "exit code 3"})

    assert ("exit code 3, and its log is empty" in shown) is is_silent
    assert ("look at the end of its log" in shown) is not is_silent


def test_a_launcher_that_was_killed_is_the_cause(command_line: CommandLine) -> None:
    shown = explained(command_line, "step 1\n", None)

    assert "the launcher was killed, and the ranks with it" in shown
    assert "no cause found" not in shown
    assert f"{RUN}/launcher" in shown
