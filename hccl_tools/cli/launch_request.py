"""The request of ``launch``, read from its options."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from hccl_tools.cli.option_groups import TYPED_OPTIONS
from hccl_tools.cli.other_launchers import ELASTIC
from hccl_tools.errors import UsageError
from hccl_tools.host.site_defaults import START_PORT
from hccl_tools.launch import engines
from hccl_tools.launch.model.request import (
    Devices,
    Hosts,
    LaunchRequest,
    Logs,
    Part,
    Program,
    StartChoice,
    TableChoice,
    Variables,
    Watch,
)
from hccl_tools.launch.planning import interpreter, ports, program_check, tables_here
from hccl_tools.launch.planning.log_paths import parse_mode
from hccl_tools.notation import look_alikes
from hccl_tools.notation.assignments import parse_assignments, read_environment_file
from hccl_tools.notation.number_list import MOST_HOSTS
from hccl_tools.notation.phrases import EXAMPLE_PROGRAM
from hccl_tools.notation.whole_number import whole_number

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Start, Tail
from hccl_tools.launch.model.request import ProgramKind

#: Values of torchrun's ``--nproc-per-node`` that request one rank per visible device.
_ALL_VISIBLE = ("auto", "npu", "gpu", "xpu")
#: The time limit for asking all hosts.
PREFLIGHT_SECONDS = 60.0
_Record = TypeVar("_Record", StartChoice, Variables, TableChoice, Hosts, Devices, Watch, Part)


def read(options: dict[str, Any], *, own_python: bool) -> LaunchRequest:
    """Return the request for the options as click passes them.

    Raises:
        UsageError: Options exclude each other, or the program is missing.
    """
    engine = engine_of(options, click.get_current_context())
    hosts, devices = _size(options)
    return LaunchRequest(
        program=_program(options, own_python=own_python),
        table=_table(options),
        hosts=hosts,
        devices=devices,
        start=_filled(
            StartChoice,
            options,
            method=_start(options, engine),
            engine=engine,
            preflight=_has_preflight(options),
            engine_reason=_engine_reason(options),
        ),
        variables=_filled(
            Variables,
            options,
            assigned=_environment(options["env"], options["env_file"]),
            export=tuple(options["export"]),
            export_defaults=not options["no_export"],
        ),
        logs=_logs(options),
        watch=_watch(options),
        part=_filled(Part, options) if options["run_dir"] is not None else None,
        typed_options=_typed_options(options),
    )


def _filled(record: type[_Record], options: dict[str, Any], **derived: Any) -> _Record:
    """Return a record of the request: ``derived``, and else the option that is named as its field is."""
    own = {name: options[name] for name in record._fields if name in options}
    return record(**{**own, **derived})


def _typed_options(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the options for the launchers on other hosts; a port of this site must be that of all hosts."""
    typed: tuple[str, ...] = click.get_current_context().meta[TYPED_OPTIONS]
    if options["start_port"] is not None or not os.environ.get(START_PORT):
        return typed
    return (f"--start-port={ports.chosen_port(None, os.environ)[0] or ports.DEFAULT_PORT}", *typed)


def _table(options: dict[str, Any]) -> TableChoice:
    return _filled(
        TableChoice,
        options,
        file=options["rank_table"],
        ignore=ignored_rules(options),
        local_check=not options["no_local_check"],
        # The launcher of the whole job has left them out of the table that it sends.
        exclude=options["exclude"] if options["run_dir"] is None else (),
    )


def _logs(options: dict[str, Any]) -> Logs:
    return Logs(
        dir=options["log_dir"],
        mode=_log_mode(options["log_mode"]),
        file=options["log_file"],
        flat=options["flat_logs"],
        tail=_tail(options["tail"]),
        stdin_rank=options["stdin"],
    )


def _watch(options: dict[str, Any]) -> Watch:
    if options["progress"] is not None and options["hang_timeout"] is None:
        raise UsageError(
            "--progress says what counts for --hang-timeout, which is missing",
            hint="add --hang-timeout SECONDS",
        )
    if options["faulthandler"] and options["no_faulthandler"]:
        raise UsageError("--faulthandler and --no-faulthandler exclude each other", hint="leave one out")
    if options["flight_recorder"] and options["no_faulthandler"]:
        raise UsageError(
            "--flight-recorder and --no-faulthandler exclude each other",
            hint="leave one out: a thread in the ranks' Python writes the dumps of the recorder",
        )
    by_default = options["hang_timeout"] is not None and not options["no_faulthandler"]
    return _filled(
        Watch,
        options,
        early_exit_warn=options["early_exit_warn"] or None,
        hang_warn=options["hang_warn"] or None,
        faulthandler=options["faulthandler"] or by_default or options["flight_recorder"],
    )


def _program(options: dict[str, Any], *, own_python: bool) -> Program:
    argv = tuple(options["program"])
    if not argv:
        raise UsageError("PROGRAM is missing", hint=f"type `{_with_program()}`")
    kind, argv, python = interpreter.split_typed_python(_kind(options), argv, options["python"])
    call = ("hccl-tools", "launch", *click.get_current_context().meta[TYPED_OPTIONS])
    program_check.refuse(kind, argv, call)
    if kind == "script":
        program_check.refuse_word(argv, call)
        program_check.refuse_data(argv, call)
    return Program(argv, kind, python, own_python)


def _with_program() -> str:
    """Return the call with a program behind the typed options; without options, with a rank table."""
    typed: tuple[str, ...] = click.get_current_context().meta[TYPED_OPTIONS]
    options = typed or ("--rank-table", *(tables_here.sound_first() or ["FILE"])[:1])
    return shlex.join(["hccl-tools", "launch", *options, EXAMPLE_PROGRAM])


def _log_mode(text: str | None) -> int:
    if text is None:
        return 0o700
    return parse_mode(text)


def _kind(options: dict[str, Any]) -> ProgramKind:
    if options["module"] and options["no_python"]:
        raise UsageError("-m and --no-python exclude each other", hint="leave one of them out")
    return "module" if options["module"] else "program" if options["no_python"] else "script"


def engine_of(options: dict[str, Any], context: click.Context) -> str:
    """Return the name of the engine; ``--mpirun`` without ``--engine`` selects mpirun.

    Raises:
        UsageError: ``--engine`` names an engine that does not run mpirun.
    """
    name = str(options["engine"])
    if not options["mpirun"]:
        return name
    if _is_typed("engine", context) and not engines.get(name).starts_mpi_ranks:
        raise UsageError(
            f"--engine {name} and --mpirun {options['mpirun']} exclude each other",
            hint="leave --mpirun out, or use --engine mpirun",
        )
    return "mpirun"


def is_engine_typed(context: click.Context) -> bool:
    """Return whether ``--engine`` or ``--mpirun`` is on the command line."""
    return bool(context.params["mpirun"]) or _is_typed("engine", context)


def _is_typed(name: str, context: click.Context) -> bool:
    return context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


def _engine_reason(options: dict[str, Any]) -> str:
    if _is_typed("engine", click.get_current_context()):
        return "--engine"
    return "--mpirun" if options["mpirun"] else "the default"


def _start(options: dict[str, Any], engine: str) -> Start | None:
    if options["start"] == "mpi" and not engines.get(engine).starts_mpi_ranks:
        raise UsageError(
            f"--start mpi needs an engine that starts MPI ranks, and --engine {options['engine']} does not",
            hint="add --engine mpirun, or leave --start out",
        )
    return None if options["start"] == "auto" else cast("Start", options["start"])


def _per_node(text: str | None, *, cpu: bool) -> int | None:
    if text is None or text in _ALL_VISIBLE:
        return None
    if text == "cpu" and cpu:
        return len(os.sched_getaffinity(0))
    if not (number := whole_number(text)):
        hint = "add --cpu" if text == "cpu" else "use a number from 1, or auto"
        if typed := look_alikes.mistyped(text):
            fits = whole_number(look_alikes.plain(text))
            raise UsageError(f"--nproc-per-node: {typed[0]}", hint=typed[1] if fits else hint)
        raise UsageError(f'--nproc-per-node "{text}" is not a number of ranks', hint=hint)
    return number


def _nodes(text: str | None) -> int | None:
    """Read ``--nnodes``: a number, or torchrun's MIN:MAX with MIN equal to MAX."""
    if text is None:
        return None
    least, colon, most = text.partition(":")
    if (number := whole_number(least)) and (not colon or least == most):
        if number > MOST_HOSTS:
            raise UsageError(f"--nnodes: more than {MOST_HOSTS:,} machines", hint="for example --nnodes 2")
        return number
    raise UsageError(
        f'--nnodes "{text}" is not a whole number, 1 or more',
        hint="use a fixed number; --max-restarts N restarts all ranks after a failure"
        if colon
        else "for example --nnodes 2",
    )


def _ips(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _size(options: dict[str, Any]) -> tuple[Hosts, Devices]:
    per_node, ips = _per_node(options["per_node"], cpu=options["cpu"]), _ips(options["ips"])
    ranks, node_count = _ranks_and_machines(
        options["count"], per_node, _nodes(options["node_count"]), len(ips)
    )
    address, port = _master(options)
    hosts = _filled(Hosts, options, ips=ips, node_count=node_count, master_address=address, start_port=port)
    devices = _filled(
        Devices,
        options,
        ranks=ranks,
        per_node=per_node,
        listed=options["devices"],
        all_visible=options["per_node"] in _ALL_VISIBLE,
    )
    return hosts, devices


def _ranks_and_machines(
    count: int | None, per_node: int | None, node_count: int | None, named: int
) -> tuple[int | None, int | None]:
    """Return the number of ranks and of machines, computed from the other numbers where possible.

    ``named`` is the number of addresses in ``--ips``. torchrun specifies the machines and the ranks
    per machine; msrun specifies the ranks of the job and the ranks per machine.
    """
    if per_node is None:
        return count, node_count
    machines = node_count or named or None
    if count is None:
        return (per_node * machines if machines else None), node_count
    if count % per_node:
        raise UsageError(
            f"{count} ranks cannot be split into {per_node} per machine", hint="leave one of the numbers out"
        )
    if machines not in (None, count // per_node):
        raise UsageError(
            f"{count} ranks are not equal to {machines} machines times {per_node}",
            hint="leave one of the three numbers out",
        )
    return count, count // per_node


def _master(options: dict[str, Any]) -> tuple[str | None, int | None]:
    """Return the rendezvous address and port that were given, including paddle's ``--master ip:port``."""
    address, port = options["master_address"], options["start_port"]
    if options["master"]:
        host, _, text = options["master"].rpartition(":")
        number = whole_number(text)
        if not host or "/" in host or number is None:
            is_service = options["master"].startswith("etcd:")
            raise UsageError(
                f'--master "{options["master"]}" is not ADDRESS:PORT',
                hint=f"a service of an elastic job: {ELASTIC}"
                if is_service
                else "for example --master 10.0.0.1:18118",
            )
        address, port = address or host, port or number
    return address, port


def _tail(text: str) -> Tail:
    if text == "all":
        return "all"
    if text in {"none", ""}:
        return ()
    numbers = [whole_number(part.strip()) for part in text.split(",")]
    ranks = tuple(number for number in numbers if number is not None)
    if len(ranks) < len(numbers):
        raise UsageError(
            f'--tail "{text}" is not a list of ranks', hint="for example --tail 0,3 or --tail all"
        )
    return ranks


def _environment(assignments: tuple[str, ...], files: tuple[str, ...]) -> dict[str, str]:
    if not assignments and not files:
        return {}
    found: dict[str, str] = {}
    for path in files:
        found.update(read_environment_file(path))
    found.update(parse_assignments(assignments, where="--env"))
    return found


def _ignore_selectors(options: dict[str, Any]) -> list[str]:
    return [one.strip() for text in options["ignore"] for one in text.split(",")]


def _is_check(selector: str) -> bool:
    return selector.upper().startswith("HCD")


def ignored_rules(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the selectors of ``--ignore`` that name rules for tables."""
    return tuple(one for one in _ignore_selectors(options) if not _is_check(one))


def ignored_checks(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the selectors of ``--ignore`` that name checks of ``doctor``."""
    return tuple(one for one in _ignore_selectors(options) if _is_check(one))


def has_gate(options: dict[str, Any]) -> bool:
    """Return whether all hosts are asked before the start."""
    return options["preflight"] == "full" or bool(options["preflight_command"])


def _has_preflight(options: dict[str, Any]) -> bool:
    """Return whether there are checks before the start.

    Raises:
        UsageError: Options exclude each other, or ``--ignore`` names a check that is not asked.
    """
    level, own = options["preflight"], options["preflight_command"]
    if own is not None and not own.strip():
        raise UsageError("--preflight-command is empty", hint="name a command, or leave the option out")
    if options["preflight_timeout"] is not None and not has_gate(options):
        raise UsageError(
            "--preflight-timeout is the time for asking all hosts, and none is asked",
            hint="add --preflight full or --preflight-command CMD",
        )
    if level != "full" and (checks := ignored_checks(options)):
        raise UsageError(
            f"{checks[0]} is a check of `doctor`, not a rule for tables",
            hint="add --preflight full, or leave it out",
        )
    if options["no_preflight"] and level not in {None, "none"}:
        raise UsageError(
            f"--no-preflight and --preflight {level} exclude each other", hint="leave one of them out"
        )
    return level != "none" and not options["no_preflight"]
