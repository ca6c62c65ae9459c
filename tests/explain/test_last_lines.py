"""What a rank did for which the others waited: its last line, from its own log or from a common screen."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain import cluster, last_lines, sources
from hccl_tools.explain.locations import Places
from hccl_tools.explain.scanning import scans
from tests.support.growth import steps
from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

AT_WORK = "still at work while the other ranks waited for it"
WAITED = "EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time."


def answer(command_line: CommandLine) -> list[str]:
    return command_line("explain", "logs").out.splitlines()


def others_wait(folder: Path, late: int, ranks: int = 4) -> None:
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        if rank != late:
            text = f"2026-03-18 10:00:03 INFO joins\n2026-03-18 10:02:05 ERROR {WAITED}\n"
            (folder / f"rank_{rank}.log").write_text(text)


@pytest.mark.parametrize(
    "line",
    [
        "Tokenizing shard 5/64",
        "preprocess: 12 of 90 files done, writing part 13",
        "downloading model-00003-of-00008.safetensors",
        "[compile] compiling kernel MatMul_17",
        "Saving checkpoint to /mnt/ckpt/step_100",
        "time.sleep(600) before the first step",
        "Waiting for the lock /cache/datasets.lock",
        "barrier of the data loader: 3 workers are not there",
        "Map (num_proc=8):  12%|█▏        | 120/1000 [01:10<08:40,  1.69 examples/s]",
        "loading checkpoint shards: 3/14",
    ],
)
def test_a_rank_at_work_is_named_with_its_last_line(command_line: CommandLine, line: str) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=2)
    (folder / "rank_2.log").write_text(
        f"2026-03-18 10:00:01 INFO begins\n2026-03-18 10:01:50 INFO {line}\nKilled\n"
    )

    lines = answer(command_line)

    assert lines[0].startswith(f"Rank 2: {AT_WORK}")
    assert line[:30] in lines[0]
    assert "at 2026-03-18 10:01:50" in lines[0]
    assert "All other ranks report that they waited (inferred from the lines of the ranks)" in lines[0]
    assert "rank_2.log:2" in lines[1]
    assert any("beside it, in logs/rank_0.log:2" in line for line in lines)


@pytest.mark.parametrize(
    "line", ["step 41 loss 2.1", "Loading has finished", "saved 64 shards", "loading failed: no such key"]
)
def test_a_rank_that_does_no_work_is_silent_and_its_line_is_shown(
    command_line: CommandLine, line: str
) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=2)
    (folder / "rank_2.log").write_text(f"2026-03-18 10:01:50 INFO {line}\n")

    first = answer(command_line)[0]

    assert first.startswith(f"Rank 2: silent while other ranks wait: the last line of rank 2 is: INFO {line}")
    assert "look at it first" in first


def test_the_line_when_the_others_gave_up_counts(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=1)
    (folder / "rank_1.log").write_text(
        "2026-03-18 10:02:00 INFO tokenizing shard 3/9\n2026-03-18 10:20:00 INFO all shards are there\n"
    )

    assert "tokenizing shard 3/9" in answer(command_line)[0]


def test_a_line_without_a_time_has_that_of_a_line_above(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=1)
    (folder / "rank_1.log").write_text("2026-03-18 10:00:09 INFO begins\nunpacking archive 3 of 5\n")

    assert "unpacking archive 3 of 5 (after 10:00:09)" in answer(command_line)[0]


def test_a_rank_that_the_launcher_ended_was_at_work(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=3)
    (folder / "rank_3.log").write_text(
        "2026-03-18 10:01:50 INFO Building index 3/8\n2026-03-18 10:02:10 INFO received SIGTERM, exiting\n"
    )

    assert answer(command_line)[0].startswith(f"Rank 3: {AT_WORK}")


def test_lines_of_a_screen_of_all_ranks(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    folder.mkdir()
    text = "".join(f"[rank{rank}]: 2026-03-18 10:02:05 ERROR {WAITED}\n" for rank in (0, 1, 3))
    begins = "".join(f"[rank{rank}]: 2026-03-18 10:00:01 rank {rank} of 4\n" for rank in range(4))
    busy = "[rank2]: 2026-03-18 10:01:00 INFO quantizing layer 7 of 32\n"
    (folder / "torchrun.log").write_text(f"{begins}{busy}{text}")
    (folder / "table.txt").write_text(
        "[INFO] HCCL(1,python3):2026-03-18-10:00:01.1 [a.cc:1] [1][Communicator Key Info]identifier[world] rankSize[4] serverNum[1]\n"
    )

    first = answer(command_line)[0]

    assert first.startswith(f"Rank 2: {AT_WORK}")
    assert "quantizing layer 7 of 32" in first


def test_of_several_silent_ranks_the_one_at_work_is_named(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    folder.mkdir()
    for rank in range(8):
        (folder / f"rank_{rank}.log").write_text(f"2026-03-18 10:00:01 INFO rank {rank}\n")
    with (folder / "rank_6.log").open("a") as file:
        file.write("2026-03-18 10:00:05 INFO downloading weights\n")
    with (folder / "rank_0.log").open("a") as file:
        file.write("Timed out after 601 seconds waiting for clients. 7/8 clients joined.\n")

    first = answer(command_line)[0]

    assert first.startswith(f"Rank 6: {AT_WORK}")
    assert "the last lines of ranks 1-5,7 name no work" in first


def test_the_plog_of_a_rank_without_another_log(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    for rank in (0, 1, 2):
        job.notify(rank, 3, 1900)
    job.run(3, 60, "loading model slice 3/8")

    first = answer(command_line)[0]

    assert first.startswith("Rank 3 (device 3 of 10.0.0.1, address 192.168.0.103): still at work")


def test_a_packed_log_has_a_last_line(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=1)
    (folder / "rank_1.log.gz").write_bytes(gzip.compress(b"2026-03-18 10:01:00 INFO compiling graph 3\n"))

    assert "compiling graph 3" in answer(command_line)[0]


@pytest.mark.slow
def test_last_lines_are_found_in_linear_time(tmp_path: Path) -> None:
    def taken(lines: int) -> int:
        folder = tmp_path / str(lines)
        others_wait(folder, late=3)
        (folder / "rank_3.log").write_text("2026-03-18 10:01:00 INFO tokenizing 3 of 9\n" * lines)
        found, _ = sources.collect([str(folder)])
        events = [event for scan in scans(found, (), None) for event in scan.events]
        joined = cluster.build(events, found, Places())
        assert last_lines.of(joined, {3}, None)
        return steps(lambda: last_lines.of(joined, {3}, None))

    assert taken(20_000) < 8 * taken(5_000)  # the square would be 16


WATCHDOG = (
    "Watchdog caught collective operation timeout: WorkHCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=600000)"
)


@pytest.mark.parametrize(
    ("prefix", "who"),
    [
        ("{0}: 2026-03-18 10:{1}:00 ", "Rank 1: "),
        ("worker-{0}  | 2026-03-18 10:{1}:00 ", "Host worker-1: "),
        ("[pod/job-{0}/main] 2026-03-18 10:{1}:00 ", "Host job-1: "),
        ("(Worker_TP{0} pid=90{0}) INFO 2026-03-18 10:{1}:00 ", "Still at work"),
    ],
)
def test_a_writer_of_a_screen_without_the_number_of_ranks(
    command_line: CommandLine, prefix: str, who: str
) -> None:
    lines = [f"{prefix.format(rank, '00')}begins" for rank in range(4)]
    lines.append(f"{prefix.format(1, '01')}compiling kernels for graph 3")
    lines += [f"{prefix.format(rank, 11)}{WATCHDOG}" for rank in (0, 2, 3)]
    command_line.write("screen.txt", "\n".join(lines))

    first = command_line("explain", "screen.txt").out.splitlines()[0]

    assert first.startswith(who)
    assert "the last line is: " in first
    assert "compiling kernels for graph 3" in first
    assert "3 others on the same screen report that they waited" in first


def test_a_writer_of_a_screen_that_does_no_work_is_not_blamed(command_line: CommandLine) -> None:
    lines = [f"{rank}: 2026-03-18 10:00:00 begins" for rank in range(4)]
    lines += [f"{rank}: 2026-03-18 10:11:00 {WATCHDOG}" for rank in (0, 2, 3)]
    command_line.write("screen.txt", "\n".join(lines))

    assert "at work" not in command_line("explain", "screen.txt").out


def test_a_late_rank_was_at_work_until_it_came(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=1)
    (folder / "rank_1.log").write_text(
        "2026-03-18 10:01:40 INFO tokenizing 5/9\n2026-03-18 10:05:00 INFO tokenizing 9/9\n"
        f"2026-03-18 10:07:10 ERROR {WAITED}\n"
    )

    lines = answer(command_line)

    assert lines[0].startswith("Rank 1: the rank came later")
    assert "until then it was at work" in lines[0]
    assert any("tokenizing 5/9" in line for line in lines)


def test_a_missing_rank_of_the_root_was_at_work(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=2)
    with (folder / "rank_0.log").open("a") as file:
        file.write(
            "EI0015: Failed to collect cluster information. Reason: timeout, unconnected ranks: [2,].\n"
        )
    (folder / "rank_2.log").write_text("2026-03-18 10:01:50 INFO loading dataset /data (shard 40/512)\n")

    first = answer(command_line)[0]

    assert first.startswith(f"Rank 2: {AT_WORK}")
    assert "The root lists it as missing (inferred from the lines of the ranks)" in first


def test_a_program_may_say_at_the_level_of_a_warning_what_it_does(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=2)
    (folder / "rank_2.log").write_text(
        "2026-03-18 10:00:50 INFO begins\n2026-03-18 10:01:50 [WARNING] Start compiling graph, it may take minutes\n"
        "/lib/x.py:3: UserWarning: creating tensors is slow\n"
    )

    assert "Start compiling graph" in answer(command_line)[0]


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 1:  12%|█▏        | 120/1000 [01:10<08:40,  1.69it/s]",
        "processing step 12 of 90, loss 2.1",
        "train 3/9",
    ],
)
def test_steps_of_the_training_are_no_work_before_it(command_line: CommandLine, line: str) -> None:
    folder = command_line.folder / "logs"
    others_wait(folder, late=2)
    (folder / "rank_2.log").write_text(f"2026-03-18 10:01:50 {line}\n")

    assert answer(command_line)[0].startswith("Rank 2: silent while other ranks wait: the last line")
