"""The far side of ``hccl-tools logs``: on the host of a rank, write its log to standard output.

Whoever asks is at the other end of an ssh or srun. Each byte on standard input says that it is still there,
and ``OVER`` that the run has ended, which only the launcher's host can know; Slurm says it by SIGTERM when
the allocation ends with the run. Its end, or silence, ends this process, even in the middle of a write into a
connection that leads nowhere any more.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from hccl_tools.errors import HcclToolsError, InputError
from hccl_tools.launch.logs import viewer
from hccl_tools.launch.runs import index

#: What is said on standard input; how often, and after how many seconds of silence nobody is there.
ALIVE, OVER = b".", b"!"
EVERY, SILENCE = 5.0, 30


def main(text: str) -> int:
    """Send what ``text``, the JSON of ``remote_logs``, asks for; return the exit code."""
    asked = json.loads(text)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: over.set())
    threading.Thread(target=_listen, args=(over,), daemon=True).start()
    following = asked["follow"]
    try:
        run = _run(asked["run"], over if following else None)
        logs = viewer.paths(
            run,
            asked["ranks"],
            while_=(lambda: not over.is_set()) if following else None,
        )
        shown = viewer.local(logs, prefixed=asked["prefixed"], lines=asked["lines"])
        viewer.show(shown, is_over=lambda: not following or over.is_set())
    except HcclToolsError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return error.exit_code
    except BrokenPipeError:
        return 1
    return 0


def _run(path: str, over: threading.Event | None) -> index.Run:
    """Return the run; one that is being followed may still be on its way to this host."""
    while not os.path.exists(os.path.join(path, "plan.json")):
        if over is None or over.wait(viewer.PAUSE):
            raise InputError(f"there is no run in {path} on this host")
    return index.read(path)


def _listen(over: threading.Event) -> None:
    while True:
        signal.alarm(SILENCE)
        said = os.read(0, 1)
        if not said:
            os._exit(1)  # Nobody is there to read any more.
        if said == OVER:
            over.set()
