"""``launch --preflight full`` and ``--preflight-command``: the health of all hosts before the start."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hccl_tools.cli import asked_hosts, doctor_run, launch_request, launch_spares
from hccl_tools.doctor import ping_results, registry, run_checks
from hccl_tools.doctor.cross_host_checks import Silent
from hccl_tools.doctor.report import as_text
from hccl_tools.errors import LaunchError, TableError, UsageError
from hccl_tools.files import outputs, remainder
from hccl_tools.gathering import default_engine
from hccl_tools.host.observation import ObservationRequest
from hccl_tools.host.observing import observe
from hccl_tools.host.site_defaults import Site
from hccl_tools.launch import engines, launcher
from hccl_tools.launch.cluster import consistency, table_watch
from hccl_tools.launch.planning import moved_pod, table_source
from hccl_tools.launch.spares import admission
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import tell
from hccl_tools.programs.environment import in_pod
from hccl_tools.programs.slurm import in_allocation
from hccl_tools.records import NamedTuple
from hccl_tools.transform.merging import merge
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.doctor.findings import Examination
    from hccl_tools.host.observation import Observation
    from hccl_tools.launch.engines.engine import Engine
    from hccl_tools.launch.model.request import JobTable, LaunchRequest

_TOOL_TIMEOUT_S = 10.0
#: The time that a host has to start and to send its answer, in addition to that of the command.
_START_S = 5.0
#: The checks on the command, and on who does not answer.
_COMMAND_FAILED = "HCD325"
_OF_COMMAND = (_COMMAND_FAILED, "HCD501")
#: The maximum number of faults that are sent to the other hosts.
_TOLD = 3
#: It judges the table with the spares in it, which is not the table of the job.
_TABLE_HAS_ERRORS = "HCD002"
#: It judges variables that the ranks of a launcher do not inherit.
_RANK_IN_VARIABLE = "HCD320"

#: What to do instead; the user's own command is run with `quick`, too.
_QUICK, _QUICK_HERE = "starts without asking all hosts", "starts with fewer checks"

Seen = tuple["dict[str, Observation]", "list[Silent]"]


class _FaultyError(LaunchError):
    """The checks have found what would stop the job.

    Attributes:
        why: What they have found, for other hosts.
        is_of_paths: Whether it is only about the paths to other hosts.
        table: The table before the checks, in a pod that awaits one.
    """

    why, is_of_paths = "", False
    table: bytes | None = None


class Gate(NamedTuple):
    """What every host is asked before the start.

    Attributes:
        full: Whether all checks of ``doctor`` are asked.
        command: The user's own health check; ``None`` for none.
        seconds: The time limit for all hosts together.
        ignored: The checks of ``doctor`` to ignore.
    """

    full: bool
    command: str | None
    seconds: float
    ignored: Sequence[str] = ()

    @property
    def own(self) -> tuple[str, float]:
        """The user's command, and the seconds for it."""
        return self.command or "", max(1.0, self.seconds - _START_S)


def with_gate(request: LaunchRequest, options: dict[str, Any]) -> LaunchRequest:
    """Return the request for hosts that pass the checks that the options ask for before the start."""
    seconds = options["preflight_timeout"] or launch_request.PREFLIGHT_SECONDS
    is_full, own = options["preflight"] == "full", options["preflight_command"]
    ignored = launch_request.ignored_checks(options)
    gate = Gate(is_full, own, seconds, ignored)
    while True:
        try:
            return admitted(request, gate)
        except LaunchError as error:  # noqa: PERF203  (few attempts)
            if not _has_other_table(request, error):
                _tell_others(request, error)
                raise


def _has_other_table(request: LaunchRequest, error: LaunchError) -> bool:
    """Return whether the table of a pod was replaced during the checks.

    The checks of an earlier table fail, because it names the node that was lost.
    """
    if not (isinstance(error, _FaultyError) and error.is_of_paths and moved_pod.may_change(request)):
        return False
    return table_watch.is_replaced(request, error.table)


def _tell_others(request: LaunchRequest, error: LaunchError) -> None:
    """Tell the hosts of a job that was started by hand on each of them, which would wait for this one."""
    if request.start.preflight:
        why = error.why if isinstance(error, _FaultyError) else error.message
        consistency.refuse(None, request, why)


def admitted(request: LaunchRequest, gate: Gate) -> LaunchRequest:
    """Return the request for hosts that pass the gate; print on standard error what may stop or slow the job.

    All hosts of the table and all spares are asked, with the engine of the job; under ``--engine loop`` this
    host alone. A sound spare takes the ranks of a host that fails.

    Raises:
        LaunchError: Something would stop the job, or the table cannot be read.
        UsageError: The job uses no NPU, its table is read from standard input, or a check does not exist.
    """
    if request.start.cpu and gate.full:
        raise UsageError(
            "--preflight full asks the NPUs of the hosts, but --cpu uses none",
            hint="use --preflight quick, or leave --cpu out",
        )
    engine = engines.get(request.start.engine)
    if request.table.file == "-":
        raise UsageError(
            "the hosts cannot be asked about a table on standard input, which can be read once",
            hint="write the table to a file, and name it with --rank-table",
        )
    data = _wait_for_table(request)
    report = _report(request) if gate.full else None
    loaded = _loaded(request) if engine.starts_all_hosts and (request.spares or not gate.full) else None
    has_spares = loaded is not None and bool(request.spares) and (report is None or report.ok)
    if gate.full:
        merged = _with_spares(report, loaded, request) if has_spares and loaded and report else report
        result = _examined(request, gate, engine, merged, ignored=(_TABLE_HAS_ERRORS,) if has_spares else ())
    else:
        result = _of_command(request, gate, engine, loaded)
    _show(result)
    if not (has_spares and loaded):
        if any(one.consequence == "stops" for one in result.findings):
            raise _refusal(result, gate, engine, data)
        return request
    try:
        return admission.admitted(request, loaded, result.hosts, result.findings)
    except LaunchError as error:
        raise LaunchError(
            f"nothing was started: {error.message}", hint="mend what is listed above"
        ) from error


def _wait_for_table(request: LaunchRequest) -> bytes | None:
    """Wait as the launcher does, which begins after the checks: in a pod, the table is never there at first.

    The table of a pod is returned, because there may be another one after the checks.

    Raises:
        LaunchError: The table was not complete in time; in a pod also: it does not have this host.
    """
    if request.table.wait is not None and in_pod():
        return launcher.prepared_launch(request).table_data
    located = table_source.locate(request.table, os.environ)
    if located is not None:
        try:
            if request.table.wait is not None:
                table_source.wait(located[0], request.table.wait)
        except TableError as error:
            raise LaunchError(error.head, hint=error.hint, lines=error.lines) from error
    return None


def _show(result: Examination) -> None:
    shown = tuple(one for one in result.findings if one.consequence != "note")
    lines = as_text.render(result._replace(findings=shown), width=screen.width(2))
    tell(*"".join(lines).rstrip("\n").split("\n"))


def _refusal(result: Examination, gate: Gate, engine: Engine, table: bytes | None) -> _FaultyError:
    faults = [one for one in result.findings if one.consequence == "stops"]
    hint = "mend what is listed above"
    if gate.full and any(fault.check != _COMMAND_FAILED for fault in faults):
        hint += f"; --preflight quick {_QUICK if engine.starts_all_hosts else _QUICK_HERE}"
    error = _FaultyError(f"nothing was started: {count(len(faults), 'fault')} would stop the job", hint=hint)
    error.why = "; ".join(f"{fault.message} ({fault.check})" for fault in faults[:_TOLD])
    error.is_of_paths = all(fault.check.startswith(ping_results.FAMILY) for fault in faults)
    error.table = table
    return error


def _reached(engine: Engine, gate: Gate) -> dict[str, Any]:
    """Return the options for reaching the hosts, as those of ``doctor``."""
    return {
        **dict.fromkeys(("hosts", "hostfile", "ssh", "via")),
        "engine": default_engine.of_job(engine, os.environ),
        "gather_timeout": gate.seconds,
    }


def _examined(
    request: LaunchRequest, gate: Gate, engine: Engine, report: Report | None, *, ignored: Sequence[str]
) -> Examination:
    selection = registry.selection((), (*gate.ignored, *ignored, _RANK_IN_VARIABLE), ())
    selection = selection._replace(ignore=(*selection.ignore, *request.table.ignore))
    pings = doctor_run.pings(selection, every=False)
    port, product = request.hosts.start_port, request.table.product
    job = run_checks.Job(report, product, None, port, pings=pings, command=gate.own)
    local = not engine.starts_all_hosts
    options = _reached(engine, gate) | {"hosts": _asked_before(request, engine)}
    seen, silent = doctor_run.observed(job, options, tool_timeout=_TOOL_TIMEOUT_S, local=local)
    job = doctor_run.with_product_of(seen, job)
    return run_checks.examine(seen, job, selection, silent)


def _of_command(request: LaunchRequest, gate: Gate, engine: Engine, loaded: JobTable | None) -> Examination:
    """Return what the user's command alone says about the hosts."""
    command, seconds = gate.own
    asked = ObservationRequest(command=command, command_time=seconds, command_only=True)
    if loaded is None:
        seen, silent = {os.uname().nodename: observe(asked, Site())}, list[Silent]()
    else:
        ways = (loaded.reached.get(host, host) for host in default_engine.hosts(loaded.table, os.environ))
        hosts = tuple(ways)
        if not engine.uses_allocation:
            hosts = tuple(dict.fromkeys((*hosts, *(spare.way for spare in request.spares))))
        seen, failures = asked_hosts.observe(hosts, asked, _reached(engine, gate))
        silent = [Silent(one.host, one.reason, one.hint) for one in failures]
    return run_checks.examine(seen, run_checks.Job(cpu=True), registry.selection(_OF_COMMAND, (), ()), silent)


def _asked_before(request: LaunchRequest, engine: Engine) -> str | None:
    """Return the hosts of the job and the spares as they were asked for their addresses; None if none was.

    The addresses are what they have answered: they could be those of other hosts.
    """
    made = request.table.made
    is_other = (made is not None and made.reached) or any(one.way != one.name for one in request.spares)
    if not is_other or not engine.starts_all_hosts or in_allocation(os.environ):
        return None
    loaded = made or _loaded(request)
    servers = [] if loaded is None else [one.address for one in loaded.table.servers]
    ways = [one if loaded is None else loaded.reached.get(one, one) for one in servers]
    return ",".join(dict.fromkeys((*ways, *(one.way for one in request.spares))))


def _loaded(request: LaunchRequest) -> JobTable | None:
    return launch_spares.table_of(request, os.environ)


def _with_spares(report: Report, loaded: JobTable, request: LaunchRequest) -> Report:
    """Return the report on a table of the servers and the spares, which are then compared with each other.

    Raises:
        LaunchError: A spare cannot be in one table with the servers.
    """
    tables = [("the table", loaded.table)]
    tables += [(one.label, one.table) for one in request.spares if one.table is not None]
    try:
        merged = merge(tables).table
    except TableError as error:
        raise LaunchError(f"a spare does not fit the table: {error.head}", lines=error.lines) from error
    made = validate(outputs.table_text(merged).encode(), product=report.product, ignore=request.table.ignore)
    return made._replace(file=report.file)


def _report(request: LaunchRequest) -> Report | None:
    product, ignore = request.table.product, request.table.ignore
    if request.table.made is not None:
        return validate(request.table.made.data, product=product, ignore=ignore)
    located = table_source.locate(request.table, os.environ)
    if located is None:
        return None
    if request.table.exclude:
        left, _ = remainder.of_file(located[0], request.table.exclude, product=product)
        return validate(left, product=product, ignore=ignore)
    return validate(located[0], product=product, ignore=ignore)
