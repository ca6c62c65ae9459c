"""Jobs that their launchers started again: only a failure of the last attempt is the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.log_folders import explained

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

#: With a process id, so that these lines show when the job ran; the lines of the later attempts have none.
REFUSED = (
    "[rank2]: EI0006: [PID: 4102] 2026-03-18-09:00:41.113.403 Getting socket times out. Reason: Remote Rank did"
    " not send the data in time.\n"
)
MEMORY = (
    "[rank5]: RuntimeError: NPU out of memory. Tried to allocate 3.00 GiB (NPU 5; 29.50 GiB total capacity)\n"
)
NO_KEY = (
    "[rank1]: Traceback (most recent call last):\n"
    '[rank1]:   File "tune.py", line 71, in <module>\n'
    "[rank1]: KeyError: 'lm_head.bias'\n"
)
TORCHRUN = "[2026-03-18 {}:00,213] torch.distributed.elastic.agent.server.api: [INFO] [default] Worker group FAILED. {}/3 attempts left; will restart worker group\n"
RENDEZVOUS = "  restart_count={1}\n"
LAUNCH = "hccl-tools: 2026-03-18 {}:00 restart {} of 3: starting all ranks again\n"
FIRST = "Rank 1: the program raised an exception: KeyError: 'lm_head.bias'"


@pytest.mark.parametrize("again", [TORCHRUN, RENDEZVOUS, LAUNCH])
def test_the_last_of_three_attempts(command_line: CommandLine, again: str) -> None:
    """Whatever the earlier ones show, with the times and processes that the last one does not have."""
    log = REFUSED + again.format("09:01", 1) + MEMORY + again.format("11:40", 2) + NO_KEY
    out = explained(command_line, {"screen.log": log})
    assert out.startswith(FIRST)
    consequences, _, also = out.partition("also seen:")
    assert "no memory left" not in consequences
    assert "rank 5: the device has no memory left (its launcher started all ranks again after it)" in also


def test_the_same_lines_without_a_restart(command_line: CommandLine) -> None:
    out = explained(command_line, {"screen.log": REFUSED + MEMORY + NO_KEY})
    assert out.startswith("Rank 5: the device has no memory left")


@pytest.mark.parametrize("again", [TORCHRUN, LAUNCH])
def test_nothing_fails_after_a_restart(command_line: CommandLine, again: str) -> None:
    """The job may go on: what ended an attempt is named, but not as what ended the job."""
    out = explained(command_line, {"screen.log": MEMORY + again.format("09:01", 1)})
    first = out.splitlines()[0]
    assert first.startswith("Rank 5: the device has no memory left")
    assert "certain" not in first.lower()
    assert "ts launcher started all ranks again after it, and these logs have no later failure" in first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("elastic_x1/attempt_0/5/stderr.log", "elastic_x1/attempt_1/1/stderr.log"),
        ("rank_5.log", "rank_1.restart_1.log"),
        ("workerlog.5", "workerlog.1.restart_1"),
    ],
)
def test_logs_of_which_the_names_have_the_attempt(command_line: CommandLine, before: str, after: str) -> None:
    texts = MEMORY.replace("[rank5]: ", ""), NO_KEY.replace("[rank1]: ", "")
    out = explained(command_line, {before: texts[0], after: texts[1]})
    assert "he program raised an exception: KeyError: 'lm_head.bias'" in out.splitlines()[0]
    assert "(its launcher started all ranks again after it)" in out.partition("also seen:")[2]


def test_a_log_of_another_kind_has_no_attempt(command_line: CommandLine) -> None:
    """The screen of the launcher is of all attempts, although it has no number."""
    files = {
        "rank_1.log": "step 1\n",
        "rank_1.restart_1.log": "step 2\n",
        "screen.log": MEMORY,
    }
    assert explained(command_line, files).startswith("Rank 5: the device has no memory left. Certain")


def test_the_screens_of_two_pods_that_follow_each_other(command_line: CommandLine) -> None:
    """The restart in the part of the second pod is below the failure of the first one, and not after it."""
    blocks = ""
    for pod, failure in (("w-0", NO_KEY), ("w-1", "")):
        lines = TORCHRUN.format("09:01", 2) + failure
        blocks += "".join(f"[pod/{pod}/main] {line}\n" for line in lines.splitlines())
    first = explained(command_line, {"screen.log": blocks}).splitlines()[0]
    assert "KeyError: 'lm_head.bias'" in first
    assert "started all ranks again" not in first


def test_the_log_of_a_process_of_an_earlier_attempt(command_line: CommandLine) -> None:
    plog = "[ERROR] RUNTIME(4102,python3):2026-03-18-09:00:41.113.403 [a.cc:1] [4102]HBM MULTI BIT ECC, Uncorrectable ECC, device_id=2, event_id=0x80e01801,\n"
    out = explained(
        command_line, {"plog-4102_1.log": plog, "screen.log": TORCHRUN.format("09:01", 2) + NO_KEY}
    )
    assert out.startswith(FIRST)
