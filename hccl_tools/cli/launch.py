"""``hccl-tools launch``: start one process per rank."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import click

from hccl_tools.cli.launch_options import BARE, EPILOG, GROUPS, HELP, SPELLINGS
from hccl_tools.cli.option_groups import TYPED_OPTIONS, GroupedCommand
from hccl_tools.errors import UsageError
from hccl_tools.launch import engines
from hccl_tools.launch.model.request import LaunchRequest, ProgramKind, Tail
from hccl_tools.launch.planning import typed_python

if TYPE_CHECKING:
    from hccl_tools.cli.other_launchers import Foreign
    from hccl_tools.launch.model.plan import Start

#: ``python -m hccl_tools.launch`` runs under this name and says by it that its own interpreter is meant.
MODULE_NAME = "python -m hccl_tools.launch"
#: torchrun's words for one rank on each device that is there.
_ALL_VISIBLE = ("auto", "npu", "gpu", "xpu")


def _launch(**options: Any) -> int:
    request = request_of(options, own_python=click.get_current_context().find_root().info_name == MODULE_NAME)
    request = request._replace(remarks=_remarks(request.program, click.get_current_context()))
    if options["hostfile"] or os.environ.get("SLURM_JOB_NODELIST"):
        from hccl_tools.cli import launch_table  # noqa: PLC0415  (other jobs have their table, or one host)

        request = launch_table.with_table(request, options)
    if options["emit"]:
        click.echo(os.fsencode(_emitted(request, options)), nl=False)
        return 0
    if options["dry_run"]:
        from hccl_tools.launch import preview  # noqa: PLC0415  (a real launch does not need it)

        shown = preview.dry_run(request, form=options["dry_run"])
        click.echo(shown.encode(errors="backslashreplace"), nl=False)
        return 0
    from hccl_tools.launch import launcher  # noqa: PLC0415  (`--help` does not need it)

    return launcher.launch(request, options)


def _emitted(request: LaunchRequest, options: dict[str, Any]) -> str:
    from hccl_tools.launch import preview  # noqa: PLC0415  (few ask for it)
    from hccl_tools.launch.render import scripts  # noqa: PLC0415  (few ask for it)

    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    typed = {name for name in options if context.get_parameter_source(name) is not default}
    own_names = {
        parameter.opts[0] for parameter in context.command.get_params(context) if parameter.name in typed
    }
    scripts.check_options(own_names, options["emit"])
    given = {name: options[name] for name in ("log_dir", "grace", "max_restarts") if name in typed}
    return preview.emit(request, options["emit"], scripts.ScriptOptions(request.environment, **given))


def request_of(options: dict[str, Any], *, own_python: bool) -> LaunchRequest:
    """Return what was asked for, from the options as click hands them over.

    Raises:
        UsageError: Options exclude each other, or the program is missing.
    """
    kind, program, python = _program(options)
    per_node, ips = _per_node(options["per_node"], cpu=options["cpu"]), _ips(options["ips"])
    ranks, node_count = _size(options["count"], per_node, _nodes(options["node_count"]), len(ips))
    address, port = _master(options)
    return LaunchRequest(
        program=program,
        kind=kind,
        rank_table=options["rank_table"],
        ranks=ranks,
        devices=options["devices"],
        no_table=options["no_table"],
        product=options["product"],
        ignore=tuple(rule.strip() for text in options["ignore"] for rule in text.split(",")),
        start=_start(options),
        engine=_engine(options),
        mpirun=options["mpirun"],
        cpu=options["cpu"],
        all_here=options["all_here"],
        max_ranks=options["max_ranks"],
        server=options["server"],
        ignore_visible=options["ignore_visible"],
        local_check=not options["no_local_check"],
        preflight=not options["no_preflight"],
        environment=_environment(options["env"], options["env_file"]),
        keep_mpi=options["keep_mpi"],
        pass_table=options["pass_table"],
        buffered=options["buffered"],
        python=python,
        own_python=own_python,
        log_dir=options["log_dir"],
        log_mode=_log_mode(options["log_mode"]),
        log_file=options["log_file"],
        flat_logs=options["flat_logs"],
        tail=_tail(options["tail"]),
        stdin=() if options["stdin"] is None else (options["stdin"],),
        start_port=port,
        master_address=address,
        ips=ips,
        node_count=node_count,
        node_rank=options["node_rank"],
        per_node=per_node,
        all_visible=options["per_node"] in _ALL_VISIBLE,
        run_dir=options["run_dir"],
        wait=options["wait"],
        bind=options["bind"],
        export=tuple(options["export"]),
        export_defaults=not options["no_export"],
        typed_options=click.get_current_context().meta[TYPED_OPTIONS],
    )


def _remarks(program: tuple[str, ...], context: click.Context) -> tuple[str, ...]:
    """Return a note where the program gets what may be meant for ``launch``, none after ``--``."""
    if context.meta[TYPED_OPTIONS][-1:] == ("--",):
        return ()
    shown = (option for option in command.params if not getattr(option, "hidden", False))
    own = {name for option in shown for name in option.opts if name.startswith("--")}
    found = [text for text in program[1:] if text.partition("=")[0].replace("_", "-") in own]
    if not found:
        return ()
    verb = "goes" if len(found) == 1 else "go"
    listed = ", ".join(found[:4]) + (" ..." if len(found) > 4 else "")
    where = f"{listed} {verb} to {program[0]}, not to launch, whose options stand before the program"
    return (f"{where} (`--` before the program turns this note off)",)


def _program(options: dict[str, Any]) -> tuple[ProgramKind, tuple[str, ...], str | None]:
    program = tuple(options["program"])
    if not program:
        raise UsageError("what is to be started?", hint="hccl-tools launch --rank-table FILE train.py")
    return typed_python.split(_kind(options), program, options["python"])


def _log_mode(text: str | None) -> int:
    if text is None:
        return 0o700
    from hccl_tools.launch.planning.log_paths import parse_mode  # noqa: PLC0415  (few ask for it)

    return parse_mode(text)


def _kind(options: dict[str, Any]) -> ProgramKind:
    if options["module"] and options["no_python"]:
        raise UsageError("-m and --no-python exclude each other", hint="leave one out")
    return "module" if options["module"] else "program" if options["no_python"] else "script"


def _engine(options: dict[str, Any]) -> str:
    return "mpirun" if options["mpirun"] else str(options["engine"])


def _start(options: dict[str, Any]) -> Start | None:
    if options["start"] == "mpi" and not engines.get(_engine(options)).starts_mpi_ranks:
        raise UsageError(
            f"--start mpi needs an engine that starts MPI ranks, and --engine {options['engine']} does not",
            hint="add --engine mpirun, or leave --start out",
        )
    return None if options["start"] == "auto" else cast("Start", options["start"])


def _per_node(text: str | None, *, cpu: bool) -> int | None:
    """Read ``--nproc-per-node``: a number, or one of torchrun's words for "as many as there are"."""
    if text is None or text in _ALL_VISIBLE:
        return None
    if text == "cpu" and cpu:
        return len(os.sched_getaffinity(0))
    if not text.isdecimal() or int(text) == 0:
        hint = "add --cpu" if text == "cpu" else "a number from 1, or auto"
        raise UsageError(f'--nproc-per-node "{text}" is not a number of ranks', hint=hint)
    return int(text)


def _nodes(text: str | None) -> int | None:
    """Read ``--nnodes``: a number, or torchrun's MIN:MAX where both are the same."""
    least, colon, most = (text or "").partition(":")
    if text is None or (least.isdecimal() and int(least) and (not colon or least == most)):
        return int(least) if text else None
    raise UsageError(
        f'--nnodes "{text}" is not a whole number, 1 or more',
        hint="the number of machines is fixed; --max-restarts N starts all ranks again after a failure"
        if colon
        else "for example --nnodes 2",
    )


def _ips(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _size(
    count: int | None, per_node: int | None, node_count: int | None, named: int
) -> tuple[int | None, int | None]:
    """Return the ranks in all and the machines, as far as they were said in any way; ``named``: by --ips.

    Two of the three numbers make the third: torchrun's users give the machines and the ranks on each, msrun's
    all ranks and those on each machine.
    """
    if per_node is None:
        return count, node_count
    machines = node_count or named or None
    if count is None:
        return (per_node * machines if machines else None), node_count
    if count % per_node:
        raise UsageError(
            f"{count} ranks do not make up machines of {per_node}", hint="leave one of the two out"
        )
    if machines not in (None, count // per_node):
        raise UsageError(
            f"{count} ranks are not {machines} machines of {per_node}", hint="leave one of the three out"
        )
    return count, count // per_node


def _master(options: dict[str, Any]) -> tuple[str | None, int | None]:
    """Return the address and port that were named, also as paddle's ``--master ip:port``."""
    address, port = options["master_address"], options["start_port"]
    if options["master"]:
        host, _, number = options["master"].rpartition(":")
        if not host or "/" in host or not number.isdecimal():
            raise UsageError(
                f'--master "{options["master"]}" is not ADDRESS:PORT', hint="--master 10.0.0.1:18118"
            )
        address, port = address or host, port or int(number)
    return address, port


def _tail(text: str) -> Tail:
    """Read ``--tail``: ``all``, ``none`` or ranks such as ``0,3``."""
    if text == "all":
        return "all"
    if text in {"none", ""}:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f'--tail "{text}" is not a list of ranks', hint="such as --tail 0,3, or --tail all")
    return tuple(int(part) for part in parts)


def _environment(assignments: tuple[str, ...], files: tuple[str, ...]) -> dict[str, str]:
    if not assignments and not files:
        return {}
    from hccl_tools.notation.assignments import parse_assignments, read_environment_file  # noqa: PLC0415

    found: dict[str, str] = {}
    for path in files:
        found.update(read_environment_file(path))
    found.update(parse_assignments(assignments, where="--env"))
    return found


def _foreign(name: str) -> Foreign | None:
    from hccl_tools.cli import other_launchers  # noqa: PLC0415  (only for an option that launch does not have)

    return other_launchers.OPTIONS.get(name)


command = GroupedCommand(
    "launch", cast("dict[str, Any]", GROUPS), BARE, SPELLINGS, _foreign,
    callback=_launch, help=HELP, epilog=EPILOG,
)  # fmt: skip
