"""The tree of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from hccl_tools import formats
from hccl_tools.show import description, tree
from hccl_tools.show.tree import Style
from tests.support.clusters import tables
from tests.support.tables import JSON, table

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable


def drawn(value: JSON, style: Style) -> list[str]:
    return list(tree.lines(description.servers(formats.read(value)), style))


def test_plain_letters_where_the_terminal_has_no_others() -> None:
    assert drawn(table("1.0", 2, 1), Style(ascii_only=True)) == [
        "|-- 10.0.0.1  ranks 0",
        "|   `-- rank 0  device 0  192.168.0.100",
        "`-- 10.0.0.2  ranks 1",
        "    `-- rank 1  device 0  192.168.1.100",
    ]


def test_groups() -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"] = value["server_list"][0]["device"][3:5]

    assert drawn(value, Style(ascii_only=True, group_size=4)) == [
        "`-- 10.0.0.1  ranks 3-4",
        "    |-- group 0-3",
        "    |   `-- rank 3  device 3  192.168.0.103",
        "    `-- group 4-7",
        "        `-- rank 4  device 4  192.168.0.104",
    ]


def test_many_servers_are_folded_in_the_middle() -> None:
    lines = drawn(table("1.0", 40, 1), Style(ascii_only=True))

    assert len(lines) == 33
    assert lines[16] == "|-- ... 8 more (--all) ..."
    assert lines[-1] == "`-- 10.0.0.40  ranks 39  devices 0"


def test_what_does_not_print_is_escaped() -> None:
    value = table("1.0", 1, 1)
    value["server_list"][0]["server_id"] = "\x1b[31mred"

    assert drawn(value, Style(ascii_only=True))[0] == "`-- \\u001b[31mred  ranks 0"


def test_pods_hosts_and_no_address() -> None:
    value = table("group_list", 1, 1)
    del value["group_list"][0]["instance_list"][0]["devices"][0]["device_ip"]

    assert drawn(value, Style(ascii_only=True)) == [
        "`-- 10.0.0.1  ranks 0  pod job0",
        "    `-- rank 0  device 0  no address",
    ]


@given(tables(), st.integers(1, 60))
def test_no_line_is_wider_than_the_terminal(drawn_table: RankTable, width: int) -> None:
    lines = tree.lines(description.servers(drawn_table), Style(width=width, group_size=4))

    assert max(map(len, lines)) <= width


@given(tables())
def test_every_rank_is_there_once(drawn_table: RankTable) -> None:
    servers = description.servers(drawn_table)

    assert sorted(rank for server in servers for rank in server.rank_ids) == list(range(len(drawn_table)))
    assert all(
        sorted(one.local_rank for one in server.ranks) == list(range(len(server.ranks))) for server in servers
    )
