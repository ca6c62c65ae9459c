"""The processes of a plan: its ranks, and MindSpore's scheduler if the ranks need it.

The scheduler of ``--start cluster`` is one extra process on rank 0's host. It runs under the ranks' Python,
which may not have hccl-tools. Instead of the user's script it runs code that joins the cluster, uses no
device and returns when the ranks have exited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.launch.model.plan import RankProcess
from hccl_tools.launch.planning import composition, interpreter, log_paths
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.environment import JobFacts
    from hccl_tools.launch.planning.interpreter import Interpreter
    from hccl_tools.launch.planning.job import Job

#: ``set_device`` came with MindSpore 2.5; 2.4 has only the older function.
SCHEDULER_PROGRAM = own_python.without_current_folder(
    "import mindspore as ms; "
    "getattr(ms, 'set_device', lambda target: ms.set_context(device_target=target))('CPU'); "
    "from mindspore.communication import init; init()"
)


def processes(
    request: LaunchRequest,
    job: Job,
    facts: JobFacts,
    python: Interpreter,
    variables: Mapping[int, dict[str, str]],
) -> tuple[RankProcess, ...]:
    """Return the ranks, preceded by the scheduler if one is needed."""
    argv, assigned = interpreter.command(request.program, python.path), dict(request.variables.assigned)
    if facts.python_path is not None:
        assigned.pop("PYTHONPATH", None)  # It is part of the launcher's value.
    ranks = tuple(
        RankProcess(
            rank=one.rank,
            host=one.host,
            server_index=one.server_index,
            device=one.device,
            device_id=int(variables[one.rank]["DEVICE_ID"]),
            environment={**variables[one.rank], **assigned},
            argv=argv,
            log=log_paths.log_path(request.logs, one, all_here=request.hosts.all_here),
        )
        for one in job.placements
    )
    if not composition.wants_scheduler(facts, python.frameworks):
        return ranks
    scheduler = RankProcess(
        rank=-1,
        host=job.placements[0].host,
        server_index=job.placements[0].server_index,
        device=-1,
        device_id=-1,
        environment=composition.scheduler_environment(facts),
        argv=(python.path, "-c", SCHEDULER_PROGRAM),
        log=names.SCHEDULER_LOG,
    )
    return (scheduler, *ranks)
