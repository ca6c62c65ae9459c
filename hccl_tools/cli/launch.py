"""``hccl-tools launch``: start one process per rank."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any, cast

import click

from hccl_tools import load_part
from hccl_tools.cli import launch_request, other_launchers
from hccl_tools.cli.launch_options import BARE, CLUSTER_MANAGERS, EPILOG, GROUPS, HELP, OF_OBJECTS, SPELLINGS
from hccl_tools.cli.option_groups import TYPED_OPTIONS, GroupedCommand
from hccl_tools.cli.values import hyphenated
from hccl_tools.errors import UsageError
from hccl_tools.host import site_defaults
from hccl_tools.host.local_addresses import is_this_host
from hccl_tools.launch import engines
from hccl_tools.notation.printable import tell
from hccl_tools.processes import keeper

if TYPE_CHECKING:
    from hccl_tools.cli.other_launchers import Foreign
    from hccl_tools.launch.model.request import LaunchRequest

#: ``python -m hccl_tools.launch`` runs under this name: the ranks then use the interpreter of the launcher.
MODULE_NAME = "python -m hccl_tools.launch"


def _launch(**options: Any) -> int:
    try:
        request = _request(options)
        if isinstance(request, int):
            return request
        # The keeper starts in an interpreter of its own while this process loads the launcher.
        keeper.start()
        from hccl_tools.launch import launcher  # noqa: PLC0415  (25 ms, in which the keeper starts)
    except KeyboardInterrupt as error:
        error.args = ("no job was started",)  # What the command line says of Ctrl-C.
        raise
    return launcher.launch(request)


def _request(options: dict[str, Any]) -> LaunchRequest | int:
    """Return the request of a job; print what is only to be printed, and return the exit code."""
    context = click.get_current_context()
    request = launch_request.read(options, own_python=context.find_root().info_name == MODULE_NAME)
    argv = request.program.argv
    request = request._replace(
        remarks=_remarks(argv, context), reordered_call=_reordered(argv, context) if argv[1:] else ""
    )
    if options["emit"] in CLUSTER_MANAGERS:
        return _printed(request, options)
    if given := next((name for name in OF_OBJECTS if options[name[2:].replace("-", "_")] is not None), None):
        raise UsageError(
            f"{given} is for a job that a cluster manager places", hint="add --emit vcjob or --emit acjob"
        )
    if _names_hosts(options) or _has_spares(options):
        with_hosts = _with_hosts(request, options)
        if isinstance(with_hosts, int):
            return with_hosts
        request = with_hosts
    else:
        request = _with_agent(request)
    if options["emit"] or options["dry_run"]:
        return _printed(request, options)
    if launch_request.has_gate(options) and request.part is None:
        request = load_part("cli.launch_preflight").with_gate(request, options)
    return request


def _names_hosts(options: dict[str, Any]) -> bool:
    return bool(options["hostfile"] or options["hosts"] or os.environ.get("SLURM_JOB_NODELIST"))


def _has_spares(options: dict[str, Any]) -> bool:
    return bool(options["spares"] or options["spare_hosts"])


def _with_hosts(request: LaunchRequest, options: dict[str, Any]) -> LaunchRequest | int:
    """Return the request with the table of the hosts that are named, and with spares; or print a script."""
    if _names_hosts(options):
        request = load_part("cli.launch_table").with_table(request, options)
    request = _with_agent(request)
    if _has_spares(options):
        launch_spares = load_part("cli.launch_spares")
        if options["emit"] == launch_spares.EMIT_TARGET:
            return _printed(request, options, launch_spares.batch_script(request, options))
        if not options["emit"]:  # The other targets refuse the option.
            request = launch_spares.with_spares(request, options)
    return request


def _with_agent(request: LaunchRequest) -> LaunchRequest:
    """Return the request with a remark about the ssh command of this site, if the engine uses it."""
    if engines.get(request.start.engine).uses_ssh and (agent := os.environ.get(site_defaults.SSH)):
        remark = f"ssh: {agent} ({site_defaults.origin(site_defaults.SSH, os.environ)})"
        return request._replace(remarks=(*request.remarks, remark))
    return request


def _printed(request: LaunchRequest, options: dict[str, Any], script: str | None = None) -> int:
    """Print what the options ask for instead of a job, and return the exit code."""
    launch_printed = load_part("cli.launch_printed")
    if script is None:
        launch_printed.show(request, options, _own_names(options))
    else:
        launch_printed.print_text(script)
    return 0


def _own_names(options: dict[str, Any]) -> set[str]:
    """Return the options on the command line, by their canonical names (``--grace``)."""
    context = click.get_current_context()
    source = click.core.ParameterSource.COMMANDLINE
    typed = {name for name in options if context.get_parameter_source(name) is source}
    return {parameter.opts[0] for parameter in context.command.get_params(context) if parameter.name in typed}


def _remarks(program: tuple[str, ...], context: click.Context) -> tuple[str, ...]:
    """Return a note if options of ``launch`` follow the program; empty if ``--`` precedes the program."""
    if context.meta[TYPED_OPTIONS][-1:] == ("--",):
        return ()
    shown = (option for option in command.params if not getattr(option, "hidden", False))
    own = {name for option in shown for name in option.opts if name.startswith("--")}
    found = [text for text in program[1:] if text.partition("=")[0].replace("_", "-") in own]
    if not found:
        return ()
    verb = "is" if len(found) == 1 else "are"
    listed = ", ".join(found[:4]) + (" ..." if len(found) > 4 else "")
    where = f"{listed} {verb} passed to {program[0]}; options of launch must precede the program"
    typed = _reordered(program, context)
    return (f"{where}: `{typed}` (`--` before the program disables this note)",)


def _reordered(program: tuple[str, ...], context: click.Context) -> str:
    """Return the call with the options of ``launch`` before the program."""
    known = {hyphenated(name): param for param in command.params for name in param.opts}
    moved: list[str] = []
    rest: list[str] = []
    words = iter(program[1:])
    for word in words:
        param = known.get(hyphenated(word.partition("=")[0]))
        if not isinstance(param, click.Option):
            rest.append(word)
            continue
        moved.append(word)
        if "=" not in word and not param.is_flag:
            moved += [value for value in (next(words, None),) if value is not None]
    return shlex.join(["hccl-tools", "launch", *context.meta[TYPED_OPTIONS], *moved, program[0], *rest])


def _foreign(name: str) -> Foreign | None:
    return other_launchers.OPTIONS.get(name)


def _of_pod(typed: set[str]) -> tuple[str, ...]:
    """Return the options that the variables of a PaddleJob pod stand for, and print them."""
    if "--run-dir" in typed or not any(name.startswith("PADDLE_") for name in os.environ):
        return ()  # The launcher of the whole job has read them.
    taken = other_launchers.of_pod(os.environ, typed, is_this_host)
    if taken.note:
        tell(f"hccl-tools: {taken.note}")
    return taken.options


command = GroupedCommand(
    "launch", cast("dict[str, Any]", GROUPS), BARE, SPELLINGS, _foreign, defaults=_of_pod,
    callback=_launch, help=HELP, epilog=EPILOG,
)  # fmt: skip
