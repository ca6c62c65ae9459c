"""The command lines that start one process per host. Pure: Open MPI's mpirun 4.1 and 5, Slurm's srun."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_SYSTEM_FOLDERS = ("/bin", "/usr/bin")


class Mpirun(NamedTuple):
    """The mpirun at hand.

    Attributes:
        path: The program.
        flavour: ``openmpi-4`` or ``openmpi-5``.
        ssh: The user's ssh with its options, as words.
        as_root: Whether root calls it: Open MPI then wants to be told.
    """

    path: str
    flavour: str
    ssh: Sequence[str] = ("ssh",)
    as_root: bool = False


class Member(NamedTuple):
    """One process: its host, and its command line."""

    host: str
    argv: Sequence[str]


def mpirun(engine: Mpirun, members: Sequence[Member]) -> list[str]:
    """Return the command that starts the members over ssh; MPI ranks follow their order.

    Every member is an application of its own, as only that fixes which rank is on which host, whatever
    Open MPI thinks of the order of hosts.
    """
    command = [engine.path]
    if engine.as_root:
        command.append("--allow-run-as-root")
    if (prefix := installation(engine.path)) is not None:
        command += ["--prefix", prefix]
    agent = "plm_rsh_agent" if engine.flavour == "openmpi-4" else "plm_ssh_agent"
    command += ["--mca", agent, " ".join(engine.ssh)]
    command += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    for number, member in enumerate(members):
        command += [":"] if number else []
        # The user's folder may not be there.
        command += ["-n", "1", "--host", member.host, "--wdir", "/", *member.argv]
    return command


def installation(mpirun_path: str) -> str | None:
    """Return where a mpirun is installed, to be named to other hosts; None for a system's own.

    A non-interactive ssh has the system's folders on its PATH and nothing of the user's.
    """
    folder = os.path.dirname(os.path.abspath(mpirun_path))  # noqa: PTH100, PTH120
    if folder in _SYSTEM_FOLDERS or os.path.basename(folder) != "bin":  # noqa: PTH119
        return None
    return os.path.dirname(folder)  # noqa: PTH120


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
