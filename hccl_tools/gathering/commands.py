"""The command lines that start one process per host. Pure: Open MPI's mpirun 4.1 and 5, Slurm's srun."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.programs.mpirun import Mpirun


class SshStart(NamedTuple):
    """How mpirun starts processes on other hosts.

    Attributes:
        mpirun: Open MPI's mpirun.
        ssh: The user's ssh with its options, as words.
        as_root: Whether root calls it: Open MPI requires an option for that.
    """

    mpirun: Mpirun
    ssh: Sequence[str] = ("ssh",)
    as_root: bool = False


class Member(NamedTuple):
    """One process: its host, and its command line."""

    host: str
    argv: Sequence[str]


def mpirun(start: SshStart, members: Sequence[Member]) -> list[str]:
    """Return the command that starts the members over ssh; MPI ranks follow their order.

    Every member is an application of its own, as only that fixes which rank is on which host, whatever
    Open MPI thinks of the order of hosts.
    """
    command = [start.mpirun.path]
    if start.as_root:
        command.append("--allow-run-as-root")
    if start.mpirun.prefix is not None:
        command += ["--prefix", start.mpirun.prefix]
    command += ["--mca", start.mpirun.ssh_parameter, " ".join(start.ssh)]
    command += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    for number, member in enumerate(members):
        command += [":"] if number else []
        # The user's folder may not be there.
        command += ["-n", "1", "--host", member.host, "--wdir", "/", *member.argv]
    return command


def srun(path: str, hosts: Sequence[str], argv: Sequence[str]) -> list[str]:
    """Return the command that starts one process on each of these nodes of the allocation.

    No node's failure ends the others, and none waits for MPI: the answers come through srun's own streams.
    """
    count = str(len(hosts))
    return [
        *(path, "--nodes", count, "--ntasks", count, "--ntasks-per-node=1", "--nodelist", ",".join(hosts)),
        *("--mpi=none", "--input=none", "--kill-on-bad-exit=0", "--wait=0", "--quit-on-interrupt"),
        *("--chdir=/", *argv),
    ]
