"""What is said of a job as it starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.launch.model.plan import Plan


def lines(plan: Plan) -> Iterator[str]:
    """Yield it line by line: what starts here, what the user should know, what was replaced."""
    ranks = [process for process in plan.local if process.rank >= 0]
    which = ", ".join(str(process.device) for process in ranks[:16]) + (", ..." if len(ranks) > 16 else "")
    many = "s" if len(ranks) > 1 else ""
    of = f" of {plan.world_size}" if len(ranks) < plan.world_size else ""
    what = "a rehearsal on the CPU" if plan.cpu else f"device{many} {which}"
    yield f"{len(ranks)}{of} rank{many}, {what}, start {plan.start}; logs: {_short(plan)}"
    yield from plan.notes
    if plan.removed:
        yield f"replaced or removed in the ranks' environment: {', '.join(_shown(plan.removed))}"


def _shown(names: Sequence[str]) -> list[str]:
    return [*names[:8], f"and {len(names) - 8} more"] if len(names) > 9 else list(names)


def _short(plan: Plan) -> str:
    relative = os.path.relpath(plan.run_dir, plan.working_dir)
    return plan.run_dir if relative.startswith("..") else relative
