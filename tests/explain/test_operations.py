"""Ranks in different operations: the watchdog of torch, and communicators that each lack the ranks of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


def watchdog(rank: int, work: str, group: str = "") -> str:
    return (
        f"[rank{rank}]:[E1120 09:30:11.041 ProcessGroupHCCL.cpp:1008] [{group}Rank {rank}] Watchdog caught collective"
        f" operation timeout: WorkHCCL({work}, Timeout(ms)=600000) ran for 600039 milliseconds before timing out.\n"
    )


def write(command_line: CommandLine, of_ranks: dict[int, str]) -> str:
    for rank, text in of_ranks.items():
        folder = command_line.folder / "logs" / f"rank{rank}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stdout.log").write_text(text)
    return command_line("explain", "logs").out.splitlines()[0]


SAME = "SeqNum=1202, OpType=ALLREDUCE, NumelIn=4194304, NumelOut=4194304"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            "SeqNum=1202, OpType=_ALLGATHER_BASE, NumelIn=65536, NumelOut=524288",
            "Rank 3 is in ALLGATHER_BASE, ranks 0-2 are in ALLREDUCE",
        ),
        (
            "SeqNum=1202, OpType=_REDUCE_SCATTER_BASE, NumelIn=65536, NumelOut=524288",
            "Rank 3 is in REDUCE_SCATTER_BASE, ranks 0-2 are in ALLREDUCE",
        ),
        (
            "SeqNum=1202, OpType=ALLREDUCE, NumelIn=65536, NumelOut=65536",
            "Rank 3 is in ALLREDUCE of 65536 elements, ranks 0-2 are in ALLREDUCE of 4194304 elements",
        ),
        (
            "SeqNum=1190, OpType=ALLREDUCE, NumelIn=4194304, NumelOut=4194304",
            "Rank 3 is in operation 1190 (ALLREDUCE), ranks 0-2 are in operation 1202 (ALLREDUCE)",
        ),
    ],
)
def test_torch_names_another_operation(command_line: CommandLine, other: str, said: str) -> None:
    first = write(command_line, {**{rank: watchdog(rank, SAME) for rank in range(3)}, 3: watchdog(3, other)})
    assert said in first


def test_the_numbers_of_two_process_groups_are_not_compared(command_line: CommandLine) -> None:
    groups = ["PG ID 0 PG GUID 0(default_pg) ", "PG ID 1 PG GUID 3(tp) "]
    works = [SAME, SAME.replace("1202", "88")]
    first = write(
        command_line, {rank: watchdog(rank, works[rank // 2], groups[rank // 2]) for rank in range(4)}
    )
    assert "operation 88" not in first


def test_ranks_of_an_uneven_gather_may_have_other_numbers_of_elements(command_line: CommandLine) -> None:
    works = [f"SeqNum=7, OpType=_ALLGATHER_BASE, NumelIn={64 + rank}, NumelOut=512" for rank in range(4)]
    first = write(command_line, {rank: watchdog(rank, works[rank]) for rank in range(4)})
    assert "elements" not in first


LAST = (
    "[rank{rank}]:[E1120 09:30:11.051 ProcessGroupHCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception"
    " (either an error or timeout) detected by watchdog at work: 1202, last enqueued HCCL work: {last}, last completed"
    " HCCL work: 1201.\n"
)


@pytest.mark.parametrize("size", [2, 4, 33])
def test_all_ranks_have_issued_the_operation_of_the_watchdog(command_line: CommandLine, size: int) -> None:
    first = write(
        command_line,
        {rank: watchdog(rank, SAME) + LAST.format(rank=rank, last=1202) for rank in range(size)},
    )

    assert first.startswith(f"Ranks 0-{size - 1}: all ranks have begun the operation, and it has not ended")
    which = "Both" if size == 2 else f"All {size}"
    assert f"{which} ranks have issued ALLREDUCE number 1,202, and the last one that has ended is" in first
    assert "number 1,201 (inferred from the lines of the ranks)" in first


@pytest.mark.parametrize(
    ("own", "others"),
    [
        (watchdog(3, SAME.replace("1202", "1190")), SAME),  # It is behind.
        (watchdog(3, SAME.replace("ALLREDUCE", "SEND")), SAME.replace("ALLREDUCE", "RECV")),
        ("2026-11-20 09:10:00,123 [INFO] step 11\n", SAME),  # It has reported no such operation.
        (watchdog(3, SAME, "PG ID 1 PG GUID 3(tp) "), SAME),
    ],
)
def test_not_all_are_known_to_be_in_the_operation(command_line: CommandLine, own: str, others: str) -> None:
    first = write(command_line, {**{rank: watchdog(rank, others) for rank in range(3)}, 3: own})
    assert "all ranks have begun" not in first


def test_a_rank_whose_log_is_not_there_may_be_behind(command_line: CommandLine) -> None:
    first = write(command_line, {rank: watchdog(rank, SAME) for rank in (0, 1, 3)})
    assert "all ranks have begun" not in first


def test_a_screen_does_not_say_whether_there_are_more_ranks(command_line: CommandLine) -> None:
    (command_line.folder / "screen.log").write_text(watchdog(0, SAME) + watchdog(1, SAME))
    out = command_line("explain", "screen.log").out
    assert "no line says whether the job has more ranks (the logs do not show the cause)" in out


def wait_in(job: Plogs, rank: int, group: str, size: int) -> None:
    job.error(
        rank, 1900.0,
        f"[TaskExecStage][Timeout]Task run failed, base information is streamID:[5], taskID[3], tag[AllReduce_{group}], AlgType(level 0-1-2):[ring].",
    )  # fmt: skip
    job.error(
        rank, 1900.0,
        f"[TaskExecStage][Timeout]groupRank information is group:[{group}], rankSize[{size}], rankId[{rank}].",
    )  # fmt: skip


@pytest.mark.parametrize(("size", "says"), [(4, True), (2, False)])
def test_two_communicators_that_each_lack_the_ranks_of_the_other(
    command_line: CommandLine, size: int, says: bool
) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    for rank in range(4):
        wait_in(job, rank, "first" if rank < 2 else "second", size)
    out = command_line("explain", "logs").out
    assert ("Ranks 0-1 are in communicator first, ranks 2-3 are in communicator second" in out) is says
