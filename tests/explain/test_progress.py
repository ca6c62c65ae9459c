"""Ranks that have fewer steps than the others, or are slower, by what the programs of the ranks print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine


def logs(command_line: CommandLine, texts: dict[str, str]) -> Path:
    folder = command_line.folder / "logs"
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def first(command_line: CommandLine) -> str:
    return command_line("explain", "logs").out.splitlines()[0]


STEP = "2026-03-18 10:00:{:02} rank {} {} {}{}{} loss 1.5\n"


def steps(rank: int, total: int, until: int, word: str = "step", of: str = "/") -> str:
    return "".join(STEP.format(number, rank, word, number, of, total) for number in range(1, until + 1))


@pytest.mark.parametrize(
    "left", ["epoch 0 done, entering barrier", "Evaluating ...", "calling all_gather of metrics", ""]
)
@pytest.mark.parametrize(("word", "of"), [("step", "/"), ("Batch:", " of "), ("iteration", "/")])
def test_a_rank_with_fewer_steps(command_line: CommandLine, left: str, word: str, of: str) -> None:
    texts = {f"rank_{rank}.log": steps(rank, 12, 11, word, of) for rank in range(4)}
    texts["rank_2.log"] = f"{steps(2, 11, 11, word, of)}{left}\n"
    logs(command_line, texts)

    answer = first(command_line)
    assert answer.startswith("Rank 2: the rank has fewer steps than the others")
    assert "Rank 2 has 11 steps, the others 12" in answer
    assert "drop_last" in answer


def test_a_rank_with_fewer_steps_for_which_the_others_waited(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 3, 1).start()
    for rank in range(3):
        job.screen(rank, steps(rank, 9 if rank == 1 else 10, 9))
        job.notify(rank, None, 1900.0)

    assert first(command_line).startswith(
        "Rank 1 (device 0 of 10.0.0.2, address 192.168.1.100): the rank has fewer steps"
    )


@pytest.mark.parametrize(
    "texts",
    [
        {f"rank_{rank}.log": steps(rank, 12, 11) for rank in range(4)},
        {f"rank_{rank}.log": steps(rank, 12, 9 if rank == 2 else 11) for rank in range(4)},
        {f"rank_{rank}.log": steps(rank, 11 if rank == 2 else 12, 10) for rank in range(4)},
        {
            f"rank_{rank}.log": steps(rank, 11 if rank == 2 else 12, 11 if rank == 2 else 4)
            for rank in range(4)
        },
        {f"rank_{rank}.log": steps(rank, 10 + rank, 10) for rank in range(4)},
    ],
)
def test_ranks_that_have_not_left_the_others(command_line: CommandLine, texts: dict[str, str]) -> None:
    logs(command_line, texts)

    assert first(command_line).startswith("no cause found")


def test_an_exception_before_the_steps(command_line: CommandLine) -> None:
    texts = {f"rank_{rank}.log": steps(rank, 11 if rank == 2 else 12, 11) for rank in range(4)}
    texts["rank_3.log"] += "ValueError: bad shape\n"
    logs(command_line, texts)

    assert first(command_line).startswith("Rank 3: the program raised an exception: ValueError: bad shape")


def times(rank: int, line: str, count: int = 6) -> str:
    return "".join(f"2026-03-18 10:00:{number:02} [rank {rank}] {line}\n" for number in range(count))


@pytest.mark.parametrize(
    ("usual", "late", "name"),
    [
        (
            "step_time 3.10 data_time 0.05 allreduce_wait 2.60",
            "step_time 3.10 data_time 2.55 allreduce_wait 0.10",
            "data_time",
        ),
        ("data: 40.1 ms, total: 900.0 ms", "data: 640.1 ms, total: 900.0 ms", "data"),
        ("forward 0.51s data 0.01s", "forward 1.22s data 0.01s", "forward"),
    ],
)
def test_a_rank_that_is_slow(command_line: CommandLine, usual: str, late: str, name: str) -> None:
    logs(command_line, {f"rank_{rank}.log": times(rank, late if rank == 2 else usual) for rank in range(4)})

    answer = first(command_line)
    assert answer.startswith("Rank 2: the rank is slower than the others")
    assert f"s for {name}, the others" in answer


@pytest.mark.parametrize(
    ("usual", "late"),
    [
        ("data_time 0.05 wait 2.60", "data_time 0.15 wait 2.50"),
        ("data_time 1.00 wait 2.60", "data_time 1.90 wait 1.70"),
        ("allreduce_wait 0.10", "allreduce_wait 2.50"),
    ],
)
def test_ranks_that_are_about_as_fast(command_line: CommandLine, usual: str, late: str) -> None:
    logs(command_line, {f"rank_{rank}.log": times(rank, late if rank == 2 else usual) for rank in range(4)})

    assert first(command_line).startswith("no cause found")


def test_half_of_the_ranks_are_slow(command_line: CommandLine) -> None:
    texts = {f"rank_{rank}.log": times(rank, f"data_time {2.5 if rank < 2 else 0.1}") for rank in range(4)}
    logs(command_line, texts)

    assert first(command_line).startswith("no cause found")


def test_the_times_of_all_ranks_in_one_log(command_line: CommandLine) -> None:
    table = "".join(f"     rank {rank:2}: {6500.1 if rank == 5 else 2600.2}\n" for rank in range(8))
    waits = "".join(f"     rank {rank:2}: {1.1 if rank == 5 else 9000.2}\n" for rank in range(8))
    logs(
        command_line,
        {"train.log": f"all-rank times (ms):\n    forward-compute:\n{table}    grads-all-reduce:\n{waits}"},
    )

    answer = first(command_line)
    assert answer.startswith("Rank 5: the rank is slower than the others")
    assert "Rank 5 needs 6.50 s for forward-compute, the others 2.60 s" in answer


RAID = "Mar 18 01:00:02 b kernel: md: {} of RAID array md0\n"
CLOCKS = "\tAicore curFreq(MHZ)            : {}\n\tAicore curFreq(MHZ)            : {}\n"
FAN = "  1a | 03/18/2026 | 10:33:52 | Fan FAN2 R Speed | Lower Critical going low  | Asserted | Reading 0 < Threshold 1200 RPM\n"


@pytest.mark.parametrize(
    ("folder", "text", "said"),
    [
        ("b", RAID.format("data-check"), "data-check of RAID array md0"),
        ("b", RAID.format("resync"), "resync of RAID array md0"),
        ("b", FAN, "a fan of the host has stopped"),
        ("b", CLOCKS.format(1650, 900), "the clock of a device is lowered to 900 MHz"),
        ("b", CLOCKS.format(1650, 1600), ""),
        ("a", RAID.format("data-check"), ""),
        ("b", "Mar 18 01:00:02 b kernel: md: md0: data-check done.\n", ""),
    ],
)
def test_why_a_host_is_slow(command_line: CommandLine, folder: str, text: str, said: str) -> None:
    texts = {
        f"{'b' if rank == 2 else 'a'}/rank_{rank}.log": times(rank, f"data_time {2.5 if rank == 2 else 0.1}")
        for rank in range(4)
    }
    logs(command_line, {**texts, f"{folder}/journal.txt": text})

    answer = first(command_line)
    assert answer.startswith("Rank 2: the rank is slower")
    assert ("; on its host:" in answer) == bool(said)
    assert said in answer


def late_rank(command_line: CommandLine, line: str, waiting: range = range(1, 3)) -> str:
    """Ranks 1 and 2 do not connect to rank 0, whose launcher's screen has a line, and then ends it."""
    job = Plogs(command_line.folder / "logs", 3, 3).start()
    for rank in waiting:
        job.no_link(rank, 0, 200.0 + rank)
    screen = (
        f"2026-03-18 10:00:10 starting\n{line}\n[rank1]: EI0006: Getting socket times out.\n"
        "W0318 10:04:00.000000 1 torch/distributed/elastic/multiprocessing/api.py:1] Sending process 4000 closing signal SIGTERM\n"
    )
    (job.folder / job.host(0) / "screen.log").write_text(screen)
    return first(command_line)


@pytest.mark.parametrize(
    "line",
    [
        "2026-03-18 10:03:00 > building the sample index ...",
        "2026-03-18 10:02:00 INFO tokenizing part 3 of 90",
        "2026-03-18 10:02:30 downloading the model",
    ],
)
def test_a_rank_at_work_whose_launcher_ended_it(command_line: CommandLine, line: str) -> None:
    answer = late_rank(command_line, line)

    assert answer.startswith("Rank 0 (device 0 of 10.0.0.1, address 192.168.0.100): still at work")
    assert "its launcher ended it after them" in answer


@pytest.mark.parametrize(
    "line", ["2026-03-18 10:03:00 all data are ready", "[rank2]: 2026-03-18 10:03:00 building the index ..."]
)
def test_a_rank_whose_work_is_not_known(command_line: CommandLine, line: str) -> None:
    assert "still at work" not in late_rank(command_line, line)


def test_a_screen_of_a_rank_that_is_not_the_only_one(command_line: CommandLine) -> None:
    answer = late_rank(command_line, "2026-03-18 10:03:00 > building the sample index ...", range(1, 2))

    assert not answer.startswith("Rank 0 (device 0 of 10.0.0.1, address 192.168.0.100): still at work")
