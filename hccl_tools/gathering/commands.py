"""Build the command lines that start one process per host: Open MPI's mpirun 4.1 and 5, MPICH, srun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.gathering.failures import HCCL_TOOLS_MISSING_HINT
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.programs.mpirun import Mpirun


#: For ``python -c PROGRAM HOST TASK``. If hccl-tools is missing, it reports that in the form of
#: :mod:`hccl_tools.gathering.stdout_framing` and :class:`hccl_tools.gathering.messages.SurveyAnswer`.
_PROGRAM = """\
import os, sys
host = sys.argv[1] or os.environ.get("SLURMD_NODENAME", "?")
try:
    from hccl_tools.gathering.worker import main
except ImportError as error:
    import json
    try:
        import hccl_tools
        why = "its hccl-tools %s cannot be used (%s)" % (getattr(hccl_tools, "__version__", ""), error)
        hint = "install the same hccl-tools on all hosts"
    except ImportError:
        why = "hccl-tools is not installed there for %s" % sys.executable
        hint = HINT
    text = json.dumps({"form": 1, "host": host, "facts": None, "message": why, "hint": hint, "machine": ""})
    print("hccl-tools-gather", host, "1/1", text, flush=True)
    sys.exit(1)
sys.exit(main(host, sys.argv[2]))
"""
PROGRAM = _PROGRAM.replace("HINT", repr(HCCL_TOOLS_MISSING_HINT))


class SshStart(NamedTuple):
    """How mpirun starts processes on other hosts.

    ``ssh`` has the arguments of the ssh command. With ``as_root``, Open MPI requires an additional option.
    """

    mpirun: Mpirun
    ssh: Sequence[str] = ("ssh",)
    as_root: bool = False


def mpirun(
    start: SshStart, members: Sequence[tuple[str, Sequence[str]]], *, labelled: bool = False
) -> list[str]:
    """Return the command that starts processes over ssh, each on its host; MPI ranks follow their order.

    ``labelled`` lets Open MPI name the process before each of its lines.

    Each process is a separate application context: only this fixes the host of each rank, independent of
    the order in which Open MPI sorts the hosts.
    """
    command = [start.mpirun.path]
    if start.as_root:
        command.append("--allow-run-as-root")
    if start.mpirun.prefix is not None:
        command += ["--prefix", start.mpirun.prefix]
    command += ["--mca", start.mpirun.ssh_parameter, " ".join(start.ssh)]
    command += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    command += start.mpirun.label_options if labelled else ()
    for number, (host, argv) in enumerate(members):
        command += [":"] if number else []
        # The working directory may not exist on the other host.
        command += ["-n", "1", "--host", host, "--wdir", "/", *argv]
    return command


def mpiexec(path: str, members: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the command with which MPICH starts processes over ssh, each on its host, in their order."""
    # Hydra fills the hosts in this order, also one that is named twice.
    command = [path, "-hosts", ",".join(f"{host}:1" for host, _argv in members), "-bind-to", "none"]
    for number, (_host, argv) in enumerate(members):
        command += [":"] if number else []
        command += ["-n", "1", "-wdir", "/", *argv]
    return command


def srun(path: str, hosts: Sequence[str], argv: Sequence[str]) -> list[str]:
    """Return the command that starts one process on each of these nodes of the allocation.

    The failure of one node does not stop the others, and no process waits for MPI: srun prints the
    answers, each line with the number of its process. The nodes have processes 0, 1, ... in the order of the
    allocation, which ``hosts`` must have.
    """
    count = str(len(hosts))
    return [
        *(path, "--nodes", count, "--ntasks", count, "--ntasks-per-node=1", "--nodelist", ",".join(hosts)),
        *("--mpi=none", "--label", "--input=none", "--kill-on-bad-exit=0", "--wait=0", "--quit-on-interrupt"),
        *("--chdir=/", *argv),
    ]
