"""An sshd on each host of a bed, and a program that takes the place of ``ssh`` between them."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.beds.daemons import Daemon, program, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from tests.beds.network_host import Host

#: The programs that ``start_ssh_servers`` needs.
PROGRAMS = ("sshd", "ssh", "ssh-keygen", "bash")
PORT = 2222

#: The usual key exchange of OpenSSH 9 (sntrup761) costs 0.1 s of processor time more, for each connection.
SSHD_CONFIG = """\
Port {port}
{listen}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
SetEnv {variables}
PidFile none
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
KexAlgorithms curve25519-sha256
UsePAM {pam}
MaxStartups 200
MaxSessions 200
"""


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
    """Start one host's sshd, which takes this key; return its lines for ``known_hosts``."""
    folder = host.folder
    (folder / "authorized_keys").write_text(f"{key}\n")
    public = _make_key(folder / "host_key")
    config = folder / "sshd_config"
    variables = f"PATH={folder}/ascend/bin:/usr/bin:/bin HCCL_TOOLS_ROOT={folder}/ascend/root"
    variables += (
        f" XDG_CONFIG_HOME={folder}/config"
        f" PYTHONPATH={folder}/python RES_OPTIONS={os.environ.get('RES_OPTIONS', '')}"
    )
    # Otherwise bash reads root's .bashrc for a command of sshd, which may put another python3 on PATH.
    variables += " SHLVL=1"
    pam = "yes" if _root_is_locked() else "no"
    addresses = [address for address in (host.address, host.ipv6) if address]
    listen = "\n".join(f"ListenAddress {address}" for address in addresses)
    text = SSHD_CONFIG.format(port=PORT, listen=listen, folder=folder, pam=pam, variables=variables)
    config.write_text(text)
    log = folder / "sshd.log"
    daemon = Daemon(host.command([program("sshd"), "-D", "-e", "-f", str(config)]), log=log)
    stack.callback(daemon.stop)
    return "".join(f"[{address}]:{PORT} {public}\n" for address in addresses)


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


def start_ssh_servers(stack: ExitStack, hosts: Sequence[Host], folder: Path) -> Path:
    """Start an sshd on each host, wait for them, and return what takes the place of ``ssh``."""
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    key = _make_key(folder / "key")
    known_hosts = folder / "known_hosts"
    known_hosts.write_text("".join(_start_sshd(stack, host, key) for host in hosts))
    for host in hosts:
        wait_until(partial(_answers, host), f"sshd on {host.address}", log=host.folder / "sshd.log")
    return _write_ssh(folder, known_hosts)
