"""Two hosts with their own addresses: network namespaces, joined by a cable, an sshd in each."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.beds import network_host, ssh_servers
from tests.beds.daemons import need
from tests.beds.network_host import configure, make_host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.beds.network_host import Host


@dataclass(frozen=True)
class TwoHosts:
    """The bed: two hosts, and a program that takes the place of ``ssh`` between them."""

    first: Host
    second: Host
    ssh: Path


@contextmanager
def make_two_hosts(folder: Path) -> Iterator[TwoHosts]:
    """Two hosts with their files in a folder, until the context is left."""
    need("two_hosts", [*network_host.PROGRAMS, *ssh_servers.PROGRAMS])
    tag = f"{os.getpid()}"
    with ExitStack() as stack:
        addresses = ("10.77.0.1", "10.77.0.2")
        first = make_host(stack, f"hccl{tag}a", addresses[0], folder / "first", neighbours=addresses)
        second = make_host(stack, f"hccl{tag}b", addresses[1], folder / "second", neighbours=addresses)
        configure(
            *["link", "add", "name", "cable", "netns", first.namespace, "type", "veth"],
            *["peer", "name", "cable", "netns", second.namespace],
        )
        for host in (first, second):
            configure("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", host.cable)
            configure("-n", host.namespace, "link", "set", host.cable, "up")
        yield TwoHosts(first, second, ssh_servers.start_ssh_servers(stack, (first, second), folder))


@pytest.fixture(scope="session")
def bed_of_two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoHosts]:
    with make_two_hosts(tmp_path_factory.mktemp("two_hosts")) as bed:
        yield bed


@pytest.fixture
def two_hosts(bed_of_two_hosts: TwoHosts) -> Iterator[TwoHosts]:
    """Two hosts, 10.77.0.1 and 10.77.0.2, that reach each other through ``ssh`` and nothing else."""
    yield bed_of_two_hosts
    for host in (bed_of_two_hosts.first, bed_of_two_hosts.second):
        host.clean()
