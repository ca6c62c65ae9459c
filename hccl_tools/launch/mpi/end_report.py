"""Report the end of a shim's rank to the launcher, and to MPICH's mpiexec.

Open MPI and Slurm end the other ranks when the shim exits; mpiexec requires a request.
"""

from __future__ import annotations

import contextlib
import os

from hccl_tools.launch.model.rank_messages import Ended

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from hccl_tools.launch.model.outcome import Cause
    from hccl_tools.launch.model.rank_messages import RankExit
    from hccl_tools.launch.mpi.launcher_link import LauncherLink


def report(link: LauncherLink, ended: RankExit, lost: str) -> None:
    """Report how a rank ended; ``lost`` names the engine process whose exit caused the kill, if any."""
    link.send(Ended((ended,), _cause(lost) if lost else None))


def _cause(lost: str) -> Cause:
    from hccl_tools.launch.model.outcome import Cause  # noqa: PLC0415  (10 ms; most ranks end on their own)

    return Cause.lost(os.uname().nodename, "daemon", lost)


def end_job(code: int) -> None:
    """Ask MPICH's mpiexec to end all ranks and to exit with this code, as MPI_Abort does.

    mpiexec ends a job itself only if a rank was killed, or called MPI_Init but not MPI_Finalize.
    """
    descriptor = os.environ.get("PMI_FD", "")
    if not descriptor.isdecimal() or "HYDI_CONTROL_FD" not in os.environ:
        return
    with contextlib.suppress(OSError):
        os.write(int(descriptor), f"cmd=abort exitcode={code}\n".encode())
