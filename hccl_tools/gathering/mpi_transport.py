"""Texts from all MPI processes to the first. It waits for a stated time, not for ever as a gather does."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import DiscoveryError
from hccl_tools.gathering.failures import MPI4PY_MISSING_HINT

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME, _TEXT = 1, 2
#: Between two looks at what has come: nothing is lost, and processes that share the core can work.
_PAUSE_S = 0.001


def world() -> Any:
    """Return all MPI processes (mpi4py's COMM_WORLD).

    Raises:
        DiscoveryError: mpi4py is not there, or finds no MPI.
    """
    try:
        import mpi4py  # noqa: PLC0415  (only a gathering needs MPI)

        mpi4py.rc.threads = False
        # A process that fails must not wait at its end for others that hang: `finish` is for the good end.
        mpi4py.rc.finalize = False
        from mpi4py import MPI  # noqa: PLC0415
    except ImportError as error:
        if error.name in {"mpi4py", None} and "mpi4py" in str(error):
            raise DiscoveryError("mpi4py is not installed there", hint=MPI4PY_MISSING_HINT) from None
        raise DiscoveryError(f"mpi4py does not work there: {error}", hint=MPI4PY_MISSING_HINT) from None
    except (RuntimeError, OSError) as error:
        said = " ".join(str(error).split())
        raise DiscoveryError(f"mpi4py finds no MPI there: {said}", hint=MPI4PY_MISSING_HINT) from None
    return MPI.COMM_WORLD


def finish() -> None:
    """Leave MPI, together with all others."""
    from mpi4py import MPI  # noqa: PLC0415

    MPI.Finalize()


def send(comm: Any, text: str) -> None:
    """Send a text to the first process."""
    comm.Send([text.encode(), _byte()], dest=0, tag=_TEXT)


def send_name(comm: Any, name: str) -> None:
    """Tell the first process who will send a text."""
    comm.Send([name.encode(), _byte()], dest=0, tag=_NAME)


def collect(comm: Any, seconds: float) -> tuple[dict[int, str], Mapping[int, str]]:
    """Take in what the other processes send.

    Args:
        comm: All processes; this is the first.
        seconds: How long to wait for all of them.

    Returns:
        The texts by rank, those missing that did not come in time; and the names that were told, by rank.
    """
    told: dict[int, dict[int, str]] = {_NAME: {}, _TEXT: {}}
    deadline = time.monotonic() + seconds
    while len(told[_TEXT]) < comm.size - 1 and time.monotonic() < deadline:
        if (come := _next(comm)) is None:
            time.sleep(_PAUSE_S)
        else:
            rank, tag, text = come
            told[tag][rank] = text
    return told[_TEXT], told[_NAME]


def collect_into(comm: Any, path: str, seconds: float) -> int:
    """Write the other processes' texts into a file, as a JSON list; return the exit code.

    Where some are missing, the others' are written and mpirun will end all.
    """
    texts, _ = collect(comm, seconds)
    write_atomically(path, [json.dumps([texts[rank] for rank in sorted(texts)])])
    if len(texts) < comm.size - 1:
        return 1  # without a proper end of MPI: mpirun then ends those that hang
    finish()
    return 0


def _next(comm: Any) -> tuple[int, int, str] | None:
    """Return the next message that has come (rank, tag, text), None if there is none yet."""
    from mpi4py import MPI  # noqa: PLC0415

    status = MPI.Status()
    if not comm.Iprobe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status):
        return None
    rank, tag = status.Get_source(), status.Get_tag()
    buffer = bytearray(status.Get_count(MPI.BYTE))
    comm.Recv([buffer, MPI.BYTE], source=rank, tag=tag)
    return rank, tag, buffer.decode()


def _byte() -> Any:
    from mpi4py import MPI  # noqa: PLC0415

    return MPI.BYTE
