"""Dumps of flight recorders beside plogs: the error from which follows what the dumps show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.explain.test_recorder import answer, folder, recorders, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

__all__ = ["folder"]

IDENTITY = (
    "[INFO] HCCL({pid},python3):2026-03-18-08:59:30.000.414 [op_base.cc:1292] [{pid}]Entry-HcclCommInitRootInfoInner:"
    "ranks[4], rank[{rank}], rootinfo: host ip[10.0.0.7] port[60000] nicDeploy[1] identifier[world],"
    " deviceLogicId[{rank}]\n"
)
WAIT = (
    "[ERROR] HCCL({pid},python3):2026-03-18-09:31:00.200.414 [task_exception_handler.cc:880] [{pid}][TaskExecStage]"
    "[Timeout][Host]Task run failed, base information is streamID:[35], taskID[657], taskType[Notify Wait],"
    " tag[AllReduce_world], AlgType(level 0-1-2):[fullmesh-ring-ring].\n"
)
KERNEL = (
    "[ERROR] RUNTIME({pid},python3):2026-03-18-{time} [davinci_kernel_task.cc:1280] [{pid}]Kernel task happen error,"
    " retCode=0x31, [vector core exception].\n"
    "[ERROR] ASCENDCL({pid},python3):2026-03-18-{time} [stream.cpp:217] [{pid}]synchronize stream failed,"
    " runtime result = 507035\n"
)


def plogs(folder: Path, lines: dict[int, str]) -> None:
    """Write the plog of each rank: who it is, and its lines."""
    for rank, text in lines.items():
        pid = 5200 + rank
        rows = (IDENTITY + text).replace("{pid}", str(pid)).replace("{rank}", str(rank))
        (folder / f"plog-{pid}_20260318085930.log").write_text(rows)


def hanging(folder: Path, *, without_dump: tuple[int, ...] = (), behind: tuple[int, ...] = ()) -> None:
    """Write the dumps of four ranks that wait in their eleventh operation."""
    ranks = recorders(4)
    for one in ranks:
        if one.rank not in (*behind, *without_dump):
            one.call(done=False)
    written(folder, [one for one in ranks if one.rank not in without_dump])


@pytest.mark.parametrize("time", ["09:00:14.200.421", "09:31:00.900.421"])
@pytest.mark.parametrize("has_dump", [True, False])
def test_a_fault_of_the_device_of_the_awaited_rank(
    command_line: CommandLine, folder: Path, time: str, *, has_dump: bool
) -> None:
    hanging(folder, **{"behind" if has_dump else "without_dump": (3,)})
    plogs(folder, {0: WAIT, 1: WAIT, 2: WAIT, 3: KERNEL.replace("{time}", time)})

    out = answer(command_line)

    assert out.startswith("Rank 3: a kernel failed on a vector core")
    assert "Ranks 0-2 wait in all_reduce number 11 of group default_pg; rank 3" in out
    assert "(inferred from who waits for whom)" in out
    assert "left no dump of its flight recorder" not in out


def test_a_fault_that_follows_from_the_wait_is_no_cause(command_line: CommandLine, folder: Path) -> None:
    hanging(folder, without_dump=(3,))
    later = KERNEL.replace("{time}", "09:31:44.200.421")
    plogs(folder, {0: WAIT, 1: WAIT, 2: WAIT, 3: later})

    assert answer(command_line).startswith("Rank 3: the rank has left no dump")


def test_a_fault_of_a_rank_that_is_not_awaited_is_no_cause(command_line: CommandLine, folder: Path) -> None:
    hanging(folder, behind=(3,))
    plogs(folder, {1: KERNEL.replace("{time}", "09:00:14.200.421")})

    assert answer(command_line).startswith("Rank 3: the rank is behind the others")
