"""``launch --spares``: the hosts that can take the places of lost hosts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hccl_tools.cli import launch_request
from hccl_tools.cli.option_groups import typed_without
from hccl_tools.errors import HcclToolsError, LaunchError, UsageError
from hccl_tools.gathering import consistency, default_engine
from hccl_tools.gathering.coordinator import survey_hosts
from hccl_tools.gathering.failures import GatheringError
from hccl_tools.gathering.options import GatherOptions
from hccl_tools.host.selection import Wanted
from hccl_tools.host.survey import SurveyRequest
from hccl_tools.launch import engines
from hccl_tools.launch.model.request import SpareHost
from hccl_tools.launch.planning import table_source, visible_devices
from hccl_tools.launch.render import scripts
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import count
from hccl_tools.transform import generation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.host.facts import HostFacts
    from hccl_tools.launch.engines.engine import Engine
    from hccl_tools.launch.model.request import JobTable, LaunchRequest
    from hccl_tools.table.model import RankTable


#: The target of ``--emit`` that supports spares: a scheduler starts its script, which can run ``launch``.
EMIT_TARGET = "slurm"


def with_spares(
    request: LaunchRequest, options: dict[str, Any], environ: Mapping[str, str] = os.environ
) -> LaunchRequest:
    """Return the request with its spare hosts; a request whose table was made at launch has them already.

    Raises:
        UsageError: Another option excludes spares.
        LaunchError: No spare can be used, or the engine ends a job that loses a host.
    """
    engine = engines.get(request.start.engine)
    _check(request, engine, has_gate=launch_request.has_gate(options))
    left_out: tuple[str, ...] = ()
    if request.table.made is None:
        spares, left_out = _beside_table(request, options, engine, environ)
        request = request._replace(spares=spares)
    engine.check_spares(environ)
    return request._replace(remarks=(*request.remarks, *left_out, _note(request.spares)))


def batch_script(request: LaunchRequest, options: dict[str, Any]) -> str:
    """Return the batch script of ``--emit slurm --spares N``, which runs ``launch`` in its allocation.

    Raises:
        UsageError: An option excludes spares, or the number of nodes is not known.
        LaunchError: HCCL would refuse the table.
    """
    _check(request, engines.get(EMIT_TARGET), has_gate=launch_request.has_gate(options))
    if options["spare_hosts"]:
        raise UsageError(
            "--emit slurm does not support --spare-hosts: the spares are nodes of the allocation",
            hint="use --spares N",
        )
    table = table_of(request, os.environ)
    if table is not None:
        servers = len(table.table.servers)
    elif request.hosts.node_count is not None:
        servers = request.hosts.node_count
    else:
        raise UsageError(
            "--emit slurm --spares needs the number of nodes of the job",
            hint="add --rank-table FILE or --nnodes N",
        )
    own = typed_without(request.typed_options, "--emit", "--engine", "--nnodes")
    command = ["hccl-tools", "launch", "--engine", "slurm", *own, *options["program"]]
    return scripts.batch_script(servers, options["spares"], command, has_table=table is not None)


def _note(spares: Sequence[SpareHost]) -> str:
    if not spares:
        return "no spare host is left: the hosts that did not answer have taken them"
    return f"{count(len(spares), 'spare host')}: {', '.join(spare.label for spare in spares)}"


def of_facts(names: Sequence[str], hosts: Sequence[HostFacts]) -> tuple[SpareHost, ...]:
    """Return spares from what was found on their hosts, and from the names under which they were asked."""
    tables = [generation.table([facts], table_format=facts.table_format) for facts in hosts]
    return tuple(
        SpareHost(table.servers[0].address, table, name) for name, table in zip(names, tables, strict=True)
    )


def _check(request: LaunchRequest, engine: Engine, *, has_gate: bool) -> None:
    watch = request.watch
    if not engine.starts_all_hosts:
        raise UsageError(
            "a job whose hosts are started by hand has no spares",
            hint="start it once for all hosts: add --engine ssh, mpirun or slurm",
        )
    if request.start.method == "mpi":
        raise UsageError(
            "--start mpi starts ranks on this host only, which has no spares", hint="leave it out"
        )
    if has_gate and not watch.max_restarts:
        return  # The spares are for hosts that fail the checks before the start.
    if not watch.max_restarts:
        raise UsageError(
            "spares need --max-restarts: a spare takes its place when the job restarts",
            hint="add --max-restarts N, the number of restarts that the job may have; or --preflight full "
            "for spares of hosts that fail the checks before the start",
        )
    if "host-lost" not in watch.restart_on:
        raise UsageError("spares need --restart-on host-lost", hint="add host-lost to --restart-on")


def _beside_table(
    request: LaunchRequest, options: dict[str, Any], engine: Engine, environ: Mapping[str, str]
) -> tuple[tuple[SpareHost, ...], tuple[str, ...]]:
    """Return the spares of a job whose table is a file, and a remark on each host that is left out."""
    if request.table.file == "-":
        raise UsageError("spares need a table that can be read twice", hint="write the table to a file")
    loaded = table_of(request, environ)
    if loaded is None:
        raise UsageError(
            "spares need a rank table of several hosts",
            hint="add --rank-table FILE and --spare-hosts LIST, or name all hosts with --hosts",
        )
    own = list(dict.fromkeys(server.address for server in loaded.table.servers))
    wanted = options["spares"]
    hosts = host_list.parse(options["spare_hosts"], option="--spare-hosts") if options["spare_hosts"] else ()
    if not hosts and engine.uses_allocation:
        hosts = engine.other_hosts(own, environ)
    if len(hosts) < max(wanted, 1):
        raise UsageError(
            f"--spares {max(wanted, 1)}: the number of known hosts besides the table's is {len(hosts)}",
            hint="name them: --spare-hosts LIST",
        )
    if twice := next((host for host in hosts if host in own), None):
        raise UsageError(f"--spare-hosts: {twice} is a server of {loaded.path}", hint="name other hosts")
    hosts = hosts[: wanted or None]
    if request.start.cpu:
        return tuple(SpareHost(host) for host in hosts), ()
    return _queried(hosts, loaded.table, request, engine, environ)


def table_of(request: LaunchRequest, environ: Mapping[str, str]) -> JobTable | None:
    """Return the table of a job, read and checked; ``None`` if none was specified."""
    ignore_visible = request.devices.ignore_visible
    around = visible_devices.surroundings(environ, None, cpu=request.start.cpu, ignore_visible=ignore_visible)
    return table_source.find(request, around, "")


def _queried(
    hosts: Sequence[str],
    table: RankTable,
    request: LaunchRequest,
    engine: Engine,
    environ: Mapping[str, str],
) -> tuple[tuple[SpareHost, ...], tuple[str, ...]]:
    """Return the spares with the devices that the first server of the table has, and who is left out."""
    ids = sorted(number for row in table.servers[0].rows if (number := table.device_numbers[row]) is not None)
    # The ranks read a group_list as the 1.0 table that HCCL derives from it.
    wanted_format = "1.0" if table.format == "group_list" else table.format
    survey = SurveyRequest(
        Wanted(",".join(map(str, ids))), product=request.table.product, table_format=wanted_format
    )
    how = GatherOptions(default_engine.of_job(engine, environ), allow_missing=True, environ=environ)
    try:
        found = survey_hosts(hosts, survey, how)
        consistency.refuse_twice(found.answers)
    except UsageError:
        raise
    except HcclToolsError as error:
        problem = error.problem if isinstance(error, GatheringError) else error.head
        raise LaunchError(
            f"no spare can be used: {problem}",
            lines=error.lines,
            hint=None if "--allow-missing" in str(error.hint) else error.hint,
        ) from error
    left_out = tuple(f"spare {one.host} is left out: {one.reason}" for one in found.left_out)
    facts = {one.host: one.facts for one in found.answers if one.facts is not None}
    return of_facts([*facts], [*facts.values()]), left_out
