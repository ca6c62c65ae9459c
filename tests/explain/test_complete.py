"""A log that says at its end that the job is complete: failures before it did not end it, unless they may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

FAILED = "Traceback (most recent call last):\n  File \"a.py\", line 5, in <module>\n    load()\nFileNotFoundError: [Errno 2] No such file or directory: 'a.yaml'\n"
FIRST_RUN = f"2026-03-17 22:01:00,100 INFO start run_a\n{FAILED}"
COMPLETE = "The job is complete"


def steps(count: int, minute: int = 33) -> str:
    return "".join(
        f"2026-03-18 10:{minute + at // 60}:{at % 60:02},100 INFO step {at}/100 loss 2.1\n"
        for at in range(count)
    )


def write(command_line: CommandLine, name: str, text: str) -> None:
    path = command_line.folder / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def first(command_line: CommandLine) -> str:
    return command_line("explain", "logs").out.splitlines()[0]


@pytest.mark.parametrize(
    "line",
    [
        "Training completed successfully",
        "[after training is done] datetime: 2026-03-18 10:40:12",
        "- INFO - .........Training Over!.............",
        "training finished, total time 3012 s",
        "Finished training.",
        "run completed successfully",
    ],
)
def test_an_earlier_run_in_the_log_of_a_complete_one(command_line: CommandLine, line: str) -> None:
    write(command_line, "rank_0.log", f"{FIRST_RUN}{steps(90)}{line}\nsaved the log\n")
    out = command_line("explain", "logs").out
    assert out.startswith(COMPLETE)
    assert line in out
    assert "errors that did not end it:\n  rank 0: the program raised an exception" in out


@pytest.mark.parametrize(
    "end",
    [
        f"Training completed successfully\n{FAILED}",
        "Training not completed successfully\n",
        "training failed before run completed successfully\n",
        "training finished phase 1\n",
        "",
    ],
)
def test_a_log_that_does_not_say_so(command_line: CommandLine, end: str) -> None:
    write(command_line, "rank_0.log", f"{FIRST_RUN}{steps(90)}{end}")
    assert not first(command_line).startswith(COMPLETE)


def test_an_exception_just_before_the_end_may_have_ended_a_rank(command_line: CommandLine) -> None:
    write(command_line, "train.log", f"{steps(90)}{FAILED}Training completed successfully\n")
    assert first(command_line).startswith("The program raised an exception")


def test_a_rank_that_failed_in_the_same_hours(command_line: CommandLine) -> None:
    write(command_line, "rank_0.log", f"{steps(90)}Training completed successfully\n")
    write(command_line, "rank_1.log", f"{steps(20)}{FAILED}")
    assert first(command_line).startswith("Rank 1: the program raised an exception")


def test_a_rank_that_does_not_say_that_it_is_complete(command_line: CommandLine) -> None:
    write(command_line, "rank_0.log", f"{steps(90)}Training completed successfully\n")
    write(command_line, "rank_1.log", steps(20))
    assert first(command_line).startswith("no cause found")


def test_the_logs_of_an_earlier_job_beside_a_complete_one(command_line: CommandLine) -> None:
    write(command_line, "train.log", f"{steps(90)}[after training is done] datetime: 2026-03-18 10:40:12\n")
    old = "[ERROR] HCCL(9912,python3):2026-03-15-01:10:11.100.200 [transport.cc:99] [9920][InitChannelStage][Timeout]wait socket establish timeout, role[0] rank[1] timeout[120]\n"
    write(command_line, "debug/plog/plog-9912_20260315011000000.log", old)
    assert first(command_line).startswith(COMPLETE)
    write(
        command_line, "debug/plog/plog-9912_20260315011000000.log", old.replace("03-15-01:10", "03-18-10:32")
    )
    assert not first(command_line).startswith(COMPLETE)


OLD = "[ERROR] HCCL(9912,python3):{}-01:10:11.100.200 [transport.cc:99] [9920][InitChannelStage][Timeout]wait socket establish timeout, role[0] rank[1] timeout[120]\n"


@pytest.mark.parametrize(("day", "says"), [("2026-03-15", True), ("2026-03-18", False)])
def test_a_failure_long_before_a_log_without_one(command_line: CommandLine, day: str, says: bool) -> None:
    write(command_line, "train.log", steps(90))
    write(command_line, "debug/plog/plog-9912_20260315011000000.log", OLD.format(day))
    said = "It may be of an earlier job: logs/train.log, from 2026-03-18 10:34, has no failure (the logs do not show the cause)"
    assert (said in first(command_line)) is says


def test_an_exception_after_which_the_log_goes_on_is_not_certain(command_line: CommandLine) -> None:
    write(command_line, "rank_0.log", f"{FIRST_RUN}{steps(90)}")
    assert "Its log goes on for 89 s after it (the logs do not show the cause)" in first(command_line)
