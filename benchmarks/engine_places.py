"""Where the trials of engine_faults.py run: this host, two hosts joined by ssh, a Slurm cluster."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support import two_by_two
from tests.support.jobs import eventually
from tests.support.processes import has_ended, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.beds.network_host import Host
    from tests.beds.slurm_cluster import SlurmCluster
    from tests.beds.two_hosts import TwoHosts
    from tests.support.mpiruns import Mpirun

#: What fault_rank.py reads, on other hosts too.
VARIABLES = ("FAULT", "FAULT_RANK", "FAULT_CODE", "FAULT_DELAY", "FAULT_FOLDER", "FAULT_RANKS")
_RANKS_OF_TWO_BY_TWO = 4


class Place:
    """One bed with one engine; ``ranks`` is how many its jobs have."""

    def __init__(self, name: str, faults: tuple[str, ...], hosts: tuple[Host, ...], ranks: int) -> None:
        self.name, self.faults, self.hosts, self.ranks = name, faults, hosts, ranks
        self._always = {pid for host in hosts for pid in host.pids()}

    def host_of(self, rank: int) -> str:
        """Return what the table calls the host of a rank."""
        raise NotImplementedError

    def start(self, options: list[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[str]:
        """Start a job in the current folder."""
        raise NotImplementedError

    def pids(self) -> list[int]:
        """The processes of the job that have not ended."""
        found = {pid for host in self.hosts for pid in host.pids()} - self._always
        return [pid for pid in found if not has_ended(pid)]

    def launcher(self, started: int) -> int:
        """Return the launcher's process; ``started`` is what ``start`` has started."""
        return started

    def make_ready(self) -> None:
        """Wait until a job can be started."""


class OneHost(Place):
    """MPI ranks on the first of two hosts, which is left alone by what else runs on the machine."""

    def __init__(self, bed: TwoHosts, mpirun: Mpirun, faults: tuple[str, ...], ranks: int) -> None:
        super().__init__(f"1 {mpirun}", faults, (bed.first,), ranks)
        self._bed, self._mpirun = bed, mpirun

    def host_of(self, rank: int) -> str:  # noqa: ARG002  (as every place)
        """Return nothing: there is one host."""
        return ""

    def start(self, options: list[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[str]:
        """Start the ranks as MPI processes."""
        launch = [sys.executable, "-m", "hccl_tools", "launch", "-n", str(self.ranks), "--cpu"]
        command = [*launch, "--start", "mpi", *self._mpirun.for_launch, *options]
        return self._bed.first.start(
            command, env={**environment}, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )


class BothHosts(Place):
    """A supervisor on each of two hosts, started by mpirun over ssh."""

    def __init__(self, bed: TwoHosts, mpirun: Mpirun, faults: tuple[str, ...]) -> None:
        super().__init__(f"2 {mpirun}", faults, (bed.first, bed.second), _RANKS_OF_TWO_BY_TWO)
        self._bed, self._mpirun = bed, mpirun

    def host_of(self, rank: int) -> str:
        """Return the address of a rank's host."""
        return self.hosts[two_by_two.SEATS[rank][0]].address

    def start(self, options: list[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[str]:
        """Start one job on both hosts."""
        launch = two_by_two.command(
            (self.hosts[0].address, self.hosts[1].address), *self._mpirun.for_launch, "--start", "torch"
        )
        exported = [word for name in VARIABLES for word in ("--export", name)]
        env = {**environment, **two_by_two.environ(self._bed)}
        return self._bed.first.start(
            [*launch, *exported, *options], env=env, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )


class Slurm(Place):
    """A supervisor on each of two nodes, started by srun inside an allocation."""

    def __init__(self, bed: SlurmCluster, faults: tuple[str, ...]) -> None:
        super().__init__("slurm", faults, (bed.login, bed.first, bed.second), _RANKS_OF_TWO_BY_TWO)
        self._bed = bed

    def host_of(self, rank: int) -> str:
        """Return the address of a rank's node."""
        return self.hosts[1 + two_by_two.SEATS[rank][0]].address

    def start(self, options: list[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[str]:
        """Start one job on both nodes."""
        hosts = (self.hosts[1].address, self.hosts[2].address)
        launch = two_by_two.command(hosts, "--engine", "slurm", "--start", "torch")
        command = ["salloc", "-N2", "--ntasks-per-node=1", *launch, *options]
        env = {**environment, "SLURM_CONF": str(self._bed.config)}
        return self._bed.login.start(command, env=env, stdout=output, stderr=output, stdin=subprocess.DEVNULL)

    def pids(self) -> list[int]:
        """The processes of the job; Slurm's own are left to Slurm."""
        return [pid for pid in super().pids() if not name_of(pid).startswith(("slurm", "salloc", "scancel"))]

    def launcher(self, started: int) -> int:  # noqa: ARG002  (that is salloc)
        """Return the launcher's process on the login node."""
        commands = self._bed.login.commands().items()
        return next(pid for pid, words in commands if words[1:4] == ["-m", "hccl_tools", "launch"])

    def make_ready(self) -> None:
        """Wait until the allocation before has gone."""
        assert eventually(lambda: self._bed.is_idle)

    def cancel(self) -> None:
        """Have Slurm end all jobs."""
        self._bed.run(["scancel", "--user=root"])
