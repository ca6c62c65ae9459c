"""Jobs of two hosts and a spare: on three hosts by ssh or mpirun, and on the nodes of a Slurm cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tests.beds.daemons import program
from tests.beds.slurm_cluster import ALL_NODES
from tests.beds.three_hosts import isolate
from tests.support.jobs import LONG, eventually
from tests.support.processes import has_ended, kill_all, name_of
from tests.support.spares import OPTIONS, TIMING, write_table
from tests.support.three_by import environ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.beds.network_host import Host
    from tests.beds.slurm_cluster import SlurmCluster
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.mpiruns import Mpirun, Ssh

LAUNCH = [sys.executable, "-m", "hccl_tools", "launch", "--product", "a2", "--cpu", *OPTIONS]


class Place(Protocol):
    """Where a job runs: on the first two of three hosts, with the third in reserve."""

    @property
    def hosts(self) -> Sequence[Host]:
        """The three hosts."""

    @property
    def launching(self) -> Host:
        """The host of the launcher."""

    @property
    def spare(self) -> str:
        """What ``launch`` calls the third host."""

    def start(self, *argv: str) -> subprocess.Popen[str]:
        """Start ``launch`` with these options and this program."""

    def kill(self, pids: Sequence[int]) -> None:
        """Kill everything on the second host: all its processes, or those of the job."""

    def cut(self) -> None:
        """Cut the second host off."""

    def restore(self) -> None:
        """Make the hosts again what they were."""


class OnThreeHosts:
    """Started on the first host by ssh or an mpirun."""

    def __init__(
        self, bed: ThreeHosts, engine: Mpirun | Ssh, *, reserve: Sequence[str] | None = None
    ) -> None:
        """``reserve`` are the hosts in reserve, by default the third host."""
        self.bed, self.engine, self.hosts = bed, engine, bed.hosts
        self.launching = bed.hosts[0]
        reserve = [self.spare] if reserve is None else reserve
        self._options = ["--spare-hosts", ",".join(reserve)] if reserve else []

    @property
    def spare(self) -> str:
        return self.hosts[2].address

    def start(self, *argv: str) -> subprocess.Popen[str]:
        return self.launching.start(
            [*LAUNCH, *self.engine.for_launch, *self._options, *argv],
            env=environ(self.bed) | TIMING,
            **_STREAMS,
        )

    def kill(self, pids: Sequence[int]) -> None:
        kill_all(pids)

    def cut(self) -> None:
        self.bed.impair(*isolate(self.hosts[1]))

    def restore(self) -> None:
        self.bed.impair()


class InSlurm:
    """Started on the login node, in an allocation of all three nodes."""

    spare = "n3"

    def __init__(self, cluster: SlurmCluster) -> None:
        self.cluster, self.hosts = cluster, cluster.nodes
        self.launching = cluster.login
        self._is_cut = self._has_died = False

    def start(self, *argv: str) -> subprocess.Popen[str]:
        allocation = ["salloc", "-N3", f"--partition={ALL_NODES}", "--ntasks-per-node=1", "--no-kill"]
        launch = [*LAUNCH, "--engine", "slurm", "--spares", "1", *argv]
        return self.launching.start([*allocation, *launch], env=self.cluster.env | TIMING, **_STREAMS)

    def kill(self, pids: Sequence[int] = ()) -> None:  # noqa: ARG002  (Slurm's daemons too)
        self._has_died = True
        kill_all(self.hosts[1].pids())

    def cut(self) -> None:
        self._is_cut = True
        self.hosts[1].cut_off()

    def restore(self) -> None:
        if self._is_cut:
            self.hosts[1].reconnect()
            self.kill()  # Slurm would try for a minute to report what happened meanwhile.
        if self._has_died:
            self.cluster.revive(self.hosts[1])
        self.cluster.run([program("scancel"), "--user=root", "--signal=KILL"])
        assert eventually(lambda: self.cluster.is_idle)


class SpareJob:
    """A job whose second host is replaced."""

    def __init__(self, place: Place, *argv: str, own_table: bool = False) -> None:
        """Start it; ``argv`` are further options and the program, with ``own_table`` also the rank table."""
        self.place = place
        self._always = {pid for host in place.hosts for pid in host.pids()}
        first, second, _ = (host.address for host in place.hosts)
        table = () if own_table else ("--rank-table", write_table(first, second))
        self.launcher = place.start(*table, *argv)

    def waits_for(self, *files: str | Path) -> bool:
        """Whether the job writes these files before long."""
        return eventually(lambda: all(map(os.path.exists, files)) or self.has_ended) and not self.has_ended

    @property
    def has_ended(self) -> bool:
        return self.launcher.poll() is not None

    def on(self, host: Host) -> list[int]:
        """Return the processes of the job on a host, without those of the host's own daemons."""
        found = [pid for pid in host.pids() if pid not in self._always]
        return [pid for pid in found if not has_ended(pid) and name_of(pid) not in _DAEMONS]

    def left(self) -> list[int]:
        """Return the processes of the job on all hosts."""
        return [pid for host in self.place.hosts for pid in self.on(host)]

    def kill(self) -> None:
        """Kill everything on the second host."""
        self.place.kill(self.on(self.place.hosts[1]))

    def cut(self) -> None:
        """Cut the second host off."""
        self.place.cut()

    def end(self) -> tuple[int, str, dict[str, Any]]:
        """Wait for the end: the code, the output and the report; nothing may be left on any host."""
        try:
            said = self.launcher.communicate(timeout=LONG)[0]
        finally:
            self.launcher.kill()
        assert eventually(lambda: not self.left()), (said, self.left())
        return self.launcher.returncode, said, json.loads(Path("log/latest/report.json").read_text())


#: A host that is cut off keeps their sessions, until they notice it or can report it.
_DAEMONS = {"sshd", "slurmd", "slurmstepd"}
_STREAMS: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.STDOUT,
}
