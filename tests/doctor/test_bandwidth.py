"""Which pairs of devices are measured, and which are slow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.codec import DecodeError
from hccl_tools.doctor.bandwidth import obstacle, pairs
from hccl_tools.doctor.check_input import Case
from hccl_tools.doctor.findings import compare
from hccl_tools.host.observation import (
    BandwidthObservation,
    DeviceProcess,
    NpuObservation,
    Observation,
    from_json,
)
from hccl_tools.table.products import PRODUCTS
from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.doctor.findings import HostFinding


def measured(tmp_path: Path, product: str, made: dict[str, Any], *, without: str = "") -> list[str]:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(made))
    read = validate(path, product=product).table
    assert read is not None
    cases = {one.server_id: Case(Observation()) for one in read.servers if one.server_id != without}
    return [f"{one}: {one.kind}" for one in pairs(read, PRODUCTS[product], cases)]


def test_two_servers_are_one_pair_per_rail(tmp_path: Path) -> None:
    assert measured(tmp_path, "a2", table(servers=2)) == [
        "devices 0 and 1 of 10.0.0.1: HCCS inside servers",
        "devices 0 and 1 of 10.0.0.2: HCCS inside servers",
        "device 0 of 10.0.0.1 and device 0 of 10.0.0.2: RoCE between servers",
        "device 1 of 10.0.0.1 and device 1 of 10.0.0.2: RoCE between servers",
    ]


def test_a_host_is_left_out(tmp_path: Path) -> None:
    found = measured(tmp_path, "a2", table(servers=3, devices=1), without="10.0.0.2")

    assert found == ["device 0 of 10.0.0.1 and device 0 of 10.0.0.3: RoCE between servers"]


def test_a_device_without_one_at_its_place_in_the_next_server_has_no_pair_there(tmp_path: Path) -> None:
    uneven = table(servers=2)
    del uneven["server_list"][1]["device"][1]

    assert measured(tmp_path, "a2", uneven) == [
        "devices 0 and 1 of 10.0.0.1: HCCS inside servers",
        "device 0 of 10.0.0.1 and device 0 of 10.0.0.2: RoCE between servers",
    ]


def test_the_kinds_of_link_of_a_910a(tmp_path: Path) -> None:
    found = measured(tmp_path, "910a", table(devices=8))

    assert len(found) == 7
    assert [one for one in found if "HCCS" not in one] == [
        "devices 3 and 4 of 10.0.0.1: an unknown link inside servers"
    ]


def test_super_pods(tmp_path: Path) -> None:
    found = measured(tmp_path, "a3", table("1.2", servers=4, pods=2))

    kinds = [one.rpartition(": ")[2] for one in found]
    assert [kinds.count(kind) for kind in dict.fromkeys(kinds)] == [4, 4, 6]
    assert list(dict.fromkeys(kinds)) == [
        "SIO inside servers", "HCCS between servers", "RoCE between servers"
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["2.0", "group_list"])
def test_other_formats(tmp_path: Path, form: str) -> None:
    product = "a5" if form == "2.0" else "910a"
    assert len(measured(tmp_path, product, table(form, servers=2, devices=2))) == 4


def findings(*bandwidths: float, verdict: str = "success", link: str = "RoCE") -> list[HostFinding]:
    """Return the findings on a ring of hosts with these bandwidths, from each host to the next."""
    count = len(bandwidths)
    seen = {
        f"node{number}": Observation(
            bandwidths=(
                BandwidthObservation(0, f"node{(number + 1) % count}", 0, link, value, verdict),
            )
        )
        for number, value in enumerate(bandwidths)
    }  # fmt: skip
    return list(compare({host: Case(one) for host, one in seen.items()}))


def test_equal_pairs_are_a_note() -> None:
    (only,) = findings(20.0, 19.0, 21.5, 20.5)

    assert (only.check, only.consequence) == ("HCD607", "note")
    assert only.message == (
        "4 pairs measured; the slowest: device 0 of node1 and device 0 of node2 (19.00 GB/s), "
        "device 0 of node0 and device 0 of node1 (20.00 GB/s), "
        "device 0 of node3 and device 0 of node0 (20.50 GB/s)"
    )


def test_the_pairs_of_a_slow_device() -> None:
    slow = findings(20.0, 10.0, 9.0, 20.0)[0]

    assert (slow.check, slow.consequence) == ("HCD605", "slows")
    assert slow.message == (
        "2 of 4 pairs over RoCE between servers have less than 75% of the median of 20.00 GB/s: "
        "device 0 of node2 and device 0 of node3 (9.00 GB/s), "
        "device 0 of node1 and device 0 of node2 (10.00 GB/s); all have device 0 of node2"
    )
    assert set(slow.hosts) == {"node1", "node2", "node3"}


def test_kinds_of_link_are_not_compared_with_each_other() -> None:
    seen = Observation(
        bandwidths=(
            BandwidthObservation(0, "node0", 1, "HCCS", 100.0, "NULL"),
            BandwidthObservation(0, "node1", 0, "RoCE", 20.0, "NULL"),
        )
    )

    assert [one.check for one in compare({"node0": Case(seen)})] == ["HCD607"]


def test_a_wrong_sum_stops() -> None:
    (wrong,) = [one for one in findings(20.0, 20.0, verdict="failed") if one.check == "HCD606"]

    assert wrong.consequence == "stops"
    assert wrong.message.startswith("the sum over 2 pairs is wrong: ")


def test_a_host_whose_devices_are_not_known_to_be_free() -> None:
    npus = (NpuObservation(0, 0, 0),)

    assert obstacle(Case(Observation(npus=npus))) == ""
    assert "npu-smi" in obstacle(Case(Observation()))
    busy = Observation(npus=npus, processes=(DeviceProcess(4711, 3, "python"),))
    assert obstacle(Case(busy)).startswith("process 4711 is on device 3")


def test_a_measurement_of_a_host_that_was_asked_is_refused() -> None:
    seen = Observation(bandwidths=(BandwidthObservation(0, "node1", 0, "RoCE", 20.0, "NULL"),))

    with pytest.raises(DecodeError, match="no host measures them when it is asked"):
        from_json(json.loads(json.dumps(seen.as_json())))
