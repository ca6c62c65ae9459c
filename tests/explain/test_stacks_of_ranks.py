"""Stacks of py-spy and faulthandler: the rank that is not where the others wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

REDUCE = [
    "wait (threading.py:320)",
    "all_reduce (torch/distributed/distributed_c10d.py:2501)",
    "step (trainer.py:210)",
]
GATHER = ["all_gather (torch/distributed/distributed_c10d.py:2601)", "evaluate (trainer.py:310)"]
READ = ["read (nfs_reader.py:57)", "next_batch (trainer.py:101)"]
SYNC = ["synchronize (torch_npu/npu/utils.py:70)", "step (trainer.py:214)"]


def spied(rank: int, frames: list[str]) -> str:
    shown = "".join(f"    {frame}\n" for frame in frames)
    return (
        f"Process {4000 + rank}: python3 train.py --rank {rank}\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
        f'Thread {4000 + rank} (active): "MainThread"\n{shown}'
        f'Thread {5000 + rank} (idle): "Thread-1"\n    wait (threading.py:324)\n    run (tqdm/_monitor.py:60)\n'
    )


def dumped(frames: list[str]) -> str:
    shown = ""
    for frame in frames:
        name, _, where = frame[:-1].partition(" (")
        path, _, line = where.rpartition(":")
        shown += f'  File "{path}", line {line} in {name}\n'
    return (
        'Timeout (0:10:00)!\nThread 0x0000ffff8a1ff120 (most recent call first):\n  File "threading.py", line 324 in wait\n\n'
        f"Current thread 0x0000ffffa1b2c010 (most recent call first):\n{shown}"
    )


def answer(command_line: CommandLine, files: dict[str, str]) -> str:
    folder = command_line.folder / "logs"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return command_line("explain", "logs").out


@pytest.mark.parametrize(
    ("odd", "usual", "said"),
    [
        (READ, REDUCE, "Rank 2 is in read (nfs_reader.py:57), ranks 0-1,3 wait in all_reduce"),
        (
            GATHER,
            REDUCE,
            "Rank 2 is in all_gather (torch/distributed/distributed_c10d.py:2601), ranks 0-1,3 wait in all_reduce",
        ),
        (READ, SYNC, "Rank 2 is in read (nfs_reader.py:57), ranks 0-1,3 wait in synchronize"),
    ],
)
def test_a_rank_is_elsewhere(command_line: CommandLine, odd: list[str], usual: list[str], said: str) -> None:
    files = {f"rank{rank}.txt": spied(rank, odd if rank == 2 else usual) for rank in range(4)}
    out = answer(command_line, files)
    assert out.startswith("Rank 2: the rank is not in the operation in which the others wait for it.")
    assert said in out
    assert "rank2.txt:5, which rank 2 wrote:\n" in out
    assert "beside it, in logs/rank0.txt" in out


def test_stacks_of_one_file_and_of_faulthandler(command_line: CommandLine) -> None:
    one_file = "\n".join(spied(rank, READ if rank == 1 else REDUCE) for rank in range(3))
    assert "Rank 1 is in read" in answer(command_line, {"stacks.txt": one_file})


def test_stacks_of_faulthandler_at_the_end_of_logs(command_line: CommandLine) -> None:
    files = {f"rank_{rank}.log": "step 1\n" + dumped(READ if rank == 1 else REDUCE) for rank in range(3)}
    assert "Rank 1 is in read (nfs_reader.py:57), ranks 0,2 wait in all_reduce" in answer(command_line, files)


@pytest.mark.parametrize(
    "frames",
    [
        [REDUCE, REDUCE, REDUCE],
        [SYNC, REDUCE, REDUCE],
        [READ, READ, REDUCE],
        [READ, READ, READ],
    ],
)
def test_stacks_that_show_no_rank_elsewhere(command_line: CommandLine, frames: list[list[str]]) -> None:
    files = {f"rank{rank}.txt": spied(rank, one) for rank, one in enumerate(frames)}
    assert answer(command_line, files).startswith("no cause found")


def test_processes_of_which_no_line_says_the_rank(command_line: CommandLine) -> None:
    wait = "    synchronize (torch_npu/npu/utils.py:60)\n    all_reduce (torch/distributed/distributed_c10d.py:2501)\n"
    work = "    readinto (socket.py:705)\n    report (/job/hooks.py:31)\n    main (/job/train.py:9)\n"
    for pid, frames in ((5200, wait), (5201, wait), (5202, work), (5203, wait)):
        text = f'Process {pid}: python3 -u /job/train.py\nPython v3.10.14\n\nThread {pid} (active): "MainThread"\n{frames}'
        command_line.write(f"logs/pyspy_{pid}.txt", text)

    assert "Process 5202 is in report (/job/hooks.py:31), processes 5200, 5201, 5203 wait in" in (
        command_line("explain", "logs").out.replace("process 5202", "Process 5202")
    )
