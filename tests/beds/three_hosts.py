"""Three hosts with their own addresses, joined by a switch that can lose, delay and drop what they send."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds import network_host, ssh_servers
from tests.beds.daemons import need, program, start_helper
from tests.beds.network_host import configure, make_host

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.beds.network_host import Host

_SWITCH = Path(__file__).with_name("switch.py")
_NUMBERS = (1, 2, 3)
#: Fewer and larger frames than those of Ethernet: each costs the switch 20 us.
_MTU = "9000"
#: Have the kernel put checksums into what it sends, and send nothing larger than the MTU. Between interfaces
#: of one machine it leaves both to the receiver, but the switch passes on bytes.
_ADD_CHECKSUMS = """
import array, fcntl, socket, struct, sys
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
setting = array.array("I", [ETHTOOL_STXCSUM, 0])
request = struct.pack("16sP16x", sys.argv[1].encode(), setting.buffer_info()[0])
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), SIOCETHTOOL, request)
"""
PROGRAMS = (*network_host.PROGRAMS, "nice", *ssh_servers.PROGRAMS)
ADDRESSES = tuple(f"10.0.0.{number}" for number in _NUMBERS)


@dataclass(frozen=True)
class ThreeHosts:
    """The bed: three hosts, a program that takes the place of ``ssh`` between them, and their switch.

    A host can also be cut off by its own ``cut_off``, which pulls its cable: the host notices that. Nobody is
    told of the faults of the switch.
    """

    hosts: tuple[Host, Host, Host]
    ssh: Path
    switch: subprocess.Popen[str]

    def impair(self, *faults: dict[str, Any]) -> None:
        """Replace the faults of the network by these (see ``switch.Fault``); they are in force on return."""
        self._ask(faults)

    def lost(self, protocol: int) -> int:
        """Return how many packets of a protocol (``socket.IPPROTO_TCP``) the network has lost so far."""
        return self._ask(None).get(str(protocol), 0)

    def _ask(self, faults: tuple[dict[str, Any], ...] | None) -> dict[str, int]:
        assert self.switch.stdin is not None
        assert self.switch.stdout is not None
        self.switch.stdin.write(json.dumps(faults) + "\n")
        self.switch.stdin.flush()
        answer = self.switch.stdout.readline()
        assert answer, "the switch has ended"
        lost: dict[str, int] = json.loads(answer)
        return lost

    @contextmanager
    def impaired(self, *faults: dict[str, Any]) -> Iterator[None]:
        """Have these faults until the context is left."""
        self.impair(*faults)
        try:
            yield
        finally:
            self.impair()


def drop(source: str = "", target: str = "") -> dict[str, Any]:
    """Return the fault that no frame from one host arrives at another; "" is any host."""
    return {"source": source, "target": target, "loss": 1.0}


def isolate(host: Host) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the faults that nothing comes from a host or to it."""
    return drop(source=host.address), drop(target=host.address)


def poor_link(host: Host) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the faults that 30 % of what a host sends and gets is lost, and the rest takes 300 ms more."""
    worse = {"loss": 0.3, "delay": 0.3}
    return {"source": host.address, **worse}, {"target": host.address, **worse}


def flapping(host: Host, period: float = 5.0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the faults that nothing comes from a host or to it in every other period, first in this one."""
    down, up = isolate(host)
    return {**down, "period": period}, {**up, "period": period}


def _connect(hosts: tuple[Host, ...], namespace: str) -> None:
    """Put a cable between each host and the switch."""
    for number, host in enumerate(hosts):
        inside = ["-n", host.namespace]
        configure(
            *["link", "add", "name", f"port{number}", "mtu", _MTU, "netns", namespace, "type", "veth"],
            *["peer", "name", host.cable, "mtu", _MTU, "netns", host.namespace],
        )
        keep = f"/proc/sys/net/ipv6/conf/{host.cable}/keep_addr_on_down"
        host.run(["sh", "-c", f"echo 1 > {keep}"], check=True)
        host.run([sys.executable, "-I", "-S", "-c", _ADD_CHECKSUMS, host.cable], check=True)
        configure(*inside, "addr", "add", f"{host.address}/24", "dev", host.cable)
        configure(*inside, "addr", "add", f"{host.ipv6}/64", "dev", host.cable, "nodad")
        configure(*inside, "link", "set", host.cable, "up")
        configure("-n", namespace, "link", "set", f"port{number}", "up")


def _start_switch(stack: ExitStack, hosts: tuple[Host, ...], tag: str) -> subprocess.Popen[str]:
    """Make the network of the hosts, and start its switch."""
    namespace = f"{tag}switch"
    configure("netns", "add", namespace)
    stack.callback(configure, "netns", "del", namespace)
    _connect(hosts, namespace)
    ports = [f"{host.address}=port{number}" for number, host in enumerate(hosts)]
    # It is to forward at once, however busy the cores are with the hosts' programs.
    entry = [program("ip"), "netns", "exec", namespace, "nice", "-n", "-15"]
    return start_helper(stack, [*entry, sys.executable, str(_SWITCH), *ports])


@contextmanager
def make_three_hosts(folder: Path) -> Iterator[ThreeHosts]:
    """Three hosts with their files in a folder, until the context is left."""
    need("three_hosts", PROGRAMS)
    tag = f"hccl{os.getpid()}"
    with ExitStack() as stack:
        first, second, third = (
            make_host(
                stack,
                f"{tag}h{number}",
                address,
                folder / f"host{number}",
                neighbours=ADDRESSES,
                ipv6=f"fd00::{number}",
            )
            for number, address in zip(_NUMBERS, ADDRESSES, strict=True)
        )
        hosts = (first, second, third)
        switch = _start_switch(stack, hosts, tag)
        yield ThreeHosts(hosts, ssh_servers.start_ssh_servers(stack, hosts, folder), switch)


@pytest.fixture(scope="session")
def bed_of_three_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeHosts]:
    with make_three_hosts(tmp_path_factory.mktemp("three_hosts")) as bed:
        yield bed


@pytest.fixture
def three_hosts(bed_of_three_hosts: ThreeHosts) -> Iterator[ThreeHosts]:
    """Three hosts, 10.0.0.1 to 10.0.0.3 and fd00::1 to fd00::3, that reach each other by their switch."""
    yield bed_of_three_hosts
    for host in bed_of_three_hosts.hosts:
        host.clean()
