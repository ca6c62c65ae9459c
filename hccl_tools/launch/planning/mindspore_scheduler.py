"""MindSpore's scheduler: one extra process on rank 0's host where the ranks of ``--start cluster`` meet.

It runs under the ranks' Python, which may know nothing of hccl-tools, and it does not run the user's script:
it joins the cluster, holds no device, and returns when the ranks have gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.model.plan import RankProcess
from hccl_tools.launch.planning.environment import scheduler_environment

if TYPE_CHECKING:
    from hccl_tools.launch.planning.environment import JobFacts
    from hccl_tools.launch.planning.placement import RankPlacement

#: ``set_device`` came with MindSpore 2.5; 2.4 has the older name of it only.
PROGRAM = (
    "import mindspore as ms; "
    "getattr(ms, 'set_device', lambda target: ms.set_context(device_target=target))('CPU'); "
    "from mindspore.communication import init; init()"
)
LOG = "scheduler.log"


def process(first: RankPlacement, job: JobFacts, python: str) -> RankProcess:
    """Return the scheduler's process, beside rank 0.

    Args:
        first: The placement of rank 0.
        job: What all ranks share.
        python: The ranks' interpreter.
    """
    return RankProcess(
        rank=-1,
        host=first.host,
        server_index=first.server_index,
        device=-1,
        device_id=-1,
        environment=scheduler_environment(job),
        argv=(python, "-c", PROGRAM),
        log=LOG,
    )
