"""What uses a port of a host, with real sockets on loopback addresses of their own."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from hccl_tools.host import port_users
from hccl_tools.host.observation import PortUse
from hccl_tools.host.site_defaults import Site
from hccl_tools.processes import procfs
from tests.support.sockets import ADDRESS, OTHER_ADDRESS, connection, listener

if TYPE_CHECKING:
    from pathlib import Path

HERE = Site({})


def own(port: int) -> PortUse:
    """Return the use of a port by a listener of this process."""
    return PortUse(port, True, os.getpid(), procfs.command(os.getpid()))


def test_a_listener_with_its_program() -> None:
    with listener() as first, listener() as second:
        found = port_users.in_use((first, second, first), ADDRESS, HERE)

        assert found == (own(first), own(second))
        assert port_users.in_use((first,), OTHER_ADDRESS, HERE) == ()
        assert port_users.in_use((first,), "", HERE) == (own(first),)
    assert port_users.in_use((first, second), ADDRESS, HERE) == ()


@pytest.mark.parametrize("closed", [False, True], ids=["open", "TIME_WAIT"])
def test_a_connection(closed: bool) -> None:
    with connection(closed=closed) as port:
        assert port_users.in_use((port,), ADDRESS, HERE) == (PortUse(port),)
        assert port_users.in_use((port,), OTHER_ADDRESS, HERE) == ()
        assert port_users.in_use((port,), "", HERE) == (PortUse(port),)


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])
def test_a_listener_at_all_addresses(everywhere: str) -> None:
    with listener(everywhere) as port:
        assert port_users.in_use((port,), ADDRESS, HERE) == (own(port),)


def test_a_listener_for_ipv6_alone_leaves_the_port_to_ipv4() -> None:
    with listener("::", dual=False) as port:
        assert port_users.in_use((port,), ADDRESS, HERE) == ()


def test_a_listener_at_an_ipv4_address_in_ipv6() -> None:
    with listener(f"::ffff:{ADDRESS}") as port:
        assert port_users.in_use((port,), ADDRESS, HERE) == (own(port),)


def test_a_port_that_is_only_bound_is_asked_for_by_another_program() -> None:
    with socket.socket() as bound:
        bound.bind((ADDRESS, 0))

        assert port_users.in_use((bound.getsockname()[1],), ADDRESS, HERE) == ()


def test_the_tables_of_a_mounted_host(tmp_path: Path) -> None:
    site = Site({"HCCL_TOOLS_ROOT": str(tmp_path)})
    with listener() as port:
        assert port_users.in_use((port,), ADDRESS, site) == (own(port),)  # no /proc there
        (tmp_path / "proc" / "net").mkdir(parents=True)
        for table in ("tcp", "tcp6"):
            (tmp_path / "proc" / "net" / table).write_text("  sl  local_address rem_address   st\n")
        assert port_users.in_use((port,), ADDRESS, site) == ()


ADDRESSES = {
    "lo": "127.0.0.1",
    "docker0": "172.17.0.1",
    "enp1s0": "10.0.0.5",
    "eth0": "10.0.1.5",
    "ib0": None,
}


@pytest.mark.parametrize(
    ("environ", "local", "expected"),
    [
        ({}, (), "10.0.0.5"),
        ({}, ("127.0.0.1",), "10.0.0.5"),  # the server_id of a table for one host
        ({}, ("10.0.1.5", "10.0.0.5"), "10.0.1.5"),
        ({"HCCL_SOCKET_IFNAME": "docker"}, ("10.0.1.5",), "172.17.0.1"),
        ({"HCCL_SOCKET_IFNAME": "^enp,docker,lo"}, (), "10.0.1.5"),
        ({"HCCL_SOCKET_IFNAME": "=ib0"}, ("10.0.1.5",), ""),
        ({"HCCL_IF_IP": "127.0.0.2", "HCCL_SOCKET_IFNAME": "eth"}, ("10.0.1.5", "127.0.0.2"), "127.0.0.2"),
        ({"HCCL_IF_IP": "192.0.2.1"}, ("10.0.1.5",), "10.0.1.5"),  # not of this host
    ],
)
def test_the_order(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], local: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setattr(port_users, "interface_address", ADDRESSES.get)

    assert port_users.hccl_address(environ, local, tuple(ADDRESSES)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("lo", "docker0", "ib0"), "172.17.0.1"), (("lo", "ib0"), "127.0.0.1"), ((), "")],
)
def test_docker_and_loopback_are_last(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setattr(port_users, "interface_address", ADDRESSES.get)

    assert port_users.hccl_address({}, (), names) == expected


def test_a_real_interface() -> None:
    assert port_users.hccl_address({"HCCL_SOCKET_IFNAME": "=lo"}, (), ("lo",)) == "127.0.0.1"
