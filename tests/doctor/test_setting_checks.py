"""The checks of limits by the size of the job, and of processes on devices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.doctor.case import Case
from hccl_tools.doctor.examining import Job, examine
from hccl_tools.doctor.findings import HostFinding, judge
from hccl_tools.doctor.registry import Selection
from hccl_tools.inspection.observation import DeviceProcess, Observation
from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable


def of_ranks(number: int) -> RankTable:
    read = validate(json.dumps(table("1.0", number // 8, 8)).encode()).table
    assert read is not None
    return read


def findings(check: str, ranks: int = 0, **seen: Any) -> list[HostFinding]:
    case = Case(Observation(nodes=(0, 1), **seen), of_ranks(ranks) if ranks else None)
    return [one for one in judge("node1", case) if one.check == check]


@pytest.mark.parametrize(
    ("ranks", "limit", "message"),
    [
        (0, 1024, ""),
        (128, 1024, ""),
        (136, 1024, "the limit of open files is 1,024, below 1,088 for 136 ranks"),
        (136, 1088, ""),
        (136, -1, ""),
        (0, 1023, "the limit of open files is 1,023, below 1,024"),
        (8800, 65535, ""),
    ],
)
def test_the_limit_of_open_files(ranks: int, limit: int, message: str) -> None:
    found = findings("HCD304", ranks, limits={"nofile": limit})

    assert [(one.message, one.consequence) for one in found] == ([(message, "may-stop")] if message else [])


@pytest.mark.parametrize(
    ("ranks", "limit", "fires"), [(128, "128", False), (136, "128", True), (136, "", False)]
)
def test_the_backlog(ranks: int, limit: str, fires: bool) -> None:
    found = findings("HCD315", ranks, kernel={"somaxconn": limit})

    assert [one.commands for one in found] == ([("sysctl -w net.core.somaxconn=4096",)] if fires else [])


def test_a_process_that_npu_smi_does_not_see() -> None:
    (found,) = findings("HCD106", processes=(DeviceProcess(0, 1, "", memory=30000),))

    assert found.message == (
        "device 1 is in use by a program whose process is not seen here (of another container), "
        "30000 MB on the device"
    )
    assert "restart the host" in found.remedy
    both = findings("HCD106", processes=(DeviceProcess(0, 0, ""), DeviceProcess(7, 1, "python")))
    assert both[0].message.startswith("devices 0,1 are in use by programs; the first: device 0")
    assert "`hccl-tools jobs`" in both[0].remedy


def test_a_host_without_npus_is_one_finding() -> None:
    report = validate(json.dumps(table("1.0", 1, 8)).encode())
    seen = {"node1": Observation(local_addresses=("10.0.0.1",))}

    found = examine(seen, Job(report, "910a"), Selection()).findings

    assert [one.check for one in found if one.consequence == "stops"] == ["HCD101"]
    assert "doctor --cpu" in found[0].remedy
    assert examine(seen, Job(), Selection()).fails()
    assert not examine(seen, Job(report, "910a", cpu=True), Selection()).fails()
