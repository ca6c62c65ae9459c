"""What is shown of a job that an engine starts: the ranks' lines, not the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.launch.cluster import engine_output
from hccl_tools.launch.engines import mpich

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.model.request import Tail
    from hccl_tools.launch.supervise.attempt import Attempt


def options(plan: Plan, tail: Tail, watch: Callable[[Attempt], None]) -> dict[str, Any]:
    """Return the options of ``Supervision`` that settle it; ``watch`` is called with every attempt.

    Supervisors write what they show to the engine's output; besides, that holds MPICH's words of a process
    that was killed. Ranks as MPI processes have their logs here.
    """
    if plan.supervisor:
        own = mpich.OWN_WORDS if plan.engine_flavour.startswith("mpich") else ()
        return {"tail": (0,), "hidden": own, "watch": watch}

    def watch_and_show(attempt: Attempt) -> None:
        watch(attempt)
        engine_output.watch(attempt, plan, tail)

    style = "prefix" if tail == "all" or len(tail) > 1 else "auto"
    return {"tail": (), "log_style": style, "watch": watch_and_show}
