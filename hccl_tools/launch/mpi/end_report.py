"""What a shim reports of the end of its rank to the launcher.

Open MPI and Slurm end the other ranks when it exits; MPICH has to be asked.
"""

from __future__ import annotations

import contextlib
import os
import signal
from _json import encode_basestring_ascii

TYPE_CHECKING = False  # That of typing, which a shim does without; see records.
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.mpi.launcher_link import LauncherLink


def report(
    link: LauncherLink, rank: int, *, pid: int, status: int, duration: float, log: str, lost: str
) -> None:
    """Report to the launcher how a rank ended.

    Args:
        link: The connection to the launcher.
        rank: The rank.
        pid: Its process.
        status: Its raw wait status.
        duration: Seconds from its start to its end.
        log: The path of its log.
        lost: Which process of the engine was lost, where the rank was killed for that.
    """
    facts: dict[str, str | float | None] = {
        "rank": rank, "pid": pid, "status": status, "duration": round(duration, 3), "asked": None, "log": log,
    }  # fmt: skip
    cause: dict[str, str | float] = {
        "host": os.uname().nodename, "reason": "daemon", "exit_code": 128 + signal.SIGKILL,
        "detail": lost,
    }  # fmt: skip
    told = f'"cause": {_object(cause)}, ' if lost else ""
    link.send(f'{{{told}"ranks": [{_object(facts)}]}}\n')


def _object(facts: Mapping[str, str | float | list[str] | None]) -> str:
    return "{" + ", ".join(f"{_as_json(name)}: {_as_json(value)}" for name, value in facts.items()) + "}"


def _as_json(value: str | float | list[str] | None) -> str:
    """Return what facts are made of as JSON, in ASCII: loading ``json`` takes a fifth of a shim's time."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(encode_basestring_ascii, value)) + "]"
    return "null" if value is None else repr(value)


def end_job(code: int) -> None:
    """Ask MPICH's mpiexec to end all ranks and to exit with this code, as MPI_Abort does.

    It ends a job by itself only for a rank that was killed, or has come to MPI_Init and not to MPI_Finalize.
    """
    descriptor = os.environ.get("PMI_FD", "")
    if not descriptor.isdecimal() or "HYDI_CONTROL_FD" not in os.environ:
        return
    with contextlib.suppress(OSError):
        os.write(int(descriptor), f"cmd=abort exitcode={code}\n".encode())
