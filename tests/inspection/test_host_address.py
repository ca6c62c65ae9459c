"""The address on which HCCL listens."""

from __future__ import annotations

import pytest

from hccl_tools.inspection import host_address

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
    monkeypatch.setattr(host_address, "interface_address", ADDRESSES.get)

    assert host_address.hccl_address(environ, local, tuple(ADDRESSES)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("lo", "docker0", "ib0"), "172.17.0.1"), (("lo", "ib0"), "127.0.0.1"), ((), "")],
)
def test_docker_and_loopback_are_last(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setattr(host_address, "interface_address", ADDRESSES.get)

    assert host_address.hccl_address({}, (), names) == expected


def test_a_real_interface() -> None:
    assert host_address.hccl_address({"HCCL_SOCKET_IFNAME": "=lo"}, (), ("lo",)) == "127.0.0.1"
