"""Show the plan of a launch, or a script or command that starts the same job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch import engines, launcher
from hccl_tools.launch.planning import host_names, program_check, table_source
from hccl_tools.launch.render import plan_json, plan_text, scripts
from hccl_tools.programs.lookup import ProgramMissingError

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch
    from hccl_tools.launch.render.scripts import ScriptOptions

_FOR_ONE = "--node-rank I and --master-addr ADDRESS for the command of one machine"
#: What to do instead where the machines of a job are not known yet.
_WITHOUT_NAMES = {
    "slurm": "run `hccl-tools launch` without --emit in the batch job: it uses the nodes of the job",
    "msrun": _FOR_ONE,
    "torchrun": _FOR_ONE,
}


def dry_run(request: LaunchRequest, *, form: str) -> str:
    """Return the plan of a launch as ``text`` or ``json``; nothing is written or started.

    Raises:
        LaunchError: The launch would be refused.
    """
    prepared = _prepared(request)
    plan = prepared.plan
    command = engines.of(plan).command(plan)
    if form == "json":
        return plan_json.as_json(plan, prepared.environment, command)
    return plan_text.as_text(plan, prepared.environment, command)


def _prepared(request: LaunchRequest) -> PreparedLaunch:
    # The plan of a launch can be shown on a host that does not belong to the job.
    return launcher.prepared_launch(request._replace(hosts=request.hosts._replace(include_this_host=False)))


def emit(request: LaunchRequest, target: str, options: ScriptOptions) -> tuple[str, str | None]:
    """Return a stand-alone script or another launcher's command that starts the same job, and a note.

    The note says that the program does not exist on this host: the script is for the hosts of the job.

    Raises:
        UsageError: The job has several machines, and nothing names them.
        LaunchError: The launch would be refused, or the target cannot express the plan.
    """
    _check_machines(request, target)
    if request.start.method is None and target in scripts.STARTS:
        request = request._replace(start=request.start._replace(method=scripts.STARTS[target]))
    prepared = _prepared(request._replace(program=request.program._replace(may_be_missing=True)))
    if script := scripts.SCRIPTS.get(target):
        colons = script.takes_colons or len(prepared.plan.hosts) == 1
        host_names.check(prepared, use=f"--emit {target}", colons=colons)
    return scripts.text(prepared.plan, target, options), _missing(request, prepared.plan)


def _check_machines(request: LaunchRequest, target: str) -> None:
    """Refuse a script for machines that nothing names: it is written once, for all of them.

    Raises:
        UsageError: There are several, and neither a table nor ``--ips`` names them.
    """
    hosts, table = request.hosts, request.table
    is_for_one = hosts.node_rank is not None and target in scripts.STARTS
    if (hosts.node_count or 1) == 1 or hosts.ips or is_for_one:
        return
    if table.made is not None or table_source.locate(table, os.environ):
        return
    hint = "add --rank-table FILE"
    if target not in scripts.SERVICES:
        hint += ", or --ips A,B with their addresses"
    raise UsageError(
        f"--emit {target}: nothing names the {hosts.node_count} machines of the job",
        hint="; or ".join(filter(None, (hint, _WITHOUT_NAMES.get(target)))),
    )


def _missing(request: LaunchRequest, plan: Plan) -> str | None:
    """Return a note if the program does not exist on this host.

    Raises:
        ProgramRefusedError: It exists, but cannot be run.
    """
    environ = {**os.environ, **request.variables.assigned}
    try:
        program_check.check(request.program, environ, python=plan.ranks[0].argv[0])
    except ProgramMissingError as error:
        note = f"{error.message}; it must exist on the hosts of the job"
        is_script = request.program.kind == "script" and not request.program.argv[0].endswith(".py")
        return f"{note}; --no-python starts a program that is not Python" if is_script else note
    return None
