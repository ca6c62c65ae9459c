"""A part of a table: what is left, and how it is numbered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools import formats
from hccl_tools.errors import TableError
from hccl_tools.transform.merging import merge
from hccl_tools.transform.subsetting import subset
from hccl_tools.validation.checker import check_table
from tests.support.clusters import devices_of, host_table, tables

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable

FORMATS = ("1.0", "1.2", "2.0", "group_list")


def cluster(*numbers: int, table_format: str = "1.0") -> RankTable:
    return merge([(str(number), host_table(number, table_format)) for number in numbers]).table


@pytest.mark.parametrize("table_format", FORMATS)
def test_some_servers(table_format: str) -> None:
    names = {1: "node1", 3: "node3"} if table_format == "2.0" else {1: "10.1.0.1", 3: "10.1.0.3"}

    made = subset(cluster(1, 2, 3, table_format=table_format), servers=[names[3], names[1]])

    assert [server.server_id for server in made.servers] == [names[1], names[3]]
    assert made.rank_numbers == list(range(16))
    assert check_table(made).ok
    assert formats.read(json.loads("".join(formats.write(made)))) == made
    assert made == cluster(1, 3, table_format=table_format)


def test_some_devices_of_every_server() -> None:
    made = subset(cluster(1, 2), devices=[4, 5, 6, 7])

    assert made.device_numbers == [4, 5, 6, 7] * 2
    assert made.rank_numbers == list(range(8))


def test_super_pods_that_keep_no_server_go() -> None:
    table = cluster(1, 2, table_format="1.2")
    assert table.super_pods

    made = subset(table, servers=["10.1.0.1"])

    assert [pod.server_ids for pod in made.super_pods or ()] == [["10.1.0.1"]]


def test_clusters_that_keep_no_server_go() -> None:
    table = cluster(1, 2)
    table.fields["cluster_list"] = [
        {"cluster_id": name, "server_list": [{"server_id": f"10.1.0.{name}"}]} for name in "12"
    ]

    made = subset(table, servers=["10.1.0.2"])

    assert [entry["cluster_id"] for entry in made.fields["cluster_list"]] == ["2"]
    assert len(table.fields["cluster_list"]) == 2


def test_what_is_not_there() -> None:
    with pytest.raises(TableError, match=r'no server "10\.1\.0\.7"'):
        subset(cluster(1, 2), servers=["10.1.0.7"])
    with pytest.raises(TableError, match=r"server 10\.1\.0\.1 has no devices 8, 9"):
        subset(cluster(1, 2), devices=[7, 8, 9])


@given(tables(), st.data())
def test_ranks_keep_their_order(table: RankTable, data: st.DataObject) -> None:
    names = [server.server_id for server in table.servers]
    wanted = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))

    made = subset(table, servers=wanted)

    kept = [one for one in table.by_rank() if one.server_id in wanted]
    assert [(one.server_id, one.device_id) for one in made.by_rank()] == [
        (one.server_id, one.device_id) for one in kept
    ]
    assert made.rank_numbers is not None
    assert {one.rank_id for one in made.devices()} == set(range(len(made)))


@given(tables())
def test_all_of_it_is_the_same(table: RankTable) -> None:
    assert devices_of(subset(table)) == devices_of(table)
