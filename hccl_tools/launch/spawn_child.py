"""What runs in a process of ``spawn``: the caller's function, its result or its exception into a file.

Files, not pipes: a result of any size waits there until the parent looks, and cannot stop either of the two.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from typing import Any

#: In the run directory: function and arguments; then one result or failure per rank.
PAYLOAD, RESULT, FAILURE = "spawn.pickle", "result_{rank}.pickle", "failure_{rank}.pickle"
_INTERRUPTED = 130


def main() -> None:
    """Run the function of this rank and end with its exit code."""
    run_dir, rank = os.environ["HCCL_TOOLS_RUN_DIR"], os.environ["RANK_ID"]
    failure = os.path.join(run_dir, FAILURE.format(rank=rank))
    try:
        value = _call(os.path.join(run_dir, PAYLOAD))
        _write(os.path.join(run_dir, RESULT.format(rank=rank)), pickle.dumps(value))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except Exception as error:  # noqa: BLE001  (handed over to the parent)
        text = traceback.format_exc()
        sys.stderr.write(text)
        _write(failure, pickle.dumps((_portable(error), text)))
        sys.exit(1)


def _call(path: str) -> Any:
    """Become what the parent's interpreter was for its functions, and call the one that was handed over."""
    from multiprocessing import spawn  # noqa: PLC0415

    with open(path, "rb") as file:
        preparation = pickle.load(file)  # noqa: S301  (written by the parent, into a directory of its own)
        # The path first: the function's module may be found there only.
        spawn.prepare(preparation)
        function, args = pickle.load(file)  # noqa: S301
    return function(*args)


def _portable(error: Exception) -> Exception | None:
    """Return the exception if the parent can be given it as it is, else ``None``."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  (our own bytes)
    except Exception:  # noqa: BLE001  (whatever its __reduce__ raises)
        return None
    return error


def _write(path: str, data: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = f"{path}.part"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)
