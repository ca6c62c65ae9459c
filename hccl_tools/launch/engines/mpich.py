"""The options of MPICH's mpiexec (its process manager Hydra).

Hydra takes hosts in the order in which they are named, hands variables on over its own connections and finds
itself on other hosts by its own path. It reads the user's HYDRA_* variables, so that another launcher than
ssh, or another ssh, needs nothing here. Two things it does not do, the launcher does: see that a host no
longer answers, and end the job when a process that has not come to MPI_Init ends with a bad exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan


#: How the lines begin that mpiexec writes to stdout when one of its processes was killed.
OWN_WORDS = (
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


def for_hosts(plan: Plan) -> list[str]:
    """Return the options that start one process on each host of a plan."""
    hosts = list(dict.fromkeys(process.host for process in plan.ranks))
    options = ["-n", str(len(hosts)), "-ppn", "1", "-hosts", ",".join(hosts), "-wdir", plan.working_dir]
    options += ["-bind-to", "none"]
    # Without a list Hydra hands on everything, and another host needs its own HOME, SSH_* and so on.
    return [*options, "-genvlist", ",".join(plan.exported)]


def for_ranks(plan: Plan) -> list[str]:
    """Return the options that start all ranks on this host."""
    # A resource manager's allocation, or HYDRA_HOST_FILE, would name other hosts.
    here = ["-launcher", "fork", "-hosts", "localhost"]
    return ["-n", str(plan.world_size), *here, "-bind-to", "none"]
