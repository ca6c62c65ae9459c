"""The bed of three hosts really loses, delays and drops what its hosts send."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.beds.three_hosts import drop, flapping, isolate, poor_link
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.network_host import Host
    from tests.beds.three_hosts import ThreeHosts

pytestmark = pytest.mark.bed

#: Answers each datagram with itself, after a line on its output for it.
ECHO = """
import socket
door = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
door.bind(("::", 6464))
print("ready", flush=True)
while True:
    data, sender = door.recvfrom(100)
    print(data.decode(), flush=True)
    door.sendto(data, sender)
"""
#: Sends so many datagrams in a row, and prints the seconds until each answer that comes before its end.
ASK = """
import socket, sys, time
count = int(sys.argv[2])
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
asking = socket.socket(family, socket.SOCK_DGRAM)
began = time.monotonic()
for number in range(count):
    asking.sendto(str(number).encode(), (sys.argv[1], 6464))
while True:
    asking.recv(100)
    print(time.monotonic() - began, flush=True)
"""


@pytest.fixture
def echo(three_hosts: ThreeHosts) -> Iterator[subprocess.Popen[str]]:
    """A program on the second host that answers."""
    process = three_hosts.hosts[1].start([sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def received(echo: subprocess.Popen[str]) -> str:
    """Return what has come in, and end the program."""
    echo.kill()
    assert echo.stdout is not None
    return echo.stdout.read()


def ask(bed: ThreeHosts, host: Host, address: str, count: int = 1) -> list[float]:
    """Return after how many seconds each answer came. A datagram is answered, or lost on one of its ways."""
    before = bed.lost(socket.IPPROTO_UDP)
    with tempfile.NamedTemporaryFile() as said:
        asking = host.start([sys.executable, "-c", ASK, address, str(count)], stdout=said)

        def answers() -> list[str]:
            return Path(said.name).read_text().splitlines()

        try:
            assert eventually(lambda: len(answers()) + bed.lost(socket.IPPROTO_UDP) - before >= count)
        finally:
            asking.kill()
            asking.wait()
        return [float(line) for line in answers()]


def test_each_host_reaches_each_other_by_both_addresses(three_hosts: ThreeHosts) -> None:
    for here in three_hosts.hosts:
        for there in three_hosts.hosts:
            for address in (there.address, there.ipv6):
                answer = here.run([str(three_hosts.ssh), address, "hostname", "-I"])

                assert answer.stdout.split() == [there.address, there.ipv6], answer.stderr


def test_large_messages_arrive_unchanged(three_hosts: ThreeHosts) -> None:
    send = f"head -c 30000000 /dev/zero | {three_hosts.ssh} {three_hosts.hosts[1].address} sha256sum"
    done = three_hosts.hosts[0].run(["sh", "-c", send])
    expected = subprocess.run(
        ["sh", "-c", "head -c 30000000 /dev/zero | sha256sum"], capture_output=True, text=True, check=True
    )

    assert done.stdout == expected.stdout, done.stderr


def test_cut_one_way(three_hosts: ThreeHosts, echo: subprocess.Popen[str]) -> None:
    first, second, third = three_hosts.hosts
    assert ask(three_hosts, first, second.address)
    assert ask(three_hosts, third, second.address)
    with three_hosts.impaired(drop(second.address, first.address)):
        assert not ask(three_hosts, first, second.address)
        assert ask(three_hosts, third, second.address)
    assert ask(three_hosts, first, second.ipv6)

    # What the first host sent had come in.
    assert received(echo) == "0\n" * 5


def test_isolated_host(three_hosts: ThreeHosts, echo: subprocess.Popen[str]) -> None:
    first, second, third = three_hosts.hosts
    # A host that does not know the other's link address asks for it first, and sends no datagram.
    assert ask(three_hosts, first, second.address)
    assert ask(three_hosts, third, second.ipv6)
    with three_hosts.impaired(*isolate(second)):
        assert not ask(three_hosts, first, second.address)
        assert not ask(three_hosts, third, second.ipv6)
    assert ask(three_hosts, third, second.ipv6)

    assert received(echo) == "0\n" * 3


def test_loss_and_delay(three_hosts: ThreeHosts, echo: subprocess.Popen[str]) -> None:
    first, second, third = three_hosts.hosts
    assert len(ask(three_hosts, third, second.address, 10)) == 10
    assert ask(three_hosts, first, second.address)
    with three_hosts.impaired(*poor_link(second)):
        seconds = ask(three_hosts, first, second.address, 100)

        assert min(seconds) >= 0.6
        # 0.7 * 0.7 of them come back.
        assert 25 < len(seconds) < 75


def test_flapping(three_hosts: ThreeHosts, echo: subprocess.Popen[str]) -> None:
    first, second, _ = three_hosts.hosts
    assert ask(three_hosts, first, second.address)
    with three_hosts.impaired(*flapping(second, period=0.5)):
        assert eventually(lambda: not ask(three_hosts, first, second.address))
        assert eventually(lambda: bool(ask(three_hosts, first, second.address)))
        assert eventually(lambda: not ask(three_hosts, first, second.address))


def test_pulled_cable(three_hosts: ThreeHosts, echo: subprocess.Popen[str]) -> None:
    first, second, _ = three_hosts.hosts
    assert ask(three_hosts, first, second.address)
    second.cut_off()
    try:
        # The interface of the switch at its other end has no carrier any more.
        assert second.run(["cat", f"/sys/class/net/{second.cable}/operstate"]).stdout == "down\n"
    finally:
        second.reconnect()

    assert ask(three_hosts, first, second.address)
    assert ask(three_hosts, first, second.ipv6)
