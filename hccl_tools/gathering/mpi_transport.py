"""Send texts from all MPI processes to the first, with a time limit, which an MPI gather does not have."""

from __future__ import annotations

import json
import time
from typing import Any

from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import DiscoveryError
from hccl_tools.gathering.failures import MPI4PY_MISSING_HINT
from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.gathering.stdout_framing import MOST_OF_HOST, TOO_MUCH, TWO_ANSWERS
from hccl_tools.records import NamedTuple

_NAME, _TEXT = 1, 2
#: Stands for the text of a process that sent too much; its process waits until it is killed.
_FLOODED = SurveyAnswer("", message=TOO_MUCH).to_json()
#: Stands for the texts of a process in whose name two came: each process states its own number itself.
_CONTRADICTED = SurveyAnswer("", message=TWO_ANSWERS).to_json()
#: Seconds between two probes, in which other processes on the core can run.
_PAUSE_S = 0.001


class Collected(NamedTuple):
    """What the other processes sent, by rank, and whether all of them have ended their part."""

    texts: dict[int, str]
    names: dict[int, str]
    is_complete: bool


def world() -> Any:
    """Return all MPI processes (mpi4py's COMM_WORLD).

    Raises:
        DiscoveryError: mpi4py is not installed, or does not find an MPI library.
    """
    try:
        import mpi4py  # noqa: PLC0415  (only a gathering needs MPI)

        mpi4py.rc.threads = False
        # A process that fails must not wait in MPI_Finalize for others that hang: see `finish`.
        mpi4py.rc.finalize = False
        from mpi4py import MPI  # noqa: PLC0415
    except ImportError as error:
        if error.name in {"mpi4py", None} and "mpi4py" in str(error):
            raise DiscoveryError("mpi4py is not installed there", hint=MPI4PY_MISSING_HINT) from None
        raise DiscoveryError(f"mpi4py does not work there: {error}", hint=MPI4PY_MISSING_HINT) from None
    except (RuntimeError, OSError) as error:
        problem = " ".join(str(error).split())
        raise DiscoveryError(f"mpi4py finds no MPI there: {problem}", hint=MPI4PY_MISSING_HINT) from None
    return MPI.COMM_WORLD


def finish() -> None:
    """Call MPI_Finalize, together with all other processes, in the process that has collected all texts."""
    from mpi4py import MPI  # noqa: PLC0415

    MPI.Finalize()


def leave(comm: Any) -> None:
    """End the part of a process that has sent its text: nothing more of it is on its way then."""
    comm.Ibarrier().Wait()  # No blocking barrier: `collect` must not wait in one.
    finish()


def send(comm: Any, text: str, *, is_name: bool = False) -> None:
    """Send a text to the first process: an answer, or the name of this host if ``is_name`` is set."""
    from mpi4py import MPI  # noqa: PLC0415

    comm.Send([text.encode(), MPI.BYTE], dest=0, tag=_NAME if is_name else _TEXT)


def collect(comm: Any, seconds: float) -> Collected:
    """Return what the other processes send, after ``seconds`` at the latest."""
    found, deadline = Collected({}, {}, is_complete=False), time.monotonic() + seconds
    while len(found.texts) < comm.size - 1 and time.monotonic() < deadline:
        _receive(comm, found)
    if len(found.texts) < comm.size - 1 or _FLOODED in found.texts.values():
        return found
    # A text in the name of a process may have come before its own: wait until each has sent its own.
    all_sent = comm.Ibarrier()
    while not (has_ended := all_sent.Test()) and time.monotonic() < deadline:
        _receive(comm, found)
    while time.monotonic() < deadline and _receive(comm, found):
        pass
    return found._replace(is_complete=has_ended and _FLOODED not in found.texts.values())


def collect_into(comm: Any, path: str, seconds: float) -> int:
    """Write the texts of the other processes into a file, as a JSON object by rank; return the exit code.

    If a process has not ended its part, the exit code makes mpirun stop all processes.
    """
    found = collect(comm, seconds)
    write_atomically(path, [json.dumps({str(rank): text for rank, text in found.texts.items()})])
    if not found.is_complete:
        return 1  # without MPI_Finalize: mpirun then kills the processes that hang
    finish()
    return 0


def _receive(comm: Any, found: Collected) -> bool:
    """Take the next message, or wait for a moment; return whether there was one."""
    if (message := _receive_next(comm)) is None:
        time.sleep(_PAUSE_S)
        return False
    rank, tag, text = message
    if tag == _NAME:
        found.names.setdefault(rank, text)
    elif tag == _TEXT:  # A process may send messages with other tags.
        found.texts[rank] = text if found.texts.get(rank, text) == text else _CONTRADICTED
    return True


def _receive_next(comm: Any) -> tuple[int, int, str] | None:
    """Return the next message (rank, tag, text), or None if none has arrived."""
    from mpi4py import MPI  # noqa: PLC0415

    status = MPI.Status()
    message = comm.Improbe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
    if message is None:
        return None
    rank, tag, length = status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE)
    if length > MOST_OF_HOST:  # it stays where it is: receiving it would take as much memory
        return rank, tag, _FLOODED
    buffer = bytearray(length)
    message.Recv([buffer, MPI.BYTE])
    return rank, tag, buffer.decode(errors="replace")
