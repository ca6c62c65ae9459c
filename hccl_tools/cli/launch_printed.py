"""What ``launch`` prints instead of starting a job: a plan, a script, or the objects of a cluster manager."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import launch_kubernetes
from hccl_tools.cli.launch_options import CLUSTER_MANAGERS
from hccl_tools.cli.site_options import is_from_site
from hccl_tools.errors import UsageError
from hccl_tools.launch import engines, launcher
from hccl_tools.launch.planning import host_names, program_check, table_source
from hccl_tools.launch.render import plan_output, scripts
from hccl_tools.notation.printable import on_stdout, tell
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


def show(request: LaunchRequest, options: dict[str, Any], own_names: set[str]) -> None:
    """Print what ``--emit`` or ``--dry-run`` asks for.

    Args:
        own_names: The options on the command line, by their canonical names.

    Raises:
        UsageError: An option does not go with it.
        LaunchError: The launch would be refused.
    """
    if options["emit"] in CLUSTER_MANAGERS:
        text, notes = launch_kubernetes.text(request, options, own_names)
        tell(*(f"note: {note}" for note in notes))
        print_text(text)
    elif options["emit"]:
        text, note = _emitted(request, options, own_names)
        if note is not None:
            tell(f"note: {note}")
        print_text(text)
    else:
        shown = _dry_run(request, form=options["dry_run"])
        click.echo(shown.encode(errors="backslashreplace"), nl=False)


def print_text(text: str) -> None:
    """Print a script or YAML as it is; on a terminal it must not have what the terminal interprets.

    Raises:
        UsageError: It has such characters, from the table or from the command line.
    """
    if sys.stdout.isatty() and any(character < " " and character not in "\n\t" for character in text):
        raise UsageError(
            "the text has control characters, which the terminal would interpret",
            hint="look for them in the table and in what you typed, or write it to a file: `... > job.sh`",
        )
    click.echo(os.fsencode(on_stdout(text)), nl=False)


def _emitted(request: LaunchRequest, options: dict[str, Any], own_names: set[str]) -> tuple[str, str | None]:
    scripts.check_options(own_names, options["emit"])
    kept = {"--log-dir": "log_dir", "--grace": "grace", "--max-restarts": "max_restarts"}
    given = {name: options[name] for option, name in kept.items() if option in own_names}
    if is_from_site("log_dir"):
        given["log_dir"] = options["log_dir"]
    for_one = options["server"] is not None or options["node_rank"] is not None
    chosen = scripts.ScriptOptions(request.variables.assigned, **given, this_host_only=for_one)
    return _script(request, options["emit"], chosen)


def _dry_run(request: LaunchRequest, *, form: str) -> str:
    """Return the plan of a launch as ``text`` or ``json``; nothing is written or started.

    Raises:
        LaunchError: The launch would be refused.
    """
    prepared = _prepared(request)
    plan = prepared.plan
    command = engines.of(plan).command(plan)
    if form == "json":
        return plan_output.as_json(plan, prepared.environment, command)
    return plan_output.as_text(plan, prepared.environment, command)


def _prepared(request: LaunchRequest) -> PreparedLaunch:
    # The plan of a launch can be shown on a host that does not belong to the job.
    return launcher.prepared_launch(request._replace(hosts=request.hosts._replace(include_this_host=False)))


def _script(request: LaunchRequest, target: str, options: ScriptOptions) -> tuple[str, str | None]:
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
