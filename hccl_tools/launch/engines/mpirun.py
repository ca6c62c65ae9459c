"""``--engine mpirun``: the mpirun or mpiexec of Open MPI or MPICH."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.engines.engine import Engine, Located
from hccl_tools.programs import mpirun
from hccl_tools.programs.mpirun import find_mpirun
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan


class MpiEngine(Engine):
    """Starts a supervisor on each host, or the ranks on this host as MPI processes."""

    name = "mpirun"
    starts_mpi_ranks = True

    def host_options(self, plan: Plan) -> list[str]:
        """Return the options that start one process on each host of a plan."""
        raise NotImplementedError

    def rank_options(self, plan: Plan) -> list[str]:
        """Return the options that start all ranks on this host."""
        raise NotImplementedError

    def command(self, plan: Plan) -> list[str]:
        """Return the command line of a plan."""
        if plan.supervisor:
            return [plan.engine_program, *self.host_options(plan), *plan.supervisor]
        return [plan.engine_program, *self.rank_options(plan), *_shim(plan)]

    def keeps_stderr_apart(self, plan: Plan) -> bool:
        """Return whether the plan has supervisors: mpirun's messages would mix with rank 0's output."""
        return bool(plan.supervisor)


def _shim(plan: Plan) -> list[str]:
    options = ["--run-dir", plan.run_dir, "--start", plan.start]
    if plan.table:
        options += ["--rank-table", os.path.join(plan.run_dir, names.TABLE)]
    else:
        options += ["--devices", ",".join(str(process.device) for process in plan.ranks)]
    if plan.cpu:
        options.append("--cpu")
    if scheduler := next((process for process in plan.processes if process.rank < 0), None):
        options += ["--scheduler-port", scheduler.environment["MS_SCHED_PORT"]]
    return [*plan.shim_command, *options, "--no-python", "--", *plan.ranks[0].argv]


class Mpich(MpiEngine):
    """MPICH, all versions."""

    is_open_mpi = False
    waits_for_lost_hosts = True
    #: The lines that mpiexec writes to stdout after one of its processes was killed.
    hidden_output = (
        b"=" * 83,
        b"=   BAD TERMINATION OF ONE OF YOUR",
        b"=   PID ",
        b"=   EXIT CODE: ",
        b"=   CLEANING UP REMAINING PROCESSES",
        b"=   YOU CAN IGNORE THE BELOW",
        b"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: ",
        b"This typically refers to a problem with your application.",
        b"Please see the FAQ page for debugging suggestions",
    )

    def host_options(self, plan: Plan) -> list[str]:
        """Return the options that start one process on each host of a plan."""
        hosts = ["-n", str(len(plan.hosts)), "-ppn", "1", "-hosts", ",".join(map(plan.way_to, plan.hosts))]
        # Without a list Hydra passes all variables, but another host needs its own HOME, SSH_* and so on.
        variables = ["-genvlist", ",".join(plan.exported)]
        return [*hosts, "-wdir", plan.working_dir, "-bind-to", "none", *variables]

    def rank_options(self, plan: Plan) -> list[str]:
        """Return the options that start all ranks on this host."""
        # A resource manager's allocation, or HYDRA_HOST_FILE, would name other hosts.
        here = ["-launcher", "fork", "-hosts", "localhost"]
        return ["-n", str(plan.world_size), *here, "-bind-to", "none"]


#: Settings of TCP keepalive: mpirun gives up a host after 5 s of silence and 5 unanswered probes, one every
#: 2 s. By default, Open MPI would send the first probe after 5 minutes.
_KEEPALIVE = {"time": 5, "intvl": 2, "probes": 5}


class OpenMpi(MpiEngine):
    """One version of Open MPI.

    ``kill_timeout`` is the time in seconds from SIGTERM to SIGKILL of supervisors if mpirun ends a job.
    Version 4 always waits for the whole time, several times.
    """

    def __init__(self, *, kill_timeout: int = 1) -> None:
        self.kill_timeout = kill_timeout

    def host_options(self, plan: Plan) -> list[str]:
        """Return the options that start one process on each host of a plan."""
        hosts = ",".join(map(plan.way_to, plan.hosts))
        options = ["-n", str(len(plan.hosts)), "--host", hosts, "--wdir", plan.working_dir]
        options += [*_allow_root(), "--map-by", "ppr:1:node", "--bind-to", "none"]
        # Supervisors end their ranks themselves; mpirun's 0.25 s (v5) or 1 s (v4) would cut the grace time.
        options += ["--mca", "odls_base_sigkill_timeout", str(self.kill_timeout)]
        for name, value in _KEEPALIVE.items():
            options += ["--mca", f"oob_tcp_keepalive_{name}", str(value)]
        if prefix := mpirun.Mpirun(plan.engine_program, plan.engine_flavour).prefix:
            options += ["--prefix", prefix]
        for name in plan.exported:
            options += ["-x", name]
        return options

    def rank_options(self, plan: Plan) -> list[str]:
        """Return the options that start all ranks on this host."""
        options = ["-n", str(plan.world_size), "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        return [*options, *_allow_root()]


def _allow_root() -> list[str]:
    return ["--allow-run-as-root"] if os.geteuid() == 0 else []


#: Keyed by flavour with or without the version.
_FLAVOURS: dict[str, MpiEngine] = {
    "openmpi": OpenMpi(),
    "openmpi-5": OpenMpi(kill_timeout=20),
    "mpich": Mpich(),
}


class Mpirun(MpiEngine):
    """Finds the program; the engine of its flavour composes the options."""

    def of_flavour(self, flavour: str) -> MpiEngine:
        """Return the engine for a flavour such as ``openmpi-5``."""
        return _FLAVOURS.get(flavour) or _FLAVOURS[flavour.partition("-")[0]]

    def locate(self, environ: Mapping[str, str], wanted: str | None, hosts: Sequence[str]) -> Located:  # noqa: ARG002
        """Return the wanted mpirun, or the first on PATH."""
        found = find_mpirun(environ, wanted)
        return Located(found.path, found.flavour)
