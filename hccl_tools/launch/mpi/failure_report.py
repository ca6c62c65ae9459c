"""Print the failure of a rank whose shim the user started with mpirun.

The first rank that fails prints the whole report, a rank that fails later prints one line, and a rank that
was terminated prints nothing. Under ``launch`` the launcher prints the report.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from hccl_tools.launch.model.outcome import RankEnd
from hccl_tools.launch.model.plan import RankProcess
from hccl_tools.launch.report import report
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import time_span
from hccl_tools.notation.printable import escaped
from hccl_tools.processes import run_files
from hccl_tools.runs import names

if TYPE_CHECKING:
    from hccl_tools.launch.mpi.prepared import PreparedRank

#: The file in the run directory that contains the rank that failed first.
FIRST_FAILURE = "first_failure"


def print_failure(prepared: PreparedRank, *, pid: int, status: int, duration: float, log: str) -> None:
    """Print the failure of a rank, unless it was terminated; ``duration`` is in seconds."""
    process = RankProcess(
        rank=prepared.rank,
        host=os.uname().nodename,
        server_index=0,
        device=prepared.device,
        device_id=prepared.device,
        environment={},
        argv=prepared.argv,
        log=log,
    )
    ended = time.monotonic()
    end = RankEnd(process, log, pid=pid, started=ended - duration, ended=ended, status=status)
    if _is_first(prepared):
        first = report.first_failure(end, killed_by_oom=None)
        lines = [
            *report.failure_lines(first, run_dir=prepared.run_dir),
            f"  logs: {names.shown(prepared.run_dir)}",
        ]
    else:
        after = f"{time_span(duration, 2)} (log: {names.shown(log)})"
        lines = [f"{process.name} also failed: {end.description} after {after}"]
    # In one write, because other ranks write to the same terminal.
    text = escaped("hccl-tools: " + "\n".join(lines) + "\n", keep="\n\t")
    sys.stderr.write(screen.fitted(text, screen.width(2)))
    sys.stderr.flush()


def _is_first(prepared: PreparedRank) -> bool:
    try:
        with run_files.opened(prepared.run_dir) as folder:
            folder.create(FIRST_FAILURE, f"{prepared.rank}\n".encode())
    except FileExistsError:
        return False
    except OSError:
        return True  # Such as a full disk: a second report is better than none.
    return True
