"""What a launch would do, without starting anything: its plan, or a script of another launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch import launcher
from hccl_tools.launch.render import plan_json

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.render.scripts import Wishes


def dry_run(request: LaunchRequest, *, form: str) -> str:
    """Return the plan of a launch as ``text`` or ``json``; nothing is written or started.

    Raises:
        LaunchError: The launch would be refused.
    """
    prepared = launcher.prepared_launch(request._replace(only_shown=True))
    plan = prepared.plan
    if form == "json":
        return plan_json.as_json(plan, prepared.environment, plan_json.engine_command(plan))
    from hccl_tools.launch.render import plan_text  # noqa: PLC0415  (a real launch prints less)

    return plan_text.as_text(plan, prepared.environment, plan_json.engine_command(plan))


def emit(request: LaunchRequest, target: str, wishes: Wishes) -> str:
    """Return a stand-alone script, or another tool's command, that starts the same job.

    Raises:
        LaunchError: The launch would be refused, or the target cannot say what the plan says.
    """
    from hccl_tools.launch.planning import host_names  # noqa: PLC0415
    from hccl_tools.launch.render import scripts as emitting  # noqa: PLC0415

    prepared = launcher.prepared_launch(request._replace(only_shown=True))
    if target in emitting.SCRIPTS:
        # mpirun.sh names hosts to mpirun, where a colon begins a number of ranks.
        alone = target != "mpirun" or len(prepared.plan.hosts) == 1
        host_names.check(prepared, use=f"--emit {target}", colons=alone)
    return emitting.text(prepared.plan, target, wishes)
