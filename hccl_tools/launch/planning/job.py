"""The ranks of a job and their places: from its table, from devices alone, or from a table made now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import HcclToolsError, LaunchError, UsageError
from hccl_tools.launch import engines
from hccl_tools.launch.model.plan import NOT_A_MEMBER
from hccl_tools.launch.planning.placement import (
    AmbiguousHostError,
    NotAMemberError,
    place_ranks,
    place_ranks_without_table,
    rendezvous_address,
    this_server,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import JobTable, LaunchRequest
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import Surroundings, VisibleDevices

LOOPBACK = "127.0.0.1"
_NO_NPU = "no NPU on this host: ranks get device numbers all the same; --cpu rehearses on the CPU"
_MORE_THAN_DEVICES = "more ranks than devices, and no table: DEVICE_ID only counts, no device is looked at"


class Job(NamedTuple):
    """The ranks of a job and where each runs."""

    #: By rank.
    placements: list[RankPlacement]
    #: The index of this host's server; ``None`` where all ranks run here or an engine starts them.
    local_server: int | None
    server_count: int
    #: The address where the ranks meet: that of rank 0's host.
    master: str
    table: JobTable | None = None
    #: Whether the device ids are only numbers: there is no table, and there are fewer devices than ranks.
    devices_are_placeholders: bool = False

    @property
    def local(self) -> list[RankPlacement]:
        """The placements of this host."""
        return [
            placement for placement in self.placements if self.local_server in (None, placement.server_index)
        ]


def of_request(request: LaunchRequest, around: Surroundings, notes: list[str], *, made_at: str) -> Job:
    """Return the job that was asked for; sentences for the user are added to ``notes``.

    ``made_at`` is where a table will lie that its hosts have just told.

    Raises:
        UsageError: What was asked for cannot be meant.
        LaunchError: The table or the devices stand against it.
    """
    loaded, why = table_of(request, around, made_at)
    if loaded is not None:
        notes += (*((why,) if why else ()), *loaded.notes)
        return of_table(loaded, why, request, around, notes)
    if not (around.nodes or request.cpu or request.no_table):
        notes.append(_NO_NPU)
    job = _without_table(request, around)
    notes += [_MORE_THAN_DEVICES] if job.devices_are_placeholders else []
    return job


def of_table(
    loaded: JobTable, why: str | None, request: LaunchRequest, around: Surroundings, notes: list[str]
) -> Job:
    """Return the job of a table; ``why`` says why that one where it was not typed.

    Raises:
        UsageError: An option contradicts the table.
        LaunchError: This host or its devices contradict it.
    """
    placements = place_ranks(loaded.table)
    servers = len(loaded.table.servers)
    _check_typed(request, loaded, placements, why)
    if request.all_here:
        _check_all_here(request, len(placements))
        job = Job(placements, None, 1, LOOPBACK, loaded)
    elif engines.get(request.engine).starts_all_hosts:
        # Each host finds itself, and is looked at, by its own supervisor.
        master = request.master_address or rendezvous_address(loaded.table, placements)
        job = Job(placements, None, servers, master, loaded)
    else:
        here = _here(request, around, loaded, placements, notes)
        master = request.master_address or rendezvous_address(loaded.table, placements)
        job = Job(placements, here if servers > 1 or here == NOT_A_MEMBER else None, servers, master, loaded)
    if request.devices is not None and _is_whole(request):
        from hccl_tools.launch.planning import option_conflicts  # noqa: PLC0415  (rarely typed beside a table)

        option_conflicts.check_devices(
            request, job.local, around.visible, option_conflicts.TableOrigin(loaded.path, why)
        )
    if not (engines.get(request.engine).starts_all_hosts or request.all_here):
        _check_visible(request, job, around.visible)
    return job


def table_of(
    request: LaunchRequest, around: Surroundings, made_at: str
) -> tuple[JobTable | None, str | None]:
    """Return the table of a job, judged, and why that one where it was not typed; none if none was named."""
    if request.made_table is not None:
        return request.made_table._replace(path=made_at), None
    from hccl_tools.launch.planning import table_source  # noqa: PLC0415  (a table made just now is read already)

    found = table_source.locate(request, around.environ)
    if found is None:
        return None, None
    path, why = found
    own = _own_product(request, around)
    try:
        loaded = table_source.load(path, request._replace(product=own[0]) if own else request, around.environ)
    except HcclToolsError as error:
        error.hint = "; ".join(filter(None, (error.hint, why)))
        raise
    if own:
        loaded = loaded._replace(product=f"{own[0]}: this host's own, from {own[1]}")
    return loaded, why


def _is_whole(request: LaunchRequest) -> bool:
    """Tell whether this is the launcher of the whole job: what was typed has not been looked at before."""
    return request.run_dir is None and request.made_table is None


def _check_typed(
    request: LaunchRequest, loaded: JobTable, placements: Sequence[RankPlacement], why: str | None
) -> None:
    """Refuse numbers, addresses and names that contradict the table."""
    typed = (request.ranks, request.node_count, request.per_node, request.node_rank, request.server)
    if request.run_dir is not None or not (request.ips or any(one is not None for one in typed)):
        return
    from hccl_tools.launch.planning import option_conflicts  # noqa: PLC0415  (rarely typed beside a table)

    option_conflicts.check_machines(
        request, loaded.table, placements, option_conflicts.TableOrigin(loaded.path, why)
    )


def _own_product(request: LaunchRequest, around: Surroundings) -> tuple[str, str] | None:
    """Return this host's product and its source where it decides: NPUs are here and nobody says another."""
    if request.product is not None or not around.nodes or request.cpu:
        return None
    from hccl_tools.launch.planning import local_npus  # noqa: PLC0415  (only with NPUs)

    return local_npus.product(around.environ)


def _here(
    request: LaunchRequest,
    around: Surroundings,
    loaded: JobTable,
    placements: Sequence[RankPlacement],
    notes: list[str],
) -> int:
    """Find this host in the table; a plan that is only shown may be that of other hosts."""
    try:
        here = _this_server(request, around, loaded)
    except AmbiguousHostError as error:
        if request.node_rank is not None:
            from hccl_tools.launch.planning import option_conflicts  # noqa: PLC0415  (rarely typed beside a table)

            named = option_conflicts.server_of_node_rank(loaded.table, placements, request.node_rank)
            notes.append(f'--node-rank {request.node_rank}: this host is taken for server "{named}"')
            return _this_server(request._replace(server=named), around, loaded)
        if not request.only_shown or not isinstance(error, NotAMemberError):
            raise
        notes.append(f"{error.message}: a launch here would be refused, this is the plan for those")
        return NOT_A_MEMBER
    if request.node_rank is not None:
        from hccl_tools.launch.planning import option_conflicts  # noqa: PLC0415  (rarely typed beside a table)

        option_conflicts.check_node_rank(request, loaded.table, placements, here)
    return here


def _this_server(request: LaunchRequest, around: Surroundings, loaded: JobTable) -> int:
    """Find this host in the table; where NPUs exist, their addresses help and must agree with it."""
    table = loaded.table
    if not around.nodes or request.cpu or not request.local_check:
        return this_server(table, wanted=request.server, environ=around.environ)
    from hccl_tools.launch.planning import local_npus  # noqa: PLC0415  (only with NPUs)

    real = local_npus.read_addresses(around.nodes, around.environ)
    here = this_server(table, wanted=request.server, environ=around.environ, device_addresses=real.first)
    local_npus.check_addresses(table, here, real)
    return here


def _without_table(request: LaunchRequest, around: Surroundings) -> Job:
    from hccl_tools.launch.planning import without_table  # noqa: PLC0415

    hosts = without_table.hosts(request)
    if len(hosts) > 1 and engines.get(request.engine).starts_all_hosts:
        raise UsageError(
            f"--engine {request.engine} brings ranks to other machines by a rank table or --hostfile",
            hint="add one of them, or leave --engine out and type the command on each machine",
        )
    here = without_table.this_host(hosts, request)
    devices = without_table.devices(request, around.visible, len(hosts))
    placements = place_ranks_without_table(devices, hosts)
    if len(hosts) > 1 and request.start == "table":
        raise UsageError(
            "--start table needs a rank table for several machines", hint="add --rank-table FILE"
        )
    master = without_table.master(hosts, request)
    placeholders = request.no_table and bool(around.visible.outside(devices))
    return Job(
        placements,
        here if len(hosts) > 1 else None,
        len(hosts),
        master,
        devices_are_placeholders=placeholders,
    )


def with_own_table(job: Job, request: LaunchRequest, around: Surroundings, path: str, start: Start) -> Job:
    """Give a job on NPUs of this host that has no table the table that its start wants.

    Raises:
        DiscoveryError: The devices' addresses cannot be found out.
        LaunchError: HCCL or the product's guide would refuse the table.
    """
    wanted = start in {"table", "cluster"} or (start == "torch" and request.pass_table)
    if job.table is not None or not wanted or request.no_table or request.cpu or job.server_count > 1:
        return job
    if not around.nodes:
        return job
    from hccl_tools.launch.planning import local_npus  # noqa: PLC0415  (only with NPUs)

    devices = [placement.device for placement in job.placements]
    return job._replace(table=local_npus.make_table(devices, request, around.environ, path))


def _check_all_here(request: LaunchRequest, count: int) -> None:
    if not request.cpu:
        raise UsageError("--all-here is a rehearsal and needs --cpu", hint="add --cpu")
    if count > request.max_ranks:
        raise LaunchError(
            f"the table has {count} ranks, more than --max-ranks {request.max_ranks} allows on one machine",
            hint=f"add --max-ranks {count} if this machine can bear them",
        )


def _check_visible(request: LaunchRequest, job: Job, visible: VisibleDevices) -> None:
    if request.cpu or request.ignore_visible:
        return
    outside = visible.outside([placement.device for placement in job.local])
    if not outside:
        return
    listed = ", ".join(map(str, outside))
    raise LaunchError(
        f"the table uses device{'s' if len(outside) > 1 else ''} {listed}, outside the visible "
        f"{', '.join(map(str, visible.chosen or ()))} ({visible.source})",
        hint="make a table of the visible devices, or say --ignore-visible if the variable is wrong",
    )
