"""A made-up Ascend host on disk: its tools on PATH, its ``/dev``, ``/etc`` and what they say.

A test states only what differs from a sound machine.
"""

from __future__ import annotations

import json
import marshal
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hccl_tools.host import simulated
from hccl_tools.table.products import PRODUCTS
from tests.support.ascend_tools import usual_answers
from tests.support.commands import run_here

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Mapping

_SOURCE = Path(__file__).with_name("ascend_tools.py")
#: The tools are started hundreds of times: compiled here, each start of Python is twice as fast.
_PROGRAM = marshal.dumps(compile(_SOURCE.read_text(), _SOURCE, "exec", dont_inherit=True))
#: A tool. Where the answer is known before, the shell takes a tenth of the time that Python takes.
#: Only hccn_tool refuses parallel calls; the lock ends with the process.
_SCRIPT = f"""#!/bin/sh
here=${{0%/*}} name=${{0##*/}}
set -- "$name" "$@"
printf '%s\\n' "$*" >> "$here/calls.log"
if [ -e "$here/answers" ] && [ ! -e "$here/busy" ]; then
    . "$here/answers"
fi
exec {shlex.quote(sys.executable)} -IS "$here/ascend_tools" "$@"
"""
_ANSWERS = """say() {{
    if [ "$name" = hccn_tool ] && ! /usr/bin/flock -n 9; then
        set -- 'hccn_tool is busy, please try again.\n' '' {busy}
    fi
    printf %s "$1"
    printf %s "$2" >&2
    exit "$3"
}} 9> "$here/lock"
case "$*" in
{cases}
esac
"""
TOOLS = ("hccn_tool", "npu-smi", "lspci")
#: The addresses of the 910A machine in the guides.
IPS_910A = tuple(f"192.168.{100 + device % 4}.{101 if device < 4 else 100}" for device in range(8))


def described_910a() -> dict[str, Any]:
    """Return the description of a sound 910A machine."""
    return {"product": "910a", "devices": {str(device): {"ip": ip} for device, ip in enumerate(IPS_910A)}}


def described(product: str, machine: int = 1) -> dict[str, Any]:
    """Return the description of the machine that ``--simulate PRODUCT`` makes up."""
    devices: dict[str, Any] = {}
    for one in simulated.devices(PRODUCTS[product], machine):
        told: dict[str, Any] = {"ip": list(one.ips), "vnic": f"192.168.{1 + machine}.{199 - one.device_id}"}
        if one.super_device_id is not None:
            told["sdid"] = one.super_device_id
        if product == "a5":
            info = simulated.device_info(one.device_id, machine)
            ports = [(port.die, port.number, port.link) for port in info.ports]
            told |= {"eids": info.eids, "ips": info.ips, "ports": ports}
        devices[str(one.device_id)] = told
    return {"product": product, "devices": devices, "server_index": machine - 1}


def conf_text(ips: Mapping[int, str] | Iterable[str]) -> str:
    """Return an ``hccn.conf`` with these addresses by device id."""
    pairs = ips.items() if hasattr(ips, "items") else enumerate(ips)
    return "".join(f"address_{device}={ip}\nnetmask_{device}=255.255.255.0\n" for device, ip in pairs)


def _cases(description: dict[str, Any]) -> str:
    """Return the usual answers as cases of the shell; ``ADDRESS`` is any address, the last word of a ping."""
    cases = []
    for command, told in usual_answers(description).items():
        pattern = shlex.quote(command).replace("ADDRESS'", "'*")
        stdout = shlex.quote(told.stdout).replace("ADDRESS", "'\"$7\"'")
        cases.append(f"{pattern}) say {stdout} {shlex.quote(told.stderr)} {told.status};;")
    return "\n".join(cases)


@dataclass
class StandInHost:
    """One host under a folder: ``bin/`` with its tools, ``root/`` in place of ``/``."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def description(self) -> dict[str, Any]:
        value: dict[str, Any] = marshal.loads((self.bin / "host").read_bytes())  # noqa: S302  (written below)
        return value

    def describe(self, description: Mapping[str, Any]) -> None:
        plain = json.loads(json.dumps(description))
        (self.bin / "host").write_bytes(marshal.dumps(plain))
        text = _ANSWERS.format(busy=plain.get("busy_status", 1), cases=_cases(plain))
        (self.bin / "answers").write_text(text)

    def install(self, tool: str, folder: Path | None = None) -> Path:
        """Put a tool into a folder (``bin/`` by default) and return its path."""
        place = folder or self.bin
        place.mkdir(parents=True, exist_ok=True)
        program = place / tool
        (place / "ascend_tools").write_text(f"import marshal\nexec(marshal.loads({_PROGRAM!r}))\n")
        program.write_text(_SCRIPT)
        program.chmod(0o755)
        return program

    def conf(self, text: str) -> Path:
        """Write ``/etc/hccn.conf``."""
        path = self.root / "etc" / "hccn.conf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def nodes(self, device_ids: Iterable[int]) -> None:
        """Make ``/dev/davinciN`` and the manager's node."""
        dev = self.root / "dev"
        dev.mkdir(parents=True, exist_ok=True)
        for name in (
            "davinci_manager",
            "devmm_svm",
            "hisi_hdc",
            *(f"davinci{device}" for device in device_ids),
        ):
            (dev / name).touch()

    def free_ports(self) -> None:
        """Write ``/proc/net/tcp`` without sockets: no port is in use, whatever this machine's programs do."""
        folder = self.root / "proc" / "net"
        folder.mkdir(parents=True, exist_ok=True)
        for table in ("tcp", "tcp6"):
            (folder / table).write_text("  sl  local_address rem_address   st\n")

    def real_ports(self) -> None:
        """Let the ports in use be those of the network in which the commands run."""
        for table in ("tcp", "tcp6"):
            (self.root / "proc" / "net" / table).unlink()
            (self.root / "proc" / "net" / table).symlink_to(f"/proc/self/net/{table}")

    def calls(self) -> list[str]:
        """Return the command lines of all calls so far."""
        log = self.bin / "calls.log"
        return log.read_text().splitlines() if log.exists() else []

    def environ(self, **more: str) -> dict[str, str]:
        inherited = {"RES_OPTIONS": os.environ.get("RES_OPTIONS", "")}
        return {
            "PATH": str(self.bin),
            "HCCL_TOOLS_ROOT": str(self.root),
            "LANG": "C.UTF-8",
            **inherited,
            **more,
        }

    def run(self, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run hccl-tools with these arguments on this host, in this process; ``more`` is its environment."""
        return run_here(*args, environ=self.environ(**more), folder=self.work)

    def gen(self, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run ``gen`` for a host called 10.0.0.5."""
        return self.run("gen", "--server_ip", "10.0.0.5", *args, **more)

    @property
    def work(self) -> Path:
        """The current folder of the commands."""
        path = self.folder / "work"
        path.mkdir(exist_ok=True)
        return path

    def tables(self) -> list[str]:
        """Return the names of all files in the current folder, hidden ones too."""
        return sorted(path.name for path in self.work.iterdir())


def make_host(
    folder: Path,
    description: Mapping[str, Any] | None = None,
    *,
    tools: Iterable[str] = TOOLS,
    nodes: Iterable[int] = (),
    conf: str | None = None,
    **differs: Any,
) -> StandInHost:
    """Make a host: a sound 910A machine unless told otherwise.

    Args:
        folder: An empty folder for it.
        description: In place of the 910A machine's.
        tools: Which tools are on its PATH.
        nodes: Its ``/dev/davinciN``.
        conf: The text of its ``/etc/hccn.conf``; None for no such file.
        differs: Single entries of the description (``busy=2``, ``devices={...}``).
    """
    host = StandInHost(folder)
    host.bin.mkdir(parents=True)
    host.free_ports()
    for tool in tools:
        host.install(tool)
    host.describe({**(description or described_910a()), **differs})
    if conf is not None:
        host.conf(conf)
    if nodes:
        host.nodes(nodes)
    return host
