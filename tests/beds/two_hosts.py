"""Two hosts with their own addresses: network namespaces, joined by a cable, an sshd in each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.daemons import Daemon, end_processes, need, program, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PORT = 2222

SSHD_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
SetEnv {variables}
PidFile none
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM {pam}
MaxStartups 200
MaxSessions 200
"""


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
    """One of the two: programs started with ``run`` or ``start`` see its network and its name only.

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
    """

    namespace: str
    cable: str
    address: str
    folder: Path
    disk: Path
    name: str
    entry: tuple[str, ...]
    neighbours: tuple[str, ...]

    def command(self, argv: Sequence[str]) -> list[str]:
        begin = 'hostname "$0" && mount --bind "$1" "$2" && mount --bind "$3" /etc/hosts && cd "$PWD"'
        begin += ' && shift 3 && exec "$@"'
        places = [str(self.folder / "disk"), str(self.disk), str(self.folder.parent / "hosts")]
        named = ["unshare", "--uts", "sh", "-c", begin, self.name, *places]
        return [*self.entry, *named, *argv]

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program on this host to its end (at most 120 s) and capture what it says."""
        options = {"timeout": 120, "capture_output": True, **options}
        return subprocess.run(self.command(argv), text=True, check=False, **options)

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


@dataclass(frozen=True)
class TwoHosts:
    """The bed: two hosts, and a program that takes the place of ``ssh`` between them."""

    first: Host
    second: Host
    ssh: Path


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
    host = Host(namespace, "cable", address, folder, disk, name or namespace, entry, others)
    (folder / "disk").mkdir(parents=True)
    host.disk.mkdir(exist_ok=True)
    with (folder.parent / "hosts").open("a") as file:
        file.write(f"127.0.0.1 localhost\n{address} {host.name}\n")
    stack.callback(configure, "netns", "del", namespace)
    stack.callback(end_processes, host.pids)
    configure("-n", namespace, "link", "set", "lo", "up")
    return host


def _make_key(path: Path) -> str:
    """Make a key pair and return its public line."""
    subprocess.run(
        [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True
    )
    return path.with_suffix(".pub").read_text().strip()


def _root_is_locked() -> bool:
    """Whether sshd would refuse root without PAM, key or not: its password field starts with "!"."""
    rows = (row.split(":") for row in Path("/etc/shadow").read_text().splitlines())
    return any(row[0] == "root" and row[1].startswith("!") for row in rows)


def _start_sshd(stack: ExitStack, host: Host, key: str) -> str:
    """Start one host's sshd, which takes this key; return its line for ``known_hosts``."""
    folder = host.folder
    (folder / "authorized_keys").write_text(f"{key}\n")
    public = _make_key(folder / "host_key")
    config = folder / "sshd_config"
    variables = f"PATH={folder}/ascend/bin:/usr/bin:/bin HCCL_TOOLS_ROOT={folder}/ascend/root"
    # A short path, for Open MPI's sockets. Locks of tables lie there, which other beds have as well.
    own_tmp = Path("/tmp", host.namespace)
    own_tmp.mkdir()
    stack.callback(shutil.rmtree, own_tmp, ignore_errors=True)
    variables += (
        f" XDG_CONFIG_HOME={folder}/config"
        f" PYTHONPATH={folder}/python TMPDIR={own_tmp} RES_OPTIONS={os.environ.get('RES_OPTIONS', '')}"
    )
    # Otherwise bash reads root's .bashrc for a command of sshd, which may put another python3 on PATH.
    variables += " SHLVL=1"
    pam = "yes" if _root_is_locked() else "no"
    text = SSHD_CONFIG.format(port=PORT, address=host.address, folder=folder, pam=pam, variables=variables)
    config.write_text(text)
    log = folder / "sshd.log"
    daemon = Daemon(host.command([program("sshd"), "-D", "-e", "-f", str(config)]), log=log)
    stack.callback(daemon.stop)
    return f"[{host.address}]:{PORT} {public}\n"


def _answers(host: Host) -> bool:
    probe = f"exec 3<>/dev/tcp/{host.address}/{PORT}"
    return host.run([program("bash"), "-c", probe]).returncode == 0


def _write_ssh(folder: Path, known_hosts: Path) -> Path:
    wrapper = folder / "ssh"
    wrapper.write_text(
        "#!/bin/sh\n"
        f"exec {program('ssh')} -F /dev/null -p {PORT} -i {folder}/key -o BatchMode=yes -o IdentitiesOnly=yes"
        f' -o StrictHostKeyChecking=yes -o UserKnownHostsFile={known_hosts} -o LogLevel=ERROR "$@"\n'
    )
    wrapper.chmod(0o755)
    return wrapper


@contextmanager
def make_two_hosts(folder: Path) -> Iterator[TwoHosts]:
    """Two hosts with their files in a folder, until the context is left."""
    need("two_hosts", ["ip", "sshd", "ssh", "ssh-keygen", "bash", "unshare", "hostname"])
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

        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        key = _make_key(folder / "key")
        known_hosts = folder / "known_hosts"
        known_hosts.write_text("".join(_start_sshd(stack, host, key) for host in (first, second)))
        for host in (first, second):
            wait_until(partial(_answers, host), f"sshd on {host.address}", log=host.folder / "sshd.log")
        yield TwoHosts(first, second, _write_ssh(folder, known_hosts))


@pytest.fixture(scope="session")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoHosts]:
    """Two hosts, 10.77.0.1 and 10.77.0.2, that reach each other through ``ssh`` and nothing else."""
    with make_two_hosts(tmp_path_factory.mktemp("two_hosts")) as bed:
        yield bed
