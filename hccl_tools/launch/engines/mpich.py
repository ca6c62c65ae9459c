"""The options of MPICH's mpiexec (its process manager Hydra).

Hydra uses the hosts in the given order, passes variables over its own connections and expects its program
at the same path on other hosts. Hydra reads the user's HYDRA_* variables, so a launcher other than ssh,
or another ssh, needs no option here. Hydra does not detect that a host no longer answers, and does not end
the job when a process that has not called MPI_Init exits with a nonzero code: hccl-tools does both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.engines.mpi import MpiEngine

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan


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
        hosts = ["-n", str(len(plan.hosts)), "-ppn", "1", "-hosts", ",".join(plan.hosts)]
        # Without a list Hydra passes all variables, but another host needs its own HOME, SSH_* and so on.
        variables = ["-genvlist", ",".join(plan.exported)]
        return [*hosts, "-wdir", plan.working_dir, "-bind-to", "none", *variables]

    def rank_options(self, plan: Plan) -> list[str]:
        """Return the options that start all ranks on this host."""
        # A resource manager's allocation, or HYDRA_HOST_FILE, would name other hosts.
        here = ["-launcher", "fork", "-hosts", "localhost"]
        return ["-n", str(plan.world_size), *here, "-bind-to", "none"]
