"""What a shim says of the end of its rank to the launcher: one JSON line in a file.

Open MPI and Slurm end the other ranks when it exits; MPICH has to be asked.
"""

from __future__ import annotations

import contextlib
import os
import time
from _json import encode_basestring_ascii

from hccl_tools.launch.signal_names import signal_name

TYPE_CHECKING = False  # That of typing, which a shim does without; see records.
if TYPE_CHECKING:
    from hccl_tools.launch.shim import Prepared

#: Where the launcher finds what became of each rank.
ENDS_FILE = "rank_ends.jsonl"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_LAST_LINES = 20
_LAST_BYTES = 16384


def tell(prepared: Prepared, *, pid: int, code: int, duration: float, log: str) -> None:
    """Say how a rank ended.

    Args:
        prepared: The rank.
        pid: Its process.
        code: Its exit code, negative for a signal.
        duration: Seconds from its start to its end.
        log: The path of its log, whose end is told of a failure.
    """
    lines = _last_lines(log) if code else []
    traceback = next(
        (index for index in reversed(range(len(lines))) if lines[index].startswith("Traceback ")), None
    )
    facts = {
        "hccl_tools": "rank failed" if code else "rank ended",
        "rank": prepared.rank,
        "device": prepared.device,
        "host": os.uname().nodename,
        "pid": pid,
        "exit_code": code if code >= 0 else 128 - code,
        "signal": signal_name(-code) if code < 0 else None,
        "time": time.time(),
        "duration": round(duration, 3),
        "log": log,
        "last_lines": lines[-_LAST_LINES:],
        "traceback": lines[traceback:] if traceback is not None else None,
    }
    members = (f"{_as_json(name)}: {_as_json(value)}" for name, value in facts.items())
    line = "{" + ", ".join(members) + "}\n"
    descriptor = os.open(os.path.join(prepared.run_dir, ENDS_FILE), _FLAGS, 0o666)
    os.write(descriptor, line.encode())
    os.close(descriptor)


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


def _last_lines(log: str) -> list[str]:
    with open(log, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _LAST_BYTES))
        return file.read().decode("utf-8", "replace").splitlines()[-200:]
