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


def process(pid: int, frames: list[str], command: str = "python3 train.py") -> str:
    """Return a dump of py-spy in which the main thread is the last one."""
    shown = "".join(f"    {frame}\n" for frame in frames)
    return (
        f"Process {pid}: {command}\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
        f'Thread {pid + 5000} (idle): "Thread-1"\n    wait (threading.py:324)\n    run (tqdm/_monitor.py:60)\n'
        f'Thread {pid} (active): "MainThread"\n{shown}'
    )


HEADERS = [
    "===== rank {} (host node0) =====",
    "--- rank {} ---",
    "# Rank {}:",
    "rank {}:",
    "==> stacks/pyspy_rank{}.txt <==",
    "=== node1: rank {} pid 4711 ===",
    "##### [rank {}] #####",
    "=== RANK {} (local rank 0) ===",
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("name", ["all.txt", "stacks_rank0-7.txt"])
def test_one_file_with_a_header_for_each_rank(command_line: CommandLine, header: str, name: str) -> None:
    """Local ranks repeat on two hosts, and so may process ids."""
    local = "python3 -u train.py --local-rank={}"
    text = "\n".join(
        f"{header.format(rank)}\n{process(7000 + rank % 4, READ if rank == 6 else REDUCE, local.format(rank % 4))}"
        for rank in range(8)
    )

    assert "Rank 6 is in read (nfs_reader.py:57), ranks 0-5,7 wait in all_reduce" in answer(
        command_line, {name: text}
    )


def test_headers_before_dumps_of_faulthandler(command_line: CommandLine) -> None:
    text = "".join(f"--- rank {rank} ---\n{dumped(READ if rank == 2 else REDUCE)}\n" for rank in range(4))
    assert "Rank 2 is in read (nfs_reader.py:57), ranks 0-1,3 wait in" in answer(
        command_line, {"a.txt": text}
    )


def test_a_file_with_the_stacks_of_many_ranks_is_read_from_its_beginning(command_line: CommandLine) -> None:
    frames = [f"call_{number} (model/layer_{number}.py:{number})" for number in range(90)]
    text = "".join(
        f"=== rank {rank} ===\n{process(7000 + rank, [*(READ if rank == 1 else REDUCE), *frames])}"
        for rank in range(64)
    )
    assert len(text) > 3 * (1 << 16)
    assert "Rank 1 is in read (nfs_reader.py:57), ranks 0,2-63 wait in" in answer(
        command_line, {"a.txt": text}
    )


def test_the_children_below_a_header_are_not_the_rank(command_line: CommandLine) -> None:
    worker = ["wait (multiprocessing/popen_fork.py:40)", "_worker_loop (worker.py:275)"]
    text = "".join(
        f"=== rank {rank} ===\n{process(7000 + 10 * rank, READ if rank == 1 else REDUCE)}"
        f"{process(7001 + 10 * rank, worker)}"
        for rank in range(3)
    )
    out = answer(command_line, {"a.txt": text})
    assert "Rank 1 is in read (nfs_reader.py:57), ranks 0,2 wait in all_reduce" in out
    assert "worker_loop" not in out


def test_the_main_thread_at_the_end_of_a_process_is_not_of_the_next_one(command_line: CommandLine) -> None:
    command = "python3 train.py --rank {}"
    text = "".join(
        process(7000 + rank, READ if rank == 1 else REDUCE, command.format(rank)) for rank in range(4)
    )
    assert "Rank 1 is in read (nfs_reader.py:57), ranks 0,2-3 wait in" in answer(
        command_line, {"a.txt": text}
    )


@pytest.mark.parametrize("option", ["--local-rank=", "--local_rank ", "--node-rank="])
def test_the_local_rank_in_a_command_is_no_rank(command_line: CommandLine, option: str) -> None:
    files = {
        f"pyspy_rank{rank}.txt": process(
            100 + rank, READ if rank == 1 else REDUCE, f"python3 train.py {option}{rank % 2}"
        )
        for rank in range(4)
    }
    assert "Rank 1 is in read (nfs_reader.py:57), ranks 0,2-3 wait in all_reduce" in answer(
        command_line, files
    )


def test_processes_of_two_hosts_with_one_id(command_line: CommandLine) -> None:
    files = {
        f"node{host}.txt": "".join(
            process(100 + one, READ if (host, one) == (0, 1) else REDUCE, f"python3 t.py --local-rank={one}")
            for one in range(2)
        )
        for host in range(2)
    }
    out = answer(command_line, files)
    assert "Process 101 is in read (nfs_reader.py:57)" in out
    assert "100 in logs/node1.txt, 101 in logs/node1.txt wait in all_reduce" in out


@pytest.mark.parametrize(
    "line",
    ["rank 1 finished step 200", "- rank 1 is slow", "=== local rank 1 ===", "[rank1]: step 7", "--rank=1"],
)
def test_lines_of_a_log_are_no_headers(command_line: CommandLine, line: str) -> None:
    files = {
        f"rank_{rank}.log": f"rank 2 finished\n{line}\n" + dumped(READ if rank == 3 else REDUCE)
        for rank in range(4)
    }
    assert "Rank 3 is in read (nfs_reader.py:57), ranks 0-2 wait in" in answer(command_line, files)


HELPER = """\
Current thread 0x00007f6dcaf296c0 (most recent call first):
  File "/job/train.py", line 19 in dump
  File "/usr/lib/python3.11/threading.py", line 982 in run
  File "/usr/lib/python3.11/threading.py", line 1045 in _bootstrap_inner
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

"""
MAIN = """\
{kind} 0x00007f6decde2b80 (most recent call first):
  File "{file}", line 5 in {name}
  File "/job/train.py", line 11 in main_loop
  File "/usr/lib/python3.11/multiprocessing/process.py", line 314 in _bootstrap
  File "<string>", line 1 in <module>
"""
SHARED = ("/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "all_reduce")


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        (HELPER, "Thread"),
        (HELPER.replace("Current thread", "Thread"), "Current thread"),
        ("", "Current thread"),
    ],
)
def test_a_helper_that_writes_the_dump_is_not_the_main_thread(
    command_line: CommandLine, before: str, kind: str
) -> None:
    files = {}
    for rank in range(4):
        file, name = ("/job/train.py", "read_batch") if rank == 2 else SHARED
        files[f"stack_rank{rank}.txt"] = before + MAIN.format(kind=kind, file=file, name=name)

    assert "Rank 2 is in read_batch (/job/train.py:5), ranks 0-1,3 wait in" in answer(command_line, files)


def test_a_dump_of_the_helper_alone_says_nothing_about_the_rank(command_line: CommandLine) -> None:
    file, name = SHARED
    files = {f"stack_rank{rank}.txt": MAIN.format(kind="Thread", file=file, name=name) for rank in range(3)}
    files["stack_rank3.txt"] = HELPER

    assert answer(command_line, files).startswith("no cause found")
