"""``hccl-tools launch``: start one process per rank."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any, cast

import click

from hccl_tools.cli import launch_request, preflight_options
from hccl_tools.cli.launch_options import BARE, CLUSTER_MANAGERS, EPILOG, GROUPS, HELP, OF_OBJECTS, SPELLINGS
from hccl_tools.cli.option_groups import TYPED_OPTIONS, GroupedCommand
from hccl_tools.cli.site_options import is_from_site
from hccl_tools.cli.values import hyphenated
from hccl_tools.errors import UsageError
from hccl_tools.host import site_defaults
from hccl_tools.launch import engines
from hccl_tools.notation.printable import on_stdout, tell

if TYPE_CHECKING:
    from hccl_tools.cli.other_launchers import Foreign
    from hccl_tools.launch.model.request import LaunchRequest

#: ``python -m hccl_tools.launch`` runs under this name: the ranks then use the interpreter of the launcher.
MODULE_NAME = "python -m hccl_tools.launch"


def _launch(**options: Any) -> int:
    try:
        request = _request(options)
    except KeyboardInterrupt as error:
        error.args = ("no job was started",)  # What the command line says of Ctrl-C.
        raise
    if isinstance(request, int):
        return request
    from hccl_tools.launch import launcher  # noqa: PLC0415  (`--help` does not need it)

    return launcher.launch(request)


def _request(options: dict[str, Any]) -> LaunchRequest | int:
    """Return the request of a job; print what is only to be printed, and return the exit code."""
    context = click.get_current_context()
    request = launch_request.read(options, own_python=context.find_root().info_name == MODULE_NAME)
    request = request._replace(remarks=_remarks(request.program.argv, context))
    if options["emit"] in CLUSTER_MANAGERS:
        from hccl_tools.cli import launch_kubernetes  # noqa: PLC0415  (few jobs are written as YAML)

        text, notes = launch_kubernetes.text(request, options, _own_names(options))
        tell(*(f"note: {note}" for note in notes))
        _print(text)
        return 0
    if given := next((name for name in OF_OBJECTS if options[name[2:].replace("-", "_")] is not None), None):
        raise UsageError(
            f"{given} is for a job that a cluster manager places", hint="add --emit vcjob or --emit acjob"
        )
    if options["hostfile"] or options["hosts"] or os.environ.get("SLURM_JOB_NODELIST"):
        from hccl_tools.cli import launch_table  # noqa: PLC0415  (other jobs have a table or one host)

        request = launch_table.with_table(request, options)
    if engines.get(request.start.engine).uses_ssh and (agent := os.environ.get(site_defaults.SSH)):
        remark = f"ssh: {agent} ({site_defaults.origin(site_defaults.SSH, os.environ)})"
        request = request._replace(remarks=(*request.remarks, remark))
    if options["spares"] or options["spare_hosts"]:
        from hccl_tools.cli import launch_spares  # noqa: PLC0415  (few jobs have spares)

        if options["emit"] == launch_spares.EMIT_TARGET:
            _print(launch_spares.batch_script(request, options))
            return 0
        if not options["emit"]:  # The other targets refuse the option.
            request = launch_spares.with_spares(request, options)
    if options["emit"]:
        text, note = _emitted(request, options)
        if note is not None:
            tell(f"note: {note}")
        _print(text)
        return 0
    if options["dry_run"]:
        from hccl_tools.launch import preview  # noqa: PLC0415  (a real launch does not need it)

        shown = preview.dry_run(request, form=options["dry_run"])
        click.echo(shown.encode(errors="backslashreplace"), nl=False)
        return 0
    if preflight_options.has_gate(options) and request.part is None:
        request = _admitted(request, options)
    return request


def _print(text: str) -> None:
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


def _admitted(request: LaunchRequest, options: dict[str, Any]) -> LaunchRequest:
    """Return the request for hosts that pass the checks before the start."""
    from hccl_tools.cli import launch_preflight  # noqa: PLC0415  (few launches ask all hosts)

    seconds = options["preflight_timeout"] or preflight_options.SECONDS
    is_full, own = options["preflight"] == "full", options["preflight_command"]
    ignored = preflight_options.ignored_checks(options)
    return launch_preflight.admitted(request, launch_preflight.Gate(is_full, own, seconds, ignored))


def _emitted(request: LaunchRequest, options: dict[str, Any]) -> tuple[str, str | None]:
    from hccl_tools.launch import preview  # noqa: PLC0415  (only with --emit)
    from hccl_tools.launch.render import scripts  # noqa: PLC0415  (only with --emit)

    own_names = _own_names(options)
    scripts.check_options(own_names, options["emit"])
    kept = {"--log-dir": "log_dir", "--grace": "grace", "--max-restarts": "max_restarts"}
    given = {name: options[name] for option, name in kept.items() if option in own_names}
    if is_from_site("log_dir"):
        given["log_dir"] = options["log_dir"]
    for_one = options["server"] is not None or options["node_rank"] is not None
    chosen = scripts.ScriptOptions(request.variables.assigned, **given, this_host_only=for_one)
    return preview.emit(request, options["emit"], chosen)


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
    from hccl_tools.cli import other_launchers  # noqa: PLC0415  (only for an option that launch does not have)

    return other_launchers.OPTIONS.get(name)


def _of_pod(typed: set[str]) -> tuple[str, ...]:
    """Return the options that the variables of a PaddleJob pod stand for, and print them."""
    if "--run-dir" in typed or not any(name.startswith("PADDLE_") for name in os.environ):
        return ()  # The launcher of the whole job has read them.
    from hccl_tools.cli import pod_variables  # noqa: PLC0415  (few shells have such variables)
    from hccl_tools.host.local_addresses import is_this_host  # noqa: PLC0415

    taken = pod_variables.read(os.environ, typed, is_this_host)
    if taken.note:
        tell(f"hccl-tools: {taken.note}")
    return taken.options


command = GroupedCommand(
    "launch", cast("dict[str, Any]", GROUPS), BARE, SPELLINGS, _foreign, defaults=_of_pod,
    callback=_launch, help=HELP, epilog=EPILOG,
)  # fmt: skip
