"""The checks of limits by the size of the job, and of processes on devices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.diagnostics.registry import Selection
from hccl_tools.doctor.check_input import Case
from hccl_tools.doctor.findings import HostFinding, judge
from hccl_tools.doctor.run_checks import Job, examine
from hccl_tools.host.observation import (
    DeviceObservation,
    DeviceProcess,
    NpuObservation,
    Observation,
    PortUse,
)
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("installed", "running", "fires"),
    [
        ("24.1.RC2", "23.0.5", True),
        ("24.1.RC2", "24.1.rc2", False),
        ("", "23.0.5", False),
        ("23.0.5", None, False),
    ],
)
def test_a_driver_that_does_not_run_yet(installed: str, running: str | None, fires: bool) -> None:
    npus = tuple(NpuObservation(npu, 0, npu, "OK", running) for npu in range(2))
    found = findings("HCD109", versions={"driver": installed}, npus=npus)

    assert [(one.consequence, "restart the host" in one.remedy) for one in found] == [("note", True)] * fires


@pytest.mark.parametrize(("job", "fires"), [("b", True), ("a", False), ("", False)])
def test_a_variable_with_another_table(job: str, fires: bool) -> None:
    hashes = {"RANK_TABLE_FILE": "a" * 64, "RANKTABLEFILE": "a" * 64}
    variables = dict.fromkeys(hashes, "/old.json")
    found = findings("HCD322", table_hashes=hashes, table_sha256=job * 64, variables=variables)

    expected = "RANK_TABLE_FILE and RANKTABLEFILE=/old.json: this is another table than "
    assert [one.message.startswith(expected) for one in found] == [True] * fires


@pytest.mark.parametrize(
    ("tls", "expiry", "consequences"),
    [(1, 2, ["stops"]), (1, 1, ["note"]), (1, 0, []), (0, 2, []), (1, None, [])],
)
def test_a_certificate(tls: int, expiry: int | None, consequences: list[str]) -> None:
    found = findings("HCD210", devices=(DeviceObservation(0, tls=tls, expiry=expiry),))

    assert [one.consequence for one in found] == consequences


@pytest.mark.parametrize(("downs", "fires"), [(3, True), (2, False), (None, False)])
def test_a_link_that_goes_down(downs: int | None, fires: bool) -> None:
    seen = DeviceObservation(0, link="UP", downs=downs, changed="Wed Aug  2 03:08:42 2023")
    found = findings("HCD209", devices=(seen, DeviceObservation(1, link="DOWN", downs=9)))

    assert [one.devices for one in found] == [(0,)] * fires
    assert not fires or "went down 3 times in an hour, last at Wed Aug  2 03:08:42 2023" in found[0].message


@pytest.mark.parametrize(
    ("state", "listed", "words"),
    [
        ("absent", (), "=/list.json: the file does not exist on this host"),
        ("invalid", (), "=/list.json: this is not a JSON object with a list of addresses in host_ip"),
        ("file", ("10.0.0.1",), "/list.json (HCCL_WHITELIST_FILE) does not list 10.0.0.2"),
        ("file", ("10.0.0.2", "10.0.0.1", "10.0.0.9"), ""),
        ("", (), ""),  # a relative path
    ],
)
def test_the_white_list(state: str, listed: tuple[str, ...], words: str) -> None:
    variables = {"HCCL_WHITELIST_DISABLE": "0", "HCCL_WHITELIST_FILE": "/list.json"}
    found = findings("HCD323", 16, white_list=state, white_listed=listed, variables=variables)
    off = {**variables, "HCCL_WHITELIST_DISABLE": "1"}

    assert [one.message.endswith(words) for one in found] == [True] * bool(words)
    assert findings("HCD323", 16, white_list=state, white_listed=listed, variables=off) == []


def test_a_host_without_npus_is_one_finding() -> None:
    report = validate(json.dumps(table("1.0", 1, 8)).encode())
    seen = {"node1": Observation(local_addresses=("10.0.0.1",))}

    found = examine(seen, Job(report, "910a"), Selection()).findings

    assert [one.check for one in found if one.consequence == "stops"] == ["HCD101"]
    assert "doctor --cpu" in found[0].remedy
    assert examine(seen, Job(), Selection()).fails()
    assert not examine(seen, Job(report, "910a", cpu=True), Selection()).fails()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"shm": 16 << 30, "shm_free": 63 << 20}, "/dev/shm has 63 MiB of free space"),
        ({"shm": 16 << 30, "shm_free": 64 << 20}, ""),
        ({"shm": 64 << 20, "shm_free": 0}, "/dev/shm has 64 MiB, too little"),
        ({"tmp_free": (64 << 20) - 1}, "the folder for temporary files (TMPDIR or /tmp) has 63 MiB"),
        ({"tmp_free": 64 << 20}, ""),
        ({"log_free": 1 << 40, "log_files": 0}, "has no room for another file (inodes)"),
        ({"log_free": 1 << 40, "log_files": 1}, ""),
    ],
)
def test_disks(sizes: dict[str, int], message: str) -> None:
    case = Case(
        Observation(nodes=(0,), manager_nodes=("davinci_manager", "devmm_svm", "hisi_hdc"), sizes=sizes)
    )
    found = list(judge("node1", case))

    assert len(found) == bool(message)
    assert not message or (message in found[0].message and found[0].consequence == "may-stop")


def test_the_port_of_the_leader_is_in_use() -> None:
    environ = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
    use = PortUse(29500, True, 4711, "python3")

    def found(**differs: Any) -> list[HostFinding]:
        seen = {"local_addresses": ("10.0.0.1",), "busy_ports": (use,), "variables": environ, **differs}
        return findings("HCD303", **seen)

    assert [one.message for one in found()] == [
        "MASTER_PORT=29500, but port 29500 is in use by process 4711 (python3)"
    ]
    assert found(busy_ports=(PortUse(29500),)) == found(local_addresses=()) == found(variables={}) == []


@pytest.mark.parametrize(
    ("product", "mode", "refused"),
    [("a2", "CCU_MS", True), ("a5", "CCU_MS", False), ("a5", "HOST", True), (None, "CCU_MS", False)],
)
def test_variables_are_read_as_the_product_does(product: str | None, mode: str, refused: bool) -> None:
    case = Case(Observation(nodes=(0,), variables={"HCCL_OP_EXPANSION_MODE": mode}), product=product)
    found = [one for one in judge("node1", case) if one.check == "HCD307"]

    assert [one.message.partition(":")[0] for one in found] == (
        [f'HCCL_OP_EXPANSION_MODE="{mode}"'] if refused else []
    )
    assert all(one.remedy.startswith("set it to AI_CPU, ") for one in found)
