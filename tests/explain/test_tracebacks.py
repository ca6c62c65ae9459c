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

    assert lines[0].startswith(
        "The process was interrupted (SIGINT). Certain: the log says so. What to do: nothing"
    )


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


DASHES = "-" * 52
BLOCK = "\n{0}\n- {1}\n{0}\n{2}\n"


def blocks(head: str, *titled: tuple[str, str]) -> str:
    """An exception of MindSpore with blocks below it."""
    return f"{STACK}{head}\n" + "".join(BLOCK.format(DASHES, title, text) for title, text in titled)


CALLS = (
    "C++ Call Stack: (For framework developers)",
    "mindspore/ccsrc/minddata/dataset/util/task_manager.cc(222).",
)


@pytest.mark.parametrize("prefix", ["", "[rank3]: ", "3: "])
def test_the_reason_of_a_data_pipeline_is_in_its_block(command_line: CommandLine, prefix: str) -> None:
    text = blocks(
        "RuntimeError: Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error Message'.",
        (
            "Dataset Pipeline Error Message:",
            "[ERROR] map operation: [Decode] failed. The file is: /data/8.JPEG",
        ),
        CALLS,
    )
    first = first_of_screen(command_line, "".join(f"{prefix}{line}\n" for line in text.splitlines()))[0]

    assert "RuntimeError: map operation: [Decode] failed. The file is: /data/8.JPEG" in first
    assert "task_manager" not in first


def test_a_function_of_the_user_in_a_data_pipeline(command_line: CommandLine) -> None:
    stack = 'Traceback (most recent call last):\n  File "/code/data.py", line 44\n    return self.rows[i]\nIndexError: list index 9'
    text = blocks(
        "RuntimeError: Exception thrown from user defined Python function in dataset.",
        ("Python Call Stack:", stack),
        (
            "Dataset Pipeline Error Message:",
            "[ERROR] Execute user Python code failed, check 'Python Call Stack' above.",
        ),
    )

    assert "RuntimeError: IndexError: list index 9" in first_of_screen(command_line, text)[0]


def test_the_message_of_the_device_is_in_a_block_below_others(command_line: CommandLine) -> None:
    text = blocks(
        "RuntimeError: Exec graph failed, kernel_graph_0.",
        (
            "Framework Unexpected Exception Raised:",
            "This exception is caused by framework's unexpected error.",
        ),
        CALLS,
        (
            "Ascend Error Message:",
            "E40021: the input shapes [4,9] and [8,4] do not match.\nTraceBack (most recent call last):",
        ),
    )

    assert "E40021: the input shapes [4,9] and [8,4] do not match." in first_of_screen(command_line, text)[0]


def test_the_place_in_the_network_is_added(command_line: CommandLine) -> None:
    text = blocks(
        "ValueError: For 'MatMul', the dimensions must be equal.",
        (
            "The Traceback of Net Construct Code:",
            "# 0 In file /code/model.py:88\n        y = self.matmul(x)\n            ^",
        ),
        CALLS,
    )

    first = first_of_screen(command_line, text)[0]

    assert "the dimensions must be equal. (in /code/model.py:88)" in first


def test_a_block_of_the_next_exception_is_not_read(command_line: CommandLine) -> None:
    text = (
        f"{STACK}ValueError: bad shape\n"
        + "step\n" * 9
        + blocks("KeyError: 'a'", ("Ascend Error Message:", "E40021: other"))
    )

    assert "E40021" not in first_of_screen(command_line, text)[0]


def test_a_wait_in_a_block_is_no_failure_of_the_program(command_line: CommandLine) -> None:
    text = blocks(
        "RuntimeError: Call aclrtSynchronizeStream failed. The details refer to 'Ascend Error Message'.",
        ("Ascend Error Message:", "EI0002: The wait execution of the Notify register times out."),
    )

    assert "the program raised an exception" not in first_of_screen(command_line, text)[0]


@pytest.mark.parametrize(
    "between",
    [
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ],
)
def test_the_exception_that_followed_is_named_too(command_line: CommandLine, between: str) -> None:
    text = f"{STACK}OSError: [Errno 101] Network is unreachable\n\n{between}\n\n{STACK}OSError: the hub cannot be reached\n"

    first = first_of_screen(command_line, text)[0]

    assert "OSError: [Errno 101] Network is unreachable, and then OSError: the hub cannot be reached" in first


def test_an_exception_after_another_does_not_follow_from_it(command_line: CommandLine) -> None:
    first = first_of_screen(command_line, f"{STACK}OSError: one\n\n{STACK}OSError: two\n")[0]

    assert "two" not in first


def test_a_line_of_the_data_pipeline_without_a_traceback(command_line: CommandLine) -> None:
    line = (
        "[ERROR] MD(17528,ffff,python):2026-03-18-10:33:52.113.403 [task_manager.cc:1] InterruptMaster] Task is terminated with err"
        " msg: Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error Message'.\n"
    )
    block = BLOCK.format(
        DASHES, "Dataset Pipeline Error Message:", "TFReader: file /data/1.tfrecord is broken"
    )

    first = first_of_screen(command_line, line + block)[0]

    assert "MindSpore's data pipeline failed: " in first
    assert "TFReader: file /data/1.tfrecord is broken" in first
