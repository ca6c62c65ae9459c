"""Build the rank table at launch for ``--hostfile``, ``--hosts`` or a Slurm allocation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import asked_hosts, launch_request, launch_spares
from hccl_tools.errors import HcclToolsError, LaunchError, UsageError
from hccl_tools.files import outputs
from hccl_tools.gathering import consistency, default_engine, failures
from hccl_tools.gathering.coordinator import survey_hosts
from hccl_tools.gathering.options import GatherOptions
from hccl_tools.host.selection import Wanted
from hccl_tools.host.survey import SurveyRequest
from hccl_tools.launch import engines
from hccl_tools.launch.engines.default import for_several_hosts
from hccl_tools.launch.model.request import JobTable
from hccl_tools.launch.planning import table_source
from hccl_tools.notation.phrases import count
from hccl_tools.programs.slurm import allocated_nodes, in_allocation, in_step
from hccl_tools.table.addresses import packed
from hccl_tools.transform import generation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.launch.engines.engine import Engine
    from hccl_tools.launch.model.request import LaunchRequest, SpareHost


def with_table(
    request: LaunchRequest, options: dict[str, Any], environ: Mapping[str, str] = os.environ
) -> LaunchRequest:
    """Return the request with the table of the named hosts, else of the Slurm allocation.

    A request with a table, or for this host alone, is returned unchanged.

    Raises:
        UsageError: Another option excludes ``--hostfile`` or ``--hosts``.
        LaunchError: A host did not answer, or HCCL would refuse the table.
    """
    engine, reason = engines.get(request.start.engine), request.start.engine_reason
    if options["hostfile"] or options["hosts"]:
        hosts = _named(request, options, engine)
    else:
        hosts = _allocated(request, environ)
        if not hosts:
            return request
    hosts = asked_hosts.hosts_left(hosts, request.table.exclude)
    if not engine.starts_all_hosts:
        name, reason = for_several_hosts(environ)
        engine = engines.get(name)
    table, spares = _table(hosts, engine, request, environ, spares=options["spares"])
    servers = len(table.table.servers)
    note = f"made the rank table of {servers} hosts; {engine.name} starts the job ({reason})"
    made = request.table._replace(made=table._replace(notes=(note, *table.notes)))
    start = request.start._replace(engine=engine.name, engine_reason=reason)
    return request._replace(start=start, table=made, spares=spares)


def _named(request: LaunchRequest, options: dict[str, Any], engine: Engine) -> tuple[str, ...]:
    """Return the hosts of ``--hostfile`` or ``--hosts``."""
    option = "--hostfile" if options["hostfile"] else "--hosts"
    if options["hostfile"] and options["hosts"]:
        raise UsageError("--hosts and --hostfile exclude each other", hint="keep one of them")
    if request.table.file is not None or request.table.no_table:
        raise UsageError(
            f"{option} cannot be combined with --rank-table or --no-table", hint="leave one of them out"
        )
    if request.start.cpu:
        raise UsageError(
            f"{option} queries the NPUs of the hosts, but --cpu uses no NPU",
            hint=_simulated(request, options),
        )
    if launch_request.is_engine_typed(click.get_current_context()) and not engine.starts_all_hosts:
        raise UsageError(
            f"--engine {engine.name} starts the ranks of this host only, but {option} names other hosts",
            hint="leave --engine out, or use --engine ssh, mpirun or slurm",
        )
    return asked_hosts.hosts_of(options)


def _simulated(request: LaunchRequest, options: dict[str, Any]) -> str:
    """Return the command that makes a table of as many simulated hosts, which prints how to start it."""
    hosts = asked_hosts.hosts_of(options)
    command = f"hccl-tools gen --simulate {request.table.product or '910a'} --servers {len(hosts)}"
    return f"`{command}` makes a table of simulated hosts and prints the command that rehearses it here"


def _allocated(request: LaunchRequest, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes of the Slurm allocation that the job uses; empty for a job on this host alone."""
    size = (request.devices.ranks, request.devices.per_node, request.hosts.node_count)
    named = (*size, request.devices.listed, request.part, request.table.file)
    if (
        any(one is not None for one in named)
        or request.hosts.ips
        or request.table.no_table
        or request.start.cpu
    ):
        return ()
    engine = engines.get(request.start.engine)
    is_typed = launch_request.is_engine_typed(click.get_current_context())
    if not environ.get("SLURM_JOB_NODELIST") or (is_typed and not engine.starts_all_hosts):
        return ()

    if not in_allocation(environ) or table_source.locate(request.table, environ) is not None:
        return ()
    if in_step(environ):
        _refuse_many_jobs(environ)
        if not engine.uses_allocation:
            return ()
    hosts = allocated_nodes(environ)
    return hosts if len(hosts) > 1 or engine.uses_allocation else ()


def _refuse_many_jobs(environ: Mapping[str, str]) -> None:
    """Refuse to run as one of several processes of a step: each would make a table of only its node."""
    tasks = environ.get("SLURM_STEP_NUM_TASKS", "1")
    if tasks not in {"", "1"}:
        raise UsageError(
            f"srun has started `launch` {tasks} times; without a table, each process would be a separate job",
            hint="leave srun out: `hccl-tools launch` starts the whole job itself; or use the same "
            "--rank-table on all nodes; for one job per node use --engine loop",
        )


def _table(
    hosts: Sequence[str], engine: Engine, request: LaunchRequest, environ: Mapping[str, str], *, spares: int
) -> tuple[JobTable, tuple[SpareHost, ...]]:
    """Return the table of the first hosts, and the last hosts as spares.

    With spares, a host that does not answer is left out.
    """
    needed = len(hosts) - spares
    if needed < 1:
        raise UsageError(
            f"--spares {spares} leaves no host for the job: {count(len(hosts), 'host')} in all",
            hint="name more hosts",
        )
    wanted = Wanted(_first_devices(request, needed) or request.devices.listed)
    how = GatherOptions(default_engine.of_job(engine, environ), allow_missing=spares > 0, environ=environ)
    try:
        found = survey_hosts(hosts, SurveyRequest(wanted, product=request.table.product), how)
        if len(found.answers) < needed:
            raise failures.no_answer(found.left_out, len(hosts))
        answers = asked_hosts.answers_left(found.answers, request.table.exclude)
        facts = consistency.check(answers)
        table = generation.table(facts[:needed], table_format=facts[0].table_format)
        report = outputs.check(table, product=facts[0].product, ignore=request.table.ignore)
        if not report.ok:
            raise outputs.refusal(report)
    except UsageError:
        raise
    except HcclToolsError as error:
        problem = error.head
        if isinstance(error, failures.GatheringError):
            problem = f"no job is started: {error.problem}"
        raise LaunchError(
            problem, hint=None if "--allow-missing" in str(error.hint) else error.hint, lines=error.lines
        ) from error
    data = outputs.table_text(table).encode()
    first, asked = facts[0], [one.host for one in answers if one.facts is not None]
    named = zip((server.address for server in table.servers), asked, strict=False)
    reached = {address: name for address, name in named if address != name}
    warnings = tuple(_warnings(found, reached))
    made = JobTable("", table, data, first.product, first.product_source, warnings, reached=reached)
    return made, launch_spares.of_facts(asked[needed:], facts[needed:])


def _warnings(found: failures.Gathered, reached: Mapping[str, str]) -> Iterator[str]:
    """Yield what a user should know of the answers; ``reached`` has the asked name of each stated address."""
    for one in found.left_out:
        yield f"{one.host} is left out: {'' if one.answered else 'it did not answer: '}{one.reason}"
    for answer in found.answers:
        for text in answer.facts.warnings if answer.facts else ():
            yield f"{answer.host}: {text}"
    for address, name in reached.items():
        if packed(name) is not None:
            yield f"{name} answers that its address is {address}: the table and the messages name it so"


def _first_devices(request: LaunchRequest, hosts: int) -> str | None:
    if request.devices.ranks is not None and request.devices.ranks % hosts:
        raise UsageError(f"{request.devices.ranks} ranks cannot be divided evenly among {hosts} hosts")
    per_host = request.devices.per_node if request.devices.ranks is None else request.devices.ranks // hosts
    if per_host is None:
        return None
    if request.devices.listed is not None:
        raise UsageError(
            "--devices and a number of ranks exclude each other on several hosts", hint="leave one out"
        )
    return f"[0,{per_host})"
