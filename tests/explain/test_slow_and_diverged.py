"""Ranks that the lines name which are slow, a data pipeline that is, and a loss that is not a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

STEP = "2026-03-18 10:{minute:02}:02,120 INFO {rank} step={minute} data_time={data:.3f}s fwd=0.310s step_time=4.3s\n"
STARVED = (
    "[WARNING] MD(4711,fffe,python):2026-03-18-10:{:02}:52.113.403 [data_queue_op.cc:902] DetectPerBatchTime] Bad performance"
    " attention, it takes more than 25 seconds to fetch a batch of data from dataset pipeline, which might result timeout.\n"
)


def answer(command_line: CommandLine, files: dict[str, str]) -> str:
    folder = command_line.folder / "logs"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return command_line("explain", "logs").out


def steps(rank: str, data: float) -> str:
    return "".join(STEP.format(minute=minute, rank=rank, data=data) for minute in range(1, 20))


@pytest.mark.parametrize("written", ["rank={}", "[rank {}]", "global_rank: {}"])
def test_a_slow_rank_that_only_the_lines_name(command_line: CommandLine, written: str) -> None:
    files = {f"r{rank}.log": steps(written.format(rank), 3.4 if rank == 3 else 0.05) for rank in range(4)}
    out = answer(command_line, files)
    assert out.startswith("Rank 3: the rank is slower than the others")
    assert "Rank 3 needs 3.40 s for data_time, the others 0.05 s" in out


def test_a_slow_rank_on_a_common_screen(command_line: CommandLine) -> None:
    screen = "".join(
        STEP.format(minute=minute, rank=f"rank={rank}", data=3.4 if rank == 3 else 0.05)
        for minute in range(1, 20)
        for rank in range(4)
    )
    assert answer(command_line, {"train.txt": screen}).startswith("Rank 3: the rank is slower")


@pytest.mark.parametrize(("lines", "says"), [(2, False), (3, True)])
def test_a_data_pipeline_that_does_not_keep_up(command_line: CommandLine, lines: int, says: bool) -> None:
    out = answer(command_line, {"worker_0.log": "".join(STARVED.format(at) for at in range(lines))})
    assert out.startswith("Rank 0: the data pipeline does not keep up") is says


@pytest.mark.parametrize(
    ("last", "says"),
    [
        ("lm loss: NAN | loss scale: 1.0", "nan from line 2 on"),
        ("{'loss': inf, 'epoch': 1.0}", "inf from line 2 on"),
        ("step: 3, loss is nan", "nan from line 2 on"),
        ("lm loss: 2.1 | loss scale: nan", ""),
        ("loss: 2.1 | number of nan iterations: 0", ""),
    ],
)
def test_a_loss_that_is_not_a_number(command_line: CommandLine, last: str, says: str) -> None:
    out = answer(command_line, {"train.txt": f"step 1 loss: 2.5\n{last}\n{last}\n"})
    assert out.startswith(f"The loss is not a number: {says}") is bool(says)
    assert bool(says) is ("loss is not a number" in out)


@pytest.mark.parametrize("loss", ["nan", "2.1"])
def test_a_complete_job_whose_loss_is_not_a_number(command_line: CommandLine, loss: str) -> None:
    log = f"step 1 loss: 2.5\nstep 2 loss: {loss}\nTraining Over!\n"
    out = answer(command_line, {"worker_0.log": log})
    assert out.startswith("Rank 0: the loss is not a number: nan from line 2 on") is (loss == "nan")
    assert ("the job is complete, by logs/worker_0.log:3" in out) is (loss == "nan")
    assert out.startswith("The job is complete: nothing in these logs ended it.") is (loss != "nan")


def test_a_ring_of_waits_in_one_operation_is_open(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    for rank in range(4):
        job.error(
            rank, 1900.0,
            "[TaskExecStage][Timeout]Task run failed, base information is streamID:[5], taskID[3], tag[AllReduce_world], AlgType(level 0-1-2):[ring].",
        )  # fmt: skip
        job.error(
            rank, 1900.0,
            f"[TaskExecStage][Timeout]task information is notify id:[0x0000000000000308], stage:[0], remote rank:[{(rank + 1) % 4}].",
        )  # fmt: skip
        job.error(
            rank, 1900.0,
            "[TaskExecStage][Timeout]opData information is timeStamp:[2026-03-18-10:00:00.120.991], deviceId[0], index[771], count[1048576], reduceType[sum].",
        )  # fmt: skip
    out = command_line("explain", "logs").out
    assert "all are in operation 771 (AllReduce)" in out
    assert out.startswith("Ranks 0-3: an operation of HCCL did not end, and no rank is behind the others.")
    assert "(the logs do not show the cause)" in out


@pytest.mark.parametrize(("last", "says"), [(467, True), (479, True), (480, False), (481, False)])
def test_a_rank_is_behind_in_a_job_that_was_interrupted(
    command_line: CommandLine, last: int, says: bool
) -> None:
    files = {
        f"rank_{rank}.log": "".join(
            f"2026-03-18 10:33:52 | INFO | step {at}/2000 loss 1.9\n"
            for at in range(460, (last if rank == 2 else 481) + 1)
        )
        for rank in range(4)
    }
    out = answer(command_line, {**files, "screen.txt": "^C\n"})
    assert out.startswith("Rank 2: the rank is some steps behind the others") is says
    assert (f"The log of rank 2 ends at step {last}, most others at 481" in out) is says
    assert "A user interrupted the job with Ctrl-C" in out


def test_logs_that_end_at_different_steps_without_an_end(command_line: CommandLine) -> None:
    files = {f"rank_{rank}.log": f"step {400 + 20 * rank}/2000 loss 1.9\n" for rank in range(4)}
    assert answer(command_line, files).startswith("no cause found")


TIMED = {
    "megatron": " [2026-03-18 10:{:02}:00] iteration {:8}/ 500 | elapsed time per iteration (ms): {:.1f} | lm loss: 2.3\n",
    "mindspore": "2026-03-18 10:{:02}:00 - INFO - step:[ {}/ 600], loss: 3.9, per_step_time: {:.0f}ms, lr: 1e-05\n",
}
HOT = "Mar 18 10:{:02}:01 node1 kernel: mce: CPU3: Core temperature is above threshold, cpu clock is throttled\n"


def timed(written: str, times: list[float]) -> str:
    return "".join(TIMED[written].format(at, at, time) for at, time in enumerate(times))


@pytest.mark.parametrize("written", TIMED)
@pytest.mark.parametrize(
    ("times", "says"),
    [
        ([800.0] * 20 + [1900.0] * 20, True),
        ([800.0] * 20 + [1100.0] * 20, False),
        ([800.0] * 20 + [1900.0] * 4, False),
        ([800.0, 1900.0] * 20, False),
        ([1900.0] * 20 + [800.0] * 20, False),
    ],
    ids=["slower", "little slower", "a few", "up and down", "faster"],
)
def test_steps_that_became_slower(
    command_line: CommandLine, written: str, times: list[float], says: bool
) -> None:
    out = answer(command_line, {"rank_7.log": timed(written, times)})
    assert out.startswith("The steps became slower while the job ran, at 2026-03-18 10:20:00.") is says
    assert (
        "From line 21 of logs/rank_7.log on a step takes 1.9 s instead of 0.8 s" in out.replace("\n  ", " ")
    ) is says


@pytest.mark.parametrize(("minute", "says"), [(19, True), (50, False)])
def test_what_the_kernel_says_about_the_time_of_the_change(
    command_line: CommandLine, minute: int, says: bool
) -> None:
    log = timed("megatron", [800.0] * 20 + [1900.0] * 20)
    out = answer(command_line, {"rank_7.log": log, "messages": HOT.format(minute)})
    assert ("a device or processor is too hot and lowers its clock" in out.splitlines()[0]) is says
