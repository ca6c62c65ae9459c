"""Exceptions whose class is not called Error: the traceback above them says what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

STACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
SPAWN = "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\n"


def first_line(command_line: CommandLine, screen: str) -> str:
    job = Plogs(command_line.folder / "logs", 4).start()
    for rank in (0, 1, 2):
        job.notify(rank, None, 1840)
    job.screen(3, screen)
    return command_line("explain", "logs").out.splitlines()[0]


def first_of_screen(command_line: CommandLine, screen: str) -> list[str]:
    command_line.write("screen.txt", screen)
    return command_line("explain", "screen.txt").out.splitlines()


@pytest.mark.parametrize(
    "raised",
    ["Exception: bad batch", "shards.EmptyShard: shard 3 has no files", "StopIteration", "AssertionError"],
)
def test_a_rank_with_a_traceback_is_not_silent(command_line: CommandLine, raised: str) -> None:
    first = first_line(command_line, STACK + raised)

    assert first.startswith("Rank 3 (")
    assert f"the program raised an exception: {raised}." in first


def test_the_line_is_that_of_the_exception(command_line: CommandLine) -> None:
    lines = first_of_screen(command_line, f"one\n{STACK}queue.Empty\nfive ValueError six\n")

    assert lines[1:3] == ["  in screen.txt:5:", "    | queue.Empty"]


def test_a_traceback_between_lines_of_another_rank(command_line: CommandLine) -> None:
    stack = "".join(f"[rank1]: {line}\n[rank0]: step 4\n" for line in STACK.splitlines())
    lines = first_of_screen(command_line, f"{stack}[rank0]: done\n[rank1]: queue.Empty\n")

    assert lines[0].startswith("Rank 1: the program raised an exception: queue.Empty.")


@pytest.mark.parametrize(
    "text",
    [
        "see the Traceback (most recent call last) above\nEmptyShard: 3\n",  # A sentence about one.
        "EmptyShard: 3\n",  # None above.
        STACK,  # Its last line is missing.
        f"{STACK}step 4 is done, and nothing was raised\n",
    ],
)
def test_what_is_no_traceback(command_line: CommandLine, text: str) -> None:
    assert first_of_screen(command_line, text)[0] == "no cause found in 1 log"


def test_an_interrupt_is_an_end_and_not_a_failure(command_line: CommandLine) -> None:
    lines = first_of_screen(command_line, f"{STACK}KeyboardInterrupt\n")

    assert lines[0].startswith("The process was interrupted (SIGINT). The log names it. What to do: nothing")


def test_a_message_with_a_meaning_of_its_own_keeps_it(command_line: CommandLine) -> None:
    lines = first_of_screen(command_line, f"{STACK}ModuleNotFoundError: No module named 'te'\n")

    assert "raised an exception" not in lines[0]


@pytest.mark.parametrize(
    "raised",
    [
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15",
        "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL",
    ],
)
def test_the_exception_of_a_launcher_is_no_cause(command_line: CommandLine, raised: str) -> None:
    assert "the program raised" not in first_of_screen(command_line, f"{STACK}{raised}\n")[0]


def test_the_exception_that_a_launcher_repeats_is_one(command_line: CommandLine) -> None:
    lines = first_of_screen(command_line, f"{STACK}{SPAWN}{STACK}ValueError: bad shape\n")

    assert lines[0].startswith("The program raised an exception: ValueError: bad shape.")


def test_very_many_tracebacks_take_little_time_each(command_line: CommandLine) -> None:
    """Tracebacks without an end are looked for in a number of lines, and in the first ones of a log."""
    lines = first_of_screen(command_line, f"{STACK}queue.Empty\n" + STACK * 5000)

    assert "queue.Empty" in lines[0]
