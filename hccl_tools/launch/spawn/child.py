"""The main program of a process of ``spawn``: call the function, write its result or exception to a file.

A file, unlike a pipe, keeps a result of any size until the parent reads it, and blocks neither process.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from multiprocessing import spawn
from typing import Any

from hccl_tools.processes import run_files
from hccl_tools.runs import private_files

#: The file with function and arguments, in a private directory.
PAYLOAD = "spawn.pickle"
#: The file with the result of a rank.
RESULT = "result_{rank}.pickle"
#: The file with the exception of a rank.
FAILURE = "failure_{rank}.pickle"
_INTERRUPTED = 130
_preparing = False


def main(folder: str) -> None:
    """Run the function of this rank and exit with its exit code; ``folder`` is the private directory."""
    rank = os.environ["RANK_ID"]
    failure = FAILURE.format(rank=rank)
    try:
        value = _call(os.path.join(folder, PAYLOAD))
        run_files.write(folder, RESULT.format(rank=rank), _pickled(value))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except Exception as error:  # noqa: BLE001  (handed over to the parent)
        text = _traceback(error)
        sys.stderr.write(text)
        run_files.write(folder, failure, pickled(error, text))
        sys.exit(1)


def _traceback(error: Exception) -> str:
    """Return the traceback from the caller's function on, without the frames of this module."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))


def is_preparing() -> bool:
    """Return whether this process is a rank that is importing its caller's script.

    A script without ``if __name__ == "__main__":`` calls ``spawn`` at that time.
    """
    return _preparing


def _call(path: str) -> Any:
    global _preparing  # noqa: PLW0603  (of this process, which is one rank)
    with open(private_files.open_own(path), "rb") as file:
        preparation = pickle.load(file)  # noqa: S301  (written by the parent)  # nosec B301
        _preparing = True
        # This sets sys.path, without which the function's module may not be found.
        spawn.prepare(preparation)
        function, args = pickle.load(file)  # noqa: S301  (written by the parent)  # nosec B301
        _preparing = False
    return function(*args)


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise TypeError(
            f"the result ({type(value).__qualname__}) cannot be sent to the caller: {error}"
        ) from error


class _Rebuilt:
    """Replaces an exception that pickle cannot restore.

    The usual reason: the exception's ``__init__`` accepts other arguments than it passes to ``Exception``.
    """

    def __init__(self, kind: type[Exception], args: tuple[Any, ...], state: dict[str, Any]) -> None:
        self._parts = (kind, args, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, self._parts


def rebuild(kind: type[Exception], args: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    """Return an exception from its parts, without calling its ``__init__``."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


def pickled(error: Exception, text: str) -> bytes:
    """Return an exception, or its nearest base class that can be pickled, and its traceback as bytes."""
    if (data := _tried(error, text, type(error))) is not None:
        return data
    for kind in type(error).__mro__[:-2]:  # The last two are BaseException and object.
        plain = tuple(map(repr, error.args))
        for args, state in ((error.args, error.__dict__), (plain, {})):
            if (data := _tried(_Rebuilt(kind, args, state), text, kind)) is not None:
                return data
    return pickle.dumps((None, text))


def _tried(value: Any, text: str, kind: type[Exception]) -> bytes | None:
    """Return the bytes if unpickling them gives an exception of this type."""
    try:
        data = pickle.dumps((value, text))
        found = pickle.loads(data)[0]  # noqa: S301  (our own bytes)  # nosec B301
    except Exception:  # noqa: BLE001  (whatever its __reduce__ raises)
        return None
    return data if type(found) is kind else None
