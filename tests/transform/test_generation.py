"""Facts in, table out."""

from __future__ import annotations

import pytest

from hccl_tools import formats
from hccl_tools.errors import TableError
from hccl_tools.host import simulated
from hccl_tools.host.facts import DeviceFacts, HostFacts
from hccl_tools.table.products import PRODUCTS
from hccl_tools.transform import generation
from hccl_tools.validation import checker


def host(server_id: str, *devices: DeviceFacts, super_pod_id: str | None = None) -> HostFacts:
    return HostFacts(server_id, "stated", "910a", "stated", devices, super_pod_id)


def test_ranks_run_along_the_hosts_in_their_order() -> None:
    made = generation.table(
        [
            host("10.0.0.2", DeviceFacts(5, ("10.1.0.5",)), DeviceFacts(4, ("10.1.0.4",))),
            host("10.0.0.1", DeviceFacts(0, ("10.1.1.0",)), DeviceFacts(1, ("10.1.1.1",))),
        ]
    )

    assert [(d.server_id, d.device_id, d.device_ip, d.rank_id) for d in made.devices()] == [
        ("10.0.0.2", 5, "10.1.0.5", 0), ("10.0.0.2", 4, "10.1.0.4", 1),
        ("10.0.0.1", 0, "10.1.1.0", 2), ("10.0.0.1", 1, "10.1.1.1", 3),
    ]  # fmt: skip
    assert generation.file_name(made) == "hccl_2s_4p.json"


def test_several_ports_of_one_device() -> None:
    made = generation.table([host("10.0.0.1", DeviceFacts(0, ("10.1.0.1", "10.2.0.1")))])

    assert made.device_ips == ["10.1.0.1,10.2.0.1"]


def test_devices_without_addresses_have_no_such_key() -> None:
    text = "".join(formats.write(generation.table([host("10.0.0.1", DeviceFacts(0))])))

    assert "device_ip" not in text


def test_levels_of_two_hosts() -> None:
    hosts = [host(f"10.0.0.{n}", *simulated.devices(PRODUCTS["a5"], n, f"10.0.0.{n}")) for n in (1, 2)]

    made = generation.table(hosts, table_format="2.0")

    assert checker.check_table(made, product="a5").findings == ()
    assert [len(server.rows) for server in made.servers] == [8, 8]
    assert generation.file_name(made) == "hccl_2s_16p.json"
    outer = {levels[1]["net_instance_id"] for levels in made.column("level_list")}
    assert outer == {"0"}


def test_levels_are_what_a_2_0_table_is_made_of() -> None:
    with pytest.raises(TableError, match="no network levels"):
        generation.table([host("10.0.0.1", DeviceFacts(0, ("10.1.0.1",)))], table_format="2.0")


def test_the_file_name_ascends() -> None:
    made = generation.table([host("10.0.0.1", *(DeviceFacts(n, (f"10.1.0.{n}",)) for n in (10, 9, 2)))])

    assert generation.file_name(made) == "hccl_3p_2910_10.0.0.1.json"


def test_super_pods() -> None:
    hosts = [
        host(f"10.0.0.{n}", *simulated.devices(PRODUCTS["a3"], n), super_pod_id="0" if n < 3 else "1")
        for n in (1, 2, 3)
    ]

    made = generation.table(hosts, table_format="1.2")

    assert made.super_pods is not None
    assert [(pod.super_pod_id, pod.server_ids) for pod in made.super_pods] == [
        ("0", ["10.0.0.1", "10.0.0.2"]), ("1", ["10.0.0.3"]),
    ]  # fmt: skip
    assert made.column("super_device_id")[0] == "0"


def test_a_super_pod_table_needs_its_ids() -> None:
    with pytest.raises(TableError, match="no super_device_id"):
        generation.table([host("10.0.0.1", DeviceFacts(0), super_pod_id="0")], table_format="1.2")
    with pytest.raises(TableError, match="has no super pod"):
        generation.table([host("10.0.0.1", DeviceFacts(0, (), "", 1))], table_format="1.2")
