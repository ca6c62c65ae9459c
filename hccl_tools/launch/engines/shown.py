"""What is shown of a job that an engine starts: the ranks' lines, not the engine's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hccl_tools.launch import end_messages, mpi_ranks
from hccl_tools.launch.engines import mpich

if TYPE_CHECKING:
    from hccl_tools.launch.plan import Plan
    from hccl_tools.launch.request import Tail


def options(plan: Plan, tail: Tail, token: str) -> dict[str, Any]:
    """Return the options of ``Supervision`` that settle it.

    Supervisors write what they show to the engine's output; besides, that holds what they say to the launcher
    alone, and MPICH's words of a process that was killed. Ranks as MPI processes have their logs here.
    """
    if not plan.supervisor:
        style = "prefix" if tail == "all" or len(tail) > 1 else "auto"
        return {"tail": (), "log_style": style, "watch": partial(mpi_ranks.watch, plan=plan, shown=tail)}
    own = mpich.OWN_WORDS if plan.engine_flavour.startswith("mpich") else ()
    return {"tail": (0,), "hidden": (end_messages.mark(token).encode(), *own)}
