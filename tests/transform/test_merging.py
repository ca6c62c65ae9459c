"""Many tables become one: order, ranks, what survives, what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools import formats
from hccl_tools.errors import TableError
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.transform.merge_conflicts import ConflictLocation, MergeConflictError
from hccl_tools.transform.merge_state import TableBatch
from hccl_tools.transform.merging import merge, merge_batches
from hccl_tools.validation.checker import check_table
from tests.support.clusters import host, host_table

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable

FORMATS = ("1.0", "1.2", "2.0", "group_list")


def merged(*numbers: int, table_format: str = "1.0", order: str = "given") -> RankTable:
    tables = [(f"{number}.json", host_table(number, table_format)) for number in numbers]
    return merge(tables, order=order).table  # type: ignore[arg-type]


def servers_and_ranks(table: RankTable) -> list[tuple[str, list[int | None]]]:
    return [(server.server_id, [table.rank_numbers[row] for row in server.rows]) for server in table.servers]


@pytest.mark.parametrize("table_format", FORMATS)
def test_two_hosts_become_one_good_table(table_format: str) -> None:
    table = merged(1, 2, table_format=table_format)

    assert len(table.servers) == 2
    assert set(table.rank_numbers) == set(range(16))
    assert check_table(table).ok
    assert formats.read(formats_value(table)) == table


def formats_value(table: RankTable) -> object:
    import json

    return json.loads("".join(formats.write(table)))


def test_ranks_run_on_in_the_order_given() -> None:
    assert servers_and_ranks(merged(9, 2)) == [
        ("10.1.0.9", list(range(8))),
        ("10.1.0.2", list(range(8, 16))),
    ]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("given", ["10.1.0.10", "10.1.0.3", "10.1.0.2"]),
        ("server-id", ["10.1.0.10", "10.1.0.2", "10.1.0.3"]),
        ("ip", ["10.1.0.2", "10.1.0.3", "10.1.0.10"]),
    ],
)
def test_orders(order: str, expected: list[str]) -> None:
    table = merged(10, 3, 2, order=order)

    assert [server.server_id for server in table.servers] == expected
    assert table.rank_numbers == list(range(24))


@pytest.mark.parametrize("order", ["given", "ip"])
def test_a_tables_own_rank_order_stays(order: str) -> None:
    value = host(1)
    for place, device in enumerate(value["server_list"][0]["device"]):
        device["rank_id"] = str(15 - place)  # 15 to 8, as cut out of a larger table

    table = merge([("1", formats.read(value)), ("2", host_table(2))], order=order).table  # type: ignore[arg-type]

    assert servers_and_ranks(table) == [
        ("10.1.0.1", list(range(7, -1, -1))),
        ("10.1.0.2", list(range(8, 16))),
    ]


def test_rank_list_of_a_2_0_table_is_in_rank_order() -> None:
    value = host(1, "2.0", devices=4)
    value["rank_list"].reverse()

    table = merge([("2", host_table(2, "2.0")), ("1", formats.read(value))]).table

    assert table.rank_ids == list(range(12))
    assert table.device_ids == [*range(8), *range(4)]


def test_a_group_list_is_numbered_as_hccl_does() -> None:
    table = merged(2, 10, table_format="group_list")

    assert servers_and_ranks(table) == [
        ("10.1.0.2", list(range(8, 16))),
        ("10.1.0.10", list(range(8))),
    ]


def test_groups_of_one_name_are_joined() -> None:
    other = host(3, "group_list")
    other["group_list"][0]["group_name"] = "another"
    tables = [
        ("1", host_table(1, "group_list")),
        ("3", formats.read(other)),
        ("2", host_table(2, "group_list")),
    ]

    table = merge(tables).table

    assert [(group.group_name, list(group.servers)) for group in table.groups or ()] == [
        ("g0", [0, 1]),
        ("another", [2]),
    ]
    assert [server.server_id for server in table.servers] == ["10.1.0.1", "10.1.0.2", "10.1.0.3"]


def test_super_pods_survive() -> None:
    other = host(3, "1.2")
    other["super_pod_list"][0]["super_pod_id"] = "1"
    tables = [("1", host_table(1, "1.2")), ("2", host_table(2, "1.2")), ("3", formats.read(other))]

    pods = merge(tables).table.super_pods

    assert [(pod.super_pod_id, pod.server_ids) for pod in pods or ()] == [
        ("0", ["10.1.0.1", "10.1.0.2"]),
        ("1", ["10.1.0.3"]),
    ]


def clustered(number: int, cluster: str, az: str = "az0") -> RankTable:
    value = host(number)
    servers = [{"server_id": f"10.1.0.{number}"}]
    value["cluster_list"] = [
        {"cluster_id": cluster, "network_type": "ROCE", "az_id": az, "server_list": servers}
    ]
    return formats.read(value)


def test_clusters_survive() -> None:
    table = merge([("1", clustered(1, "a")), ("2", clustered(2, "a")), ("3", clustered(3, "b"))]).table

    clusters = [
        (entry["cluster_id"], [one["server_id"] for one in entry["server_list"]])
        for entry in table.fields["cluster_list"]
    ]
    assert clusters == [("a", ["10.1.0.1", "10.1.0.2"]), ("b", ["10.1.0.3"])]
    assert check_table(table).ok


def test_one_cluster_described_in_two_ways() -> None:
    with pytest.raises(MergeConflictError, match='describes cluster "a" differently from earlier tables'):
        merge([("1", clustered(1, "a")), ("2", clustered(2, "a", az="az1"))])


def refused(*tables: tuple[str, object]) -> MergeConflictError:
    with pytest.raises(MergeConflictError) as caught:
        merge([(name, formats.read(value)) for name, value in tables])
    return caught.value


def test_a_server_twice() -> None:
    error = refused(("a", host(1)), ("b", {**host(1), "note": "copy"}))

    assert error.message == 'server_id "10.1.0.1" is in a and b'
    assert error.places == (
        ConflictLocation("a", 0, None, "server_id"),
        ConflictLocation("b", 0, None, "server_id"),
    )


def test_an_address_twice() -> None:
    other = host(2)
    other["server_list"][0]["device"][3]["device_ip"] = "192.168.1.105"

    error = refused(("a", host(1)), ("b", other))

    assert error.message == 'device_ip "192.168.1.105" is in a and b'
    assert error.places == (
        ConflictLocation("a", 0, 5, "device_ip"),
        ConflictLocation("b", 0, 3, "device_ip"),
    )


def test_an_address_twice_in_two_spellings() -> None:
    one, other = host(1, devices=1), host(2, devices=1)
    one["server_list"][0]["device"][0]["device_ip"] = "fd00::1"
    other["server_list"][0]["device"][0]["device_ip"] = "fd00:0::1"

    assert "fd00:0::1" in refused(("a", one), ("b", other)).message


def test_a_super_device_id_twice_in_a_super_pod() -> None:
    other = host(2, "1.2")
    other["server_list"][0]["device"][0]["super_device_id"] = "65537"

    assert refused(("a", host(1, "1.2")), ("b", other)).message == 'super_device_id "65537" is in a and b'


def test_a_super_device_id_in_two_super_pods() -> None:
    other = host(2, "1.2")
    other["super_pod_list"][0]["super_pod_id"] = "1"
    other["server_list"][0]["device"][0]["super_device_id"] = "65537"

    assert merge([("a", host_table(1, "1.2")), ("b", formats.read(other))]).table.super_pods


def test_an_address_of_a_2_0_table_twice() -> None:
    other = host(2, "2.0")
    other["rank_list"][0]["level_list"][0]["rank_addr_list"][0]["addr"] = "10.9.1.1"

    assert refused(("a", host(1, "2.0")), ("b", other)).message == 'address "10.9.1.1" is in a and b'


def test_pods_may_share_a_host_but_not_its_devices() -> None:
    first, second = host(1, "group_list", devices=4), host(2, "group_list")
    entry = second["group_list"][0]["instance_list"][0]
    entry["server_id"] = "10.1.0.1"
    entry["devices"] = entry["devices"][4:]
    second["group_list"][0]["device_count"] = "4"

    assert len(merge([("a", formats.read(first)), ("b", formats.read(second))]).table) == 8

    entry["devices"][0]["device_id"] = "3"
    assert refused(("a", first), ("b", second)).message == 'device "3 of 10.1.0.1" is in a and b'


def test_its_own_earlier_output() -> None:
    tables = [("a.json", host_table(1)), ("b.json", host_table(2))]
    both = merge(tables).table

    with pytest.raises(MergeConflictError, match=r"^out.json already has the servers of a.json, b.json$"):
        merge([*tables, ("out.json", both)])


def test_its_own_output_from_when_there_were_fewer_hosts() -> None:
    both = merge([("a", host_table(1)), ("b", host_table(2))]).table

    with pytest.raises(MergeConflictError, match=r"^out already has the servers of a, b$"):
        merge([("out", both), ("a", host_table(1)), ("b", host_table(2)), ("c", host_table(3))])


def test_two_formats() -> None:
    error = refused(("a", host(1)), ("b", host(2, "1.2")))

    assert error.message == "cannot merge b (a 1.2 table) and a (a 1.0 table)"
    assert error.hint == "convert one of them first: `hccl-tools convert b --to 1.0`"


def test_a_status_that_is_not_completed() -> None:
    error = refused(("a", host(1)), ("b", {**host(2), "status": "initializing"}))

    assert error.message == 'b is not ready: its status is "initializing"'
    assert "--wait" in (error.hint or "")


def test_a_key_with_two_values() -> None:
    error = refused(("a", {**host(1), "IsMindIEEPJob": True}), ("b", {**host(2), "IsMindIEEPJob": False}))

    assert error.message == 'a and b differ in "IsMindIEEPJob"'


def test_super_pods_on_one_side_only() -> None:
    other = host(2, "1.2")
    del other["super_pod_list"]

    assert refused(("a", host(1, "1.2")), ("b", other)).message == "b has no super_pod_list, unlike a"


def test_no_address_to_sort_by() -> None:
    with pytest.raises(MergeConflictError, match='server "node1" has no address'):
        merge([("a", host_table(1, "2.0"))], order="ip")


def test_nothing_to_merge() -> None:
    with pytest.raises(TableError):
        merge([])


def test_a_batch_is_like_its_tables_one_by_one() -> None:
    value = host(1)
    value["server_list"] += host(2)["server_list"]
    value["server_count"] = "2"
    batch = TableBatch(["a", "b"], formats.read(value), [1, 1])

    together = merge_batches([batch, TableBatch.of("c", host_table(3))])

    assert together.table == merged(1, 2, 3)
    assert together.origins == ["a", "b", "c"]


def test_inputs_stay_as_they_are() -> None:
    table = host_table(1)
    merge([("a", table), ("b", host_table(2))], order="ip")

    assert table == host_table(1)


HOSTS = st.lists(st.integers(1, 250), min_size=3, max_size=5, unique=True)


@given(HOSTS, st.integers(1, 8), st.sampled_from(FORMATS), st.sampled_from(["given", "server-id"]))
def test_merging_is_associative(numbers: list[int], devices: int, table_format: str, order: str) -> None:
    tables = [(str(number), host_table(number, table_format, devices)) for number in numbers]

    def joined(some: list[tuple[str, RankTable]]) -> RankTable:
        return merge(some, order=order).table  # type: ignore[arg-type]

    left = joined([("left", joined(tables[:2])), *tables[2:]])
    right = joined([tables[0], ("right", joined(tables[1:]))])

    assert left == right == joined(tables)
    assert fingerprint(left) == fingerprint(right)


def test_super_pods_above_which_someone_wrote_1_0() -> None:
    """HCCL ignores them; they are neither dropped without a word nor mixed."""
    one, other = ({**host(number, "1.2"), "version": "1.0"} for number in (1, 2))

    assert refused(("a", one), ("b", other)).message == 'a and b differ in "super_pod_list"'
