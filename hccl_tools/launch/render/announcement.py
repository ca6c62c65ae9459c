"""The lines that a launch prints at the start of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import and_more
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.launch.model.plan import Plan


def lines(plan: Plan) -> Iterator[str]:
    """Yield the ranks of this host, the notes, and the variables that the ranks do not inherit."""
    ranks = [process for process in plan.local if process.rank >= 0]
    shown = ", ".join(str(process.device) for process in ranks[:16]) + (", ..." if len(ranks) > 16 else "")
    plural = "s" if len(ranks) > 1 else ""
    of = f" of {plan.world_size}" if len(ranks) < plan.world_size else ""
    where = "a rehearsal on the CPU" if plan.cpu else f"device{plural} {shown}"
    logs = names.shown(plan.run_dir)
    # Without a table and a framework, ranks need no way to find each other.
    start = "" if plan.start == "table" and plan.table is None else f", start method {plan.start}"
    yield f"{len(ranks)}{of} rank{plural}, {where}{start}; logs: {logs}"
    yield from plan.notes
    if plan.removed:
        yield f"replaced or removed in the ranks' environment: {and_more(plan.removed, 8)}"
