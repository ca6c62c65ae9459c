"""The address of a host: what the user may state, and what the kernel says in namespaces of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.host import host

_ASK = (
    "from hccl_tools.host.host import own_address\n"
    "from hccl_tools.errors import DiscoveryError\n"
    "try: print('|'.join(own_address()))\n"
    "except DiscoveryError as error: print(error.message, '|', error.hint)\n"
)


def in_namespace(*commands: str) -> str:
    """Ask for the address in a network of our own, set up by ``ip`` commands."""
    setup = "".join(f"ip {command} && " for command in commands)
    script = f'{setup}exec "{sys.executable}" -c "$ASK"'
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", script],
        check=True, capture_output=True, text=True, timeout=60, env={**os.environ, "ASK": _ASK},
    )  # fmt: skip
    return done.stdout.strip()


needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None,
    reason="network namespaces need root, unshare and ip",
)
LOOPBACK = "link set lo up"
CARD = ("link add d0 type veth peer name p0", "link set d0 up", "link set p0 up")


@pytest.mark.bed
@needs_namespaces
class TestOwnAddress:
    def test_the_address_on_the_way_out(self) -> None:
        assert in_namespace(
            LOOPBACK, *CARD, "addr add 10.9.8.7/24 dev d0", "addr add 10.5.5.5/24 dev d0",
            "route add default via 10.5.5.1",
        ).startswith("10.5.5.5|the address by which this host reaches its network")  # fmt: skip

    def test_the_only_address_without_a_way_out(self) -> None:
        found = in_namespace(LOOPBACK, *CARD, "addr add 10.9.8.7/24 dev d0")

        assert found == "10.9.8.7|the only address of this host"

    def test_several_addresses_and_no_way_out(self) -> None:
        found = in_namespace(
            LOOPBACK, *CARD, "addr add 10.9.8.7/24 dev d0",
            "link add d1 type veth peer name p1", "link set d1 up", "addr add 10.1.1.1/24 dev d1",
        )  # fmt: skip

        assert found.startswith("this host has several addresses (10.1.1.1, 10.9.8.7) and no default route")
        assert "--server_ip" in found

    def test_loopback_and_link_local_are_never_taken(self) -> None:
        found = in_namespace(
            LOOPBACK,
            *CARD,
            "addr add 169.254.1.1/16 dev d0",
            "route add default via 169.254.0.1",
        )

        assert found.startswith("this host has no address that other hosts can reach")

    def test_a_host_of_ipv6_alone(self) -> None:
        found = in_namespace(
            LOOPBACK, *CARD, "-6 addr add 2001:db8:1::7/64 dev d0 nodad", "-6 route add default dev d0"
        )

        assert found.startswith("2001:db8:1::7|")


@pytest.mark.parametrize("text", ["10.0.0.1", " 10.0.0.1 ", "192.168.1.200", "2001:db8::1"])
def test_stated_addresses(text: str) -> None:
    assert host.stated_address(text) == (text.strip(), None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("127.0.0.1", "this machine only"),
        ("127.8.8.8", "this machine only"),
        ("::1", "this machine only"),
        ("169.254.3.4", "link-local"),
        ("fe80::1", "link-local"),
    ],
)
def test_local_addresses_are_taken_when_asked_for_and_said(text: str, said: str) -> None:
    address, told = host.stated_address(text)

    assert address == text
    assert said in (told or "")


@pytest.mark.parametrize(
    "text",
    ["not-an-ip", "", "10.0.0", "10.0.0.256", "01.2.3.4", "0.0.0.0", "255.255.255.255", "224.0.0.1", "::",
     "ff02::1", "10.0.0.1/24", "10.0.0.1,10.0.0.2", "10.0.0.1\n10.0.0.2", "\x00"],
)  # fmt: skip
def test_what_is_no_address_of_a_host(text: str) -> None:
    with pytest.raises(UsageError, match="--server_ip") as caught:
        host.stated_address(text)
    assert caught.value.exit_code == 2


def test_this_machine_has_an_address_or_says_why_not() -> None:
    try:
        found, how = host.own_address()
    except DiscoveryError as error:
        assert "--server_ip" in (error.hint or "")  # noqa: PT017
    else:
        assert not found.startswith("127.")
        assert how
