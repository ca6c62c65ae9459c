from __future__ import annotations

import os

import pytest

from hccl_tools.host import local_addresses


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("0.0.0.0", False),
        ("::", False),
        ("198.51.100.1", False),  # TEST-NET-2
        ("127.0.0.01", False),
        ("a-name", False),
        ("127.0.0.1\0", False),
        ("", False),
    ],
)
def test_addresses_of_this_host(address: str, expected: bool) -> None:
    assert local_addresses.is_local(address) == expected


def test_every_interface_address_is_local_and_reachable() -> None:
    for address in local_addresses.interface_addresses():
        assert local_addresses.is_local(address)
        assert local_addresses.is_reachable(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "169.254.1.1", "fe80::1", "224.0.0.1", "0.0.0.0", "x"]
)
def test_addresses_that_others_cannot_reach(address: str) -> None:
    assert not local_addresses.is_reachable(address)


def test_names_of_this_host() -> None:
    assert local_addresses.is_this_host("localhost")
    assert local_addresses.is_this_host(os.uname().nodename)
    assert not local_addresses.is_this_host("198.51.100.1")
    assert not local_addresses.is_this_host("x" * 300)


def test_the_source_address_towards_this_host_is_the_destination() -> None:
    assert local_addresses.source_address("127.0.0.1") == "127.0.0.1"
    assert local_addresses.source_address("300.0.0.1") is None
    assert "127.0.0.1" not in local_addresses.addresses_towards(["127.0.0.1"])


def test_the_interface_with_an_address() -> None:
    assert local_addresses.interface_with("127.0.0.1") == "lo"
    for address in local_addresses.interface_addresses():
        name = local_addresses.interface_with(address)
        assert name is not None
        assert local_addresses.interface_address(name) == address
    assert local_addresses.interface_with("198.51.100.1") is None
    assert local_addresses.interface_with("2001:db8::7") is None
    assert local_addresses.interface_with("a-name") is None
