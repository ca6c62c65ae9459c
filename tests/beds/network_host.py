"""A host with its own address, name and disk: a network namespace, with mounts of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.daemons import end_processes, program, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import ExitStack

#: Whether somebody is at an address, whoever listens there. To ask makes us known there, too.
REACH = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), 1)
except ConnectionRefusedError:
    pass
"""


@dataclass(frozen=True)
class Host:
    """One host of a bed: programs started with ``run`` or ``start`` see its network and its name only.

    Attributes:
        namespace: Its network namespace.
        cable: Its network interface.
        address: Its address.
        folder: Its own files. What comes in over ssh has ``ascend/bin`` on PATH, ``ascend/root`` as
            HCCL_TOOLS_ROOT, ``python`` as PYTHONPATH, ``config`` as XDG_CONFIG_HOME and its own TMPDIR; who
            may come in stands in ``authorized_keys``.
        disk: A folder that has this path on every host of a bed and holds other files on each: what a host
            has there lies in its ``folder / "disk"``. All other folders are shared.
        name: Its host name, which all of the bed know; never that of another, as Open MPI takes hosts of
            one name for one host.
        entry: What brings a program into its network, with mounts of its own.
        neighbours: The addresses of the other hosts.
        ipv6: Its IPv6 address, "" for none.
    """

    namespace: str
    cable: str
    address: str
    folder: Path
    disk: Path
    name: str
    entry: tuple[str, ...]
    neighbours: tuple[str, ...]
    ipv6: str = ""

    def command(self, argv: Sequence[str]) -> list[str]:
        begin = 'hostname "$0" && mount --bind "$1" "$2" && mount --bind "$3" /etc/hosts && cd "$PWD"'
        begin += ' && shift 3 && exec "$@"'
        places = [str(self.folder / "disk"), str(self.disk), str(self.folder.parent / "hosts")]
        named = ["unshare", "--uts", "sh", "-c", begin, self.name, *places]
        return [*self.entry, *named, *argv]

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program on this host to its end (at most 120 s) and capture what it says."""
        options = {"timeout": 120, "capture_output": True, "check": False, **options}
        return subprocess.run(self.command(argv), text=True, **options)  # noqa: PLW1510

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a program on this host."""
        return subprocess.Popen(self.command(argv), text=True, **options)

    def pids(self) -> list[int]:
        """The processes on this host."""
        told = configure("netns", "pids", self.namespace, check=False).stdout
        return [int(pid) for pid in told.split()]

    def commands(self) -> dict[int, list[str]]:
        """The command lines of the processes on this host."""
        found = {}
        for pid in self.pids():
            with suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
        return found

    def cut_off(self) -> None:
        """Pull this host's cable."""
        configure("-n", self.namespace, "link", "set", self.cable, "down")

    def reconnect(self) -> None:
        """Put the cable in again, and wait until all know each other again."""
        configure("-n", self.namespace, "link", "set", self.cable, "up")
        for address in self.neighbours:
            wait_until(partial(self._reaches, address), f"{address} to be in reach")

    def _reaches(self, address: str) -> bool:
        return self.run([sys.executable, "-c", REACH, address]).returncode == 0


def configure(*args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("ip"), *args], text=True, capture_output=True, check=check)


def make_host(
    stack: ExitStack,
    namespace: str,
    address: str,
    folder: Path,
    *,
    neighbours: Iterable[str],
    name: str = "",
    ipv6: str = "",
    own_sys: bool = True,
) -> Host:
    """Make a host that is joined to nothing yet.

    Args:
        stack: What removes it.
        namespace: Its network namespace.
        address: The address that it will have.
        folder: Its own files.
        neighbours: The addresses of the other hosts.
        name: Its host name, where that is not to be the namespace's.
        ipv6: The IPv6 address that it will have, if any.
        own_sys: Whether its /sys shows its network, as a real one does, and hides the cgroups.
    """
    made = configure("netns", "add", namespace, check=False)
    if made.returncode != 0:
        pytest.skip(f"network namespaces are not allowed here: {made.stderr.strip()}")
    entry = (program("ip"), "netns", "exec", namespace)
    if not own_sys:
        entry = (program("nsenter"), f"--net=/run/netns/{namespace}", program("unshare"), "--mount")
    disk = folder.parent / "disk"
    others = tuple(other for other in neighbours if other != address)
    host = Host(namespace, "cable", address, folder, disk, name or namespace, entry, others, ipv6)
    (folder / "disk").mkdir(parents=True)
    host.disk.mkdir(exist_ok=True)
    with (folder.parent / "hosts").open("a") as file:
        file.write(f"127.0.0.1 localhost\n{address} {host.name}\n")
    stack.callback(configure, "netns", "del", namespace)
    stack.callback(end_processes, host.pids)
    configure("-n", namespace, "link", "set", "lo", "up")
    return host
