"""A host with its own address, name, ports, /tmp and disk: namespaces, which a process of its own keeps."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.daemons import end_processes, program, start_helper, wait_until
from tests.support.paddle_python import PADDLE_PYTHON
from tests.support.torch_python import TORCH_PYTHON

if TYPE_CHECKING:
    import os
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


#: The programs that ``make_host`` needs.
PROGRAMS = ("ip", "nsenter", "unshare", "mount", "hostname")
#: Makes the namespaces of a host. /tmp and /dev/shm are its own, but for the folders that all hosts share.
#: Outgoing connections keep off the ports from 60000 on, which HCCL uses. $1 is the host's name, $2 its disk
#: and $3 where all see it, $4 its /etc/hosts, $5 the folder to make /tmp in; the shared folders follow.
_SETUP = """
set -e
mount --make-rprivate /
hostname "$1"
mount --bind "$2" "$3"
mount --bind "$4" /etc/hosts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs "$5"
own=$5
shift 5
for shared; do
    mkdir -p "$own/${shared#/tmp/}"
    mount --rbind "$shared" "$own/${shared#/tmp/}"
done
mount --move "$own" /tmp
echo 32768 59999 > /proc/sys/net/ipv4/ip_local_port_range
echo ready
exec sleep infinity
"""
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Host:
    """One host of a bed: programs started with ``run`` or ``start`` see its network, name and /tmp only.

    Attributes:
        namespace: Its network namespace.
        cable: Its network interface.
        address: Its address.
        folder: Its own files. What comes in over ssh has ``ascend/bin`` on PATH, ``ascend/root`` as
            HCCL_TOOLS_ROOT, ``python`` as PYTHONPATH and ``config`` as XDG_CONFIG_HOME; who may come in
            stands in ``authorized_keys``.
        disk: A folder that has this path on every host of a bed and holds other files on each: what a host
            has there lies in its ``folder / "disk"``. All other folders but /tmp and /dev/shm are shared.
        name: Its host name, which all of the bed know; never that of another, as Open MPI takes hosts of
            one name for one host.
        keeper: The process that keeps its namespaces. It is none of ``pids``.
        neighbours: The addresses of the other hosts.
        ipv6: Its IPv6 address, "" for none.
    """

    namespace: str
    cable: str
    address: str
    folder: Path
    disk: Path
    name: str
    keeper: subprocess.Popen[str]
    neighbours: tuple[str, ...]
    ipv6: str = ""

    @property
    def tmp(self) -> Path:
        """Its /tmp, as seen from outside."""
        return Path(f"/proc/{self.keeper.pid}/root/tmp")

    def command(self, argv: Sequence[str], *, cwd: str | os.PathLike[str] | None = None) -> list[str]:
        """Return what runs a program on this host, in a folder or here, with /tmp as its TMPDIR."""
        enter = [program("nsenter"), "--net", "--uts", "--ipc", "--mount", f"--target={self.keeper.pid}"]
        return [*enter, "sh", "-c", 'cd "$0" && unset TMPDIR && exec "$@"', str(cwd or Path.cwd()), *argv]

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program on this host to its end (at most 120 s) and capture what it says."""
        options = {"timeout": 120, "capture_output": True, "check": False, **options}
        command = self.command(argv, cwd=options.pop("cwd", None))
        return subprocess.run(command, text=True, **options)  # noqa: PLW1510

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a program on this host."""
        return subprocess.Popen(self.command(argv, cwd=options.pop("cwd", None)), text=True, **options)

    def pids(self) -> list[int]:
        """The processes on this host."""
        own = Path("/run/netns", self.namespace).stat().st_ino
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (folder / "ns" / "net").stat().st_ino == own:
                    found.append(int(folder.name))
        return [pid for pid in found if pid != self.keeper.pid]

    def commands(self) -> dict[int, list[str]]:
        """The command lines of the processes on this host that have not ended."""
        found = {}
        for pid in self.pids():
            with suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
        return {pid: words for pid, words in found.items() if words}

    def clean(self) -> None:
        """Remove what a test has put on this host, so that the next one finds the host as it was made."""
        for name in ("ascend", "python", "config"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for path in (self.folder / "disk").iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()

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

    The hosts of a bed share the parent of the bed's folder, which is to be a folder below /tmp.
    """
    made = configure("netns", "add", namespace, check=False)
    if made.returncode != 0:
        pytest.skip(f"network namespaces are not allowed here: {made.stderr.strip()}")
    (folder / "disk").mkdir(parents=True)
    disk = folder.parent / "disk"
    disk.mkdir(exist_ok=True)
    hosts = folder.parent / "hosts"
    with hosts.open("a") as file:
        file.write(f"127.0.0.1 localhost\n{address} {name or namespace}\n")
    stack.callback(configure, "netns", "del", namespace)
    places = [folder / "disk", disk, hosts, folder / "tmp", *_shared(folder.parent)]
    entry = [program("ip"), "netns", "exec", namespace]
    if not own_sys:
        entry = [program("nsenter"), f"--net=/run/netns/{namespace}"]
    (folder / "tmp").mkdir()
    namespaces = ["unshare", "--uts", "--ipc", "--mount", "sh", "-c", _SETUP, "sh"]
    keeper = start_helper(stack, [*entry, *namespaces, name or namespace, *map(str, places)])
    others = tuple(other for other in neighbours if other != address)
    host = Host(namespace, "cable", address, folder, disk, name or namespace, keeper, others, ipv6)
    stack.callback(end_processes, host.pids)
    configure("-n", namespace, "link", "set", "lo", "up")
    return host


def _shared(bed: Path) -> list[Path]:
    """Return the folders below /tmp that all hosts share: those of the tests and of what they run."""
    wanted = {bed.parent, _ROOT, *(Path(path) for path in (sys.prefix, sys.base_prefix))}
    wanted |= {Path(python).parents[1] for python in (TORCH_PYTHON, PADDLE_PYTHON)}
    below = {path for path in wanted if path.is_relative_to("/tmp")}
    return [path for path in below if not below.intersection(path.parents)]
