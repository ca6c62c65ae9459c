"""Errors that did not end a job: exceptions that the program handled, and jobs that ended with exit code 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

TRACEBACK = 'Traceback (most recent call last):\n  File "/code/data.py", line 9, in get\n    x = f(y)\n'
MEGATRON = " iteration       91/    5000 | lm loss: 2.310000E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
STEPS = "step: 7 loss: 1.5\nstep: 8 loss: 1.4\n"


def explained(command_line: CommandLine, **files: str) -> str:
    folder = command_line.folder / "logs"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.log").write_text(text)
    return command_line("explain", "logs").out


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ERROR sample 17 cannot be read, skipping it\n", STEPS),
        ("WARNING: bad record, ignored\n", "12%|#     | 12/100 [00:10<01:00]\n"),
        ("upload failed, retrying in 5 s\n", "2026-03-18 10:00:00 INFO upload done\n"),
        ("", f"WARNING falling back to the slow reader\n{STEPS}"),
    ],
)
def test_an_exception_that_the_program_handled(command_line: CommandLine, before: str, after: str) -> None:
    out = explained(command_line, rank_0=f"{STEPS}{before}{TRACEBACK}ValueError: bad sample\n{after}")

    assert out.startswith("no cause found")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loading sample 17\n", STEPS),
        ("", f"{MEGATRON}{STEPS}"),
        (MEGATRON, f"{MEGATRON}{MEGATRON}"),
        ("", "step: 7 loss: 1.5 skipped: 0 ignored=0\n"),
        ("ERROR sample 17 skipped\n", ""),
        ("upload failed, retrying 5/5\n", STEPS),
        ("retrying\n", f"{TRACEBACK}ValueError: bad sample\n"),
        ("skipping failed, giving up\n", STEPS),
        ("retrying: the number of attempts is exceeded\n", STEPS),
    ],
)
def test_an_exception_that_ended_the_program(command_line: CommandLine, before: str, after: str) -> None:
    out = explained(command_line, rank_0=f"{STEPS}{before}{TRACEBACK}ValueError: bad sample\n{after}")

    assert out.startswith("Rank 0: the program raised an exception: ValueError: bad sample")


DONE = "$ torchrun --nnodes=2 train.py; echo exit code $?\nstep 99/100\nstep 100/100\nTraining finished\n"


@pytest.mark.parametrize(
    "end", ["exit code 0", "Exit status: 0", "process exited with code 0", "torchrun done, rc=0"]
)
def test_a_job_that_ended_well(command_line: CommandLine, end: str) -> None:
    screen = f"{DONE}{TRACEBACK}OSError: closed\n{end}\n"
    out = explained(command_line, node_a=screen, node_b=f"$ torchrun --nnodes=2 train.py\n{end}\n")

    assert out.startswith("The job ended with exit code 0: nothing in these logs ended it. The log says it.")
    assert "errors that did not end it:\n  the program raised an exception" in out
    assert f"| {end}" in out


@pytest.mark.parametrize(
    "screens",
    [
        {
            "node_a": f"{DONE}exit code 0\n",
            "node_b": f"$ torchrun train.py\n{TRACEBACK}ValueError: bad\nexit code 1\n",
        },
        {
            "node_a": f"$ ping host\nexit code 0\n$ torchrun train.py\nstep 3/100\n{TRACEBACK}ValueError: bad\n"
            + "x\n" * 20
        },
        {
            "node_a": f"{DONE}exit code 0\n",
            "node_b": f"torchrun\n{TRACEBACK}ValueError: bad\n  rank      : 3 (local_rank: 3)\n",
        },
        {"node_a": f"$ torchrun train.py\nstep 3/100\n{TRACEBACK}ValueError: bad\nexit code 0\n"},
    ],
)
def test_a_job_that_did_not_end_well(command_line: CommandLine, screens: dict[str, str]) -> None:
    assert "ValueError: bad" in explained(command_line, **screens).splitlines()[0]


HEADER = (
    "[ERROR] MD(17528,ffff,python):2026-03-18-10:33:52.113.403 [task_manager.cc:1] InterruptMaster] Task is terminated with err msg:"
    " Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error Message'.\n"
)
DASHES = "-" * 40 + "\n"
BLOCK = f"{DASHES}- Dataset Pipeline Error Message:\n{DASHES}[ERROR] {{}}\n\n{DASHES}- C++ Call Stack: (For framework developers)\n{DASHES}a.cc(1).\n"


@pytest.mark.parametrize("frames", [0, 1, 4, 30])
@pytest.mark.parametrize(
    "reason",
    [
        "map operation: [Resize] failed. The corresponding data file is: /d/7.png. Resize: the image is empty.",
        "batch operation: [BatchMap] raised an error: the shapes differ",
        "Invalid file, /d/part-3.mindrecord is damaged.",
    ],
)
def test_the_reason_below_the_traceback_of_a_data_pipeline(
    command_line: CommandLine, frames: int, reason: str
) -> None:
    traceback = (
        "Traceback (most recent call last):\n" + '  File "/code/a.py", line 1, in f\n    g()\n' * frames
    )
    raised = (
        "RuntimeError: Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error Message'.\n\n"
    )
    out = explained(command_line, worker_3=f"{STEPS}{HEADER}{traceback}{raised}{BLOCK.format(reason)}")

    assert out.startswith("Rank 3: MindSpore's data pipeline failed")
    assert reason.rstrip(".") in out.splitlines()[0]


def test_the_reason_in_the_line_of_a_data_pipeline(command_line: CommandLine) -> None:
    line = "[ERROR] MD(1,f,python):2026-03-18-10:33:52.113.403 [a.cc:1] Run] map operation: [Pad] failed. The corresponding data file is: /d/7.png.\n"

    assert "/d/7.png" in explained(command_line, worker_3=line).splitlines()[0]


def test_a_data_pipeline_without_a_reason(command_line: CommandLine) -> None:
    out = explained(command_line, worker_3=f"{HEADER}{STEPS}")

    assert out.startswith("Rank 3: MindSpore's data pipeline failed: Exception thrown from dataset pipeline")
