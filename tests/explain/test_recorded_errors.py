"""Dumps of flight recorders beside plogs: the error from which follows what the dumps show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.explain.test_first_day import message
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


ROCE = (
    "[ERROR] ROCE({pid},python3):2026-03-18-{time}.000.642 [hns_roce_lite.c:630]hns_roce_lite_handle_error_cqe(630) :"
    " error cqe status: {status}\n"
)
HEARTBEAT = (
    "[ERROR] HCCL({pid},python3):2026-03-18-09:00:29.607.432 [heartbeat.cc:1229] [{pid}][TaskExecStage]"
    "[HeartbeatAbnormal][ROCE CQE ERROR]cqe error status[12], time:[2026-03-18 09:00:22.776654],"
    "localInfo{server[10.0.0.7],deviceId[2],deviceIp[192.168.0.102]}, remoteIP{server[10.0.0.8],deviceId[1],deviceIp[192.168.1.101]}\n"
)


def roce(status: str, time: str = "09:00:22") -> str:
    return ROCE.replace("{status}", status).replace("{time}", time)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("0x15", "the other end did not acknowledge a packet"),
        ("0x16", "the other end was not ready to receive"),
        ("0x13", "an RDMA operation between two devices ended with an error"),
    ],
)
def test_an_error_of_a_link_stands_beside_the_operation_that_all_have_begun(
    command_line: CommandLine, folder: Path, status: str, said: str
) -> None:
    hanging(folder)
    plogs(folder, {0: WAIT, 1: WAIT, 2: roce(status) + WAIT, 3: WAIT})

    out = answer(command_line)

    assert out.startswith("Ranks 0-3: all ranks have begun the operation")
    assert "; rank 2 reports that" in out
    assert said in out
    assert f"error cqe status: {status}\n" in out


@pytest.mark.parametrize("rank", [2, 3])
def test_without_dumps_the_error_of_the_link_is_the_cause(
    command_line: CommandLine, folder: Path, rank: int
) -> None:
    plogs(folder, {one: (roce("0x15") if one == rank else "") + WAIT for one in range(4)})

    assert answer(command_line).startswith(f"Rank {rank}: the RDMA connection between two devices failed")


def test_the_heartbeat_names_both_ends(command_line: CommandLine, folder: Path) -> None:
    hanging(folder)
    plogs(folder, {0: WAIT, 2: roce("0x15") + HEARTBEAT + WAIT})

    assert "; the other end is device 1 of 10.0.0.8, address 192.168.1.101 (" in answer(command_line)


@pytest.mark.parametrize(("time", "is_shown"), [("09:31:01", True), ("09:31:04", False)])
def test_an_error_of_a_link_after_the_waits_follows_from_them(
    command_line: CommandLine, folder: Path, time: str, *, is_shown: bool
) -> None:
    hanging(folder)
    plogs(folder, {0: WAIT, 1: WAIT, 2: roce("0x15", time), 3: WAIT})

    assert ("rank 2 reports that" in answer(command_line)) is is_shown


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hns_roce_lite_handle_error_cqe(630) : error cqe status: 0x15", "HCM938"),
        ("hns_roce_lite_handle_error_cqe(630) : error cqe status: 0x151", "HCM966"),
        ("[create][ra_hdc_period_poll]failed CQE status[12], wr[0]", "HCM967"),
        ("[create][ra_hdc_period_poll]failed CQE status[5], wr[0]", ""),  # Flushed after another error.
        ("infiniband hns_0: error cqe status 0x15:", ""),  # A network card of the host.
    ],
)
def test_lines_of_the_driver(line: str, expected: str) -> None:
    assert message(line) == expected
