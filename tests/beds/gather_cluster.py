"""The two hosts with stand-in Ascend tools, and ``gen --hosts`` typed on the first."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.hosts import described_910a, make_host

if TYPE_CHECKING:
    import subprocess

    from tests.beds.network_host import Host
    from tests.beds.two_hosts import TwoHosts
    from tests.support.hosts import StandInHost

HOSTS = ("10.77.0.1", "10.77.0.2")
#: What a test with a host that does not answer allows, and the help of --gather-timeout states.
STATED_S = 30
VENV = Path(sys.executable).parent


def described(machine: int) -> dict[str, Any]:
    """A sound 910A machine whose devices have the addresses of one machine of a cluster."""
    ips = [f"192.168.{100 + device % 4}.{10 * machine + device // 4}" for device in range(8)]
    return {**described_910a(), "devices": {str(device): {"ip": ip} for device, ip in enumerate(ips)}}


def expected_rows(server_ids: tuple[str, ...], machines: tuple[int, ...] = (1, 2)) -> list[tuple[str, ...]]:
    """Server, device, address and rank of every device, as the table should have them."""
    return [
        (server, str(device), described(machine)["devices"][str(device)]["ip"], str(8 * place + device))
        for place, (server, machine) in enumerate(zip(server_ids, machines, strict=True))
        for device in range(8)
    ]


def rows_of(path: Path) -> list[tuple[str, ...]]:
    table = json.loads(path.read_text())
    return [
        (server["server_id"], device["device_id"], device["device_ip"], device["rank_id"])
        for server in table["server_list"]
        for device in server["device"]
    ]


class Cluster:
    """The two hosts with their stand-in Ascend tools, and ``gen --hosts`` typed on the first."""

    def __init__(self, bed: TwoHosts, work: Path) -> None:
        self.bed = bed
        self.work = work
        self.machines: list[StandInHost] = []
        for number, host in enumerate((bed.first, bed.second), 1):
            self.machines.append(make_host(host.folder / "ascend", described(number), nodes=range(8)))
        #: The files that other jobs left in the TMPDIR of the second host.
        self.earlier = self.temporary_files()

    @property
    def second(self) -> Host:
        return self.bed.second

    def temporary_files(self) -> set[str]:
        """Return the names of the files in the TMPDIR of the second host."""
        return {path.name for path in self.second.tmp.iterdir()}

    def gen(self, *args: str, mpirun: Path = VENV / "mpirun") -> subprocess.CompletedProcess[str]:
        """Run ``gen --hosts`` on the first host; ``mpirun`` is the one on its PATH."""
        only = self.work / "path"
        if not only.exists():
            only.mkdir()
            (only / "mpirun").symlink_to(mpirun)
        first = self.machines[0]
        path = f"{first.bin}:{mpirun.parent}:/usr/bin:/bin"
        env = {**os.environ, "PATH": path, "HCCL_TOOLS_ROOT": str(first.root)}
        command = [sys.executable, "-m", "hccl_tools", "gen", "--ssh", str(self.bed.ssh)]
        command += ["--gather-timeout", str(STATED_S), *args]
        return self.bed.first.run(command, env=env, cwd=self.work)

    def refused(self, *args: str) -> str:
        """Run it, make sure that nothing was written and the stated time was kept; return what it said."""
        began = time.monotonic()
        done = self.gen(*(args or ("--hosts", ",".join(HOSTS))))
        took = time.monotonic() - began

        assert done.returncode == 1, done.stderr
        assert not list(self.work.glob("*.json"))
        assert took < STATED_S + 5
        assert "Traceback" not in done.stderr, done.stderr
        return done.stderr
