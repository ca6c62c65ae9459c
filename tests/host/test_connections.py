"""Which hosts are reached over TCP, with real sockets on loopback addresses."""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from hccl_tools.host import connections, large_packets, naming
from hccl_tools.host.connections import Place
from tests.support.sockets import ADDRESS, listener

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTS = [f"10.0.{number // 250}.{1 + number % 250}" for number in range(100)]


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


@contextmanager
def full_listener() -> Iterator[int]:
    """Listen on a port without accepting, until connections to it get no answer."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind((ADDRESS, 0))
        server.listen(0)
        for _ in range(8):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield int(server.getsockname()[1])


def test_an_answer_of_any_kind_is_one() -> None:
    with listener() as port:
        assert connections.reach([Place(ADDRESS, port), Place(ADDRESS, closed_port())]) == ((), ())


def test_no_answer() -> None:
    with full_listener() as port, listener() as other:
        found = connections.try_all([Place(ADDRESS, port), Place(ADDRESS, other)], seconds=1)

    assert {one.place.port: one.reason for one in found} == {port: "no answer within 1 s", other: ""}


def test_an_address_without_a_route() -> None:
    lost, slow = connections.reach([Place("255.255.255.255", 60015)])

    assert [one.address for one in lost] == ["255.255.255.255"]
    assert lost[0].reason
    assert slow == ()


def test_more_hosts_than_connections_at_the_same_time() -> None:
    port = closed_port()
    found = connections.try_all(Place(f"127.0.1.{number}", port) for number in range(1, 251))

    assert len(found) == 250
    assert not any(one.reason for one in found)


def test_large_packets_that_arrive() -> None:
    assert large_packets.cut(["127.0.0.2", "127.0.0.3"], 1500, closed_port()) == ()
    assert large_packets.cut(["127.0.0.2"], 0) == large_packets.cut([], 1500) == ()


@pytest.mark.parametrize(
    ("environ", "cann", "port"),
    [
        ({}, "8.0.0", 60015),
        ({}, "", 60015),
        ({}, "8.5.0", 60031),
        ({"HCCL_IF_BASE_PORT": "50000"}, "8.0.0", 50015),
        ({"HCCL_IF_BASE_PORT": "text"}, "8.0.0", 60015),
    ],
)
def test_the_port_of_hccl(environ: dict[str, str], cann: str, port: int) -> None:
    assert connections.places(HOSTS[:2], 0, environ, cann) == [Place(host, port) for host in HOSTS[:2]]


def test_the_hosts_to_which_a_host_connects() -> None:
    own = "127.0.0.1"  # its address in the table stands for it; others of its kind are left out
    assert connections.places([own, "node7", *HOSTS[:2]], 29500, {}) == [
        *(Place(host, 60015) for host in HOSTS[:2]), Place(HOSTS[0], 29500),
    ]  # fmt: skip
    assert connections.places([own], 29500, {}) == []
    assert len(connections.places(HOSTS, 0, {})) == connections.MOST_HOSTS


def test_the_names_in_variables() -> None:
    environ = {
        "MASTER_ADDR": "node1", "MASTER_PORT": "29500", "ASCEND_MF_STORE_URL": "tcp://PIP:PORT",
        "HCCL_X": "tcp://[fd00::1]:80/path", "ASCEND_HOME_PATH": "/usr/local", "MS_URL": "env://",
    }  # fmt: skip

    assert [tuple(one) for one in naming.named_hosts(environ)] == [
        ("MASTER_ADDR", "node1", "29500"),
        ("ASCEND_MF_STORE_URL", "PIP", "PORT"),
        ("HCCL_X", "fd00::1", "80"),
    ]


def test_the_addresses_of_names() -> None:
    found = naming.looked_up(["localhost", "10.0.0.7", "no such name"])

    assert "127.0.0.1" in found["localhost"]
    assert (found["10.0.0.7"], found["no such name"]) == (("10.0.0.7",), ())
