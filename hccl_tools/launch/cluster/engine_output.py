"""Show the ranks' logs of a job that an engine starts.

The output of local MPI ranks is read from the run directory: mpirun's output includes its own messages.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.launch import engines
from hccl_tools.launch.model.outcome import RankEnd
from hccl_tools.launch.supervise.options import EngineRanks
from hccl_tools.notation import named_lines
from hccl_tools.processes import run_files
from hccl_tools.runs import names, run_processes

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.logs.follower import Style
    from hccl_tools.launch.model.plan import Plan, Tail
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.launch.supervise.options import Supervision


def running_ranks(plan: Plan, attempt: Attempt) -> list[RankEnd]:
    """Return the running ranks that the shims have started on this host."""
    found = run_processes.find(plan.run_dir, attempt.keeper.descendants())
    return [
        RankEnd(plan.ranks[rank], _log(attempt, plan, rank), pid)
        for rank, pid in sorted(found.items())
        if rank < plan.world_size
    ]


def _log(attempt: Attempt, plan: Plan, rank: int) -> str:
    engine = next(end for end in attempt.state.ends if end.process.rank >= 0)
    # "" or, after a restart, ".restart_1".
    generation = os.path.basename(engine.log)[len(os.path.splitext(names.ENGINE_LOG)[0]) : -len(".log")]
    return os.path.join(plan.run_dir, f"rank_{rank}{generation}.log")


def show_rank_logs(attempt: Attempt, plan: Plan, shown: Tail) -> None:
    """Show the logs of the ranks in ``shown``."""
    for rank in range(plan.world_size) if shown == "all" else shown:
        path = _log(attempt, plan, rank)
        os.close(run_files.open_append(path))  # The shim may not have created the log yet.
        attempt.followers.follow(path, rank)


def shown_by(supervision: Supervision, plan: Plan, watch: Callable[[Attempt], None]) -> Supervision:
    """Return a supervision that shows the ranks' output; ``watch`` is called with every attempt.

    Supervisors write to the engine's output, in which MPICH's messages about killed processes are hidden.
    """
    if plan.supervisor:
        engine, name = engines.of(plan), engines.of(plan).processes(plan)[0].name
        begin = named_lines.beginning(name) if engine.merges_output else b""
        # Here is only the engine; the supervisor of each host watches its ranks.
        alone = supervision.watch._replace(hang_warn=None, hang_timeout=None, evidence_timeout=0.0)
        return supervision._replace(
            watch=alone,
            tail=(0,),
            hidden=tuple(begin + line for line in engine.hidden_output),
            on_attempt=watch,
        )
    tail = supervision.tail

    def watch_and_show(attempt: Attempt) -> None:
        watch(attempt)
        show_rank_logs(attempt, plan, tail)

    style: Style = "prefix" if tail == "all" or len(tail) > 1 else "auto"
    ranks = EngineRanks(plan.world_size, partial(running_ranks, plan))
    return supervision._replace(tail=(), log_style=style, on_attempt=watch_and_show, engine_ranks=ranks)
