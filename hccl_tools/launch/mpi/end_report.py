"""Report the end of a shim's rank to the launcher, and to MPICH's mpiexec.

Open MPI and Slurm end the other ranks when the shim exits; mpiexec requires a request.
"""

from __future__ import annotations

import contextlib
import os
import signal
from _json import encode_basestring_ascii

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.model.rank_exit import RankExit
    from hccl_tools.launch.mpi.launcher_link import LauncherLink


def report(link: LauncherLink, ended: RankExit, lost: str) -> None:
    """Report how a rank ended; ``lost`` names the engine process whose exit caused the kill, if any."""
    cause: dict[str, str | float | None] = {
        "host": os.uname().nodename,
        "reason": "daemon",
        "exit_code": 128 + signal.SIGKILL,
        "detail": lost,
    }
    reason = _object(cause) if lost else "null"
    link.send(f'{{"type": "ended", "cause": {reason}, "ranks": [{_object(ended._asdict())}]}}')


def _object(values: Mapping[str, str | float | None]) -> str:
    """Return an object as JSON in ASCII, without ``json``: its import takes a fifth of a shim's time."""
    return "{" + ", ".join(f'"{name}": {_as_json(value)}' for name, value in values.items()) + "}"


def _as_json(value: str | float | None) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    return "null" if value is None else repr(value)


def end_job(code: int) -> None:
    """Ask MPICH's mpiexec to end all ranks and to exit with this code, as MPI_Abort does.

    mpiexec ends a job itself only if a rank was killed, or called MPI_Init but not MPI_Finalize.
    """
    descriptor = os.environ.get("PMI_FD", "")
    if not descriptor.isdecimal() or "HYDI_CONTROL_FD" not in os.environ:
        return
    with contextlib.suppress(OSError):
        os.write(int(descriptor), f"cmd=abort exitcode={code}\n".encode())
