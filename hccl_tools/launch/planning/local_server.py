"""Determine which server of the table is this host."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.host.facts import DeviceState, HostState
from hccl_tools.host.local_addresses import interface_addresses, is_local
from hccl_tools.host.recognition import recognise
from hccl_tools.host.site_defaults import ADDRESS_VARIABLES
from hccl_tools.launch.model.plan import NOT_A_MEMBER
from hccl_tools.notation.phrases import and_more
from hccl_tools.programs.environment import in_pod
from hccl_tools.table.addresses import is_loopback, is_simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.model.request import Hosts
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import Surroundings
    from hccl_tools.table.model import RankTable


class AmbiguousHostError(LaunchError):
    """More than one of the table's servers matches this host."""


class EarlierTableError(LaunchError):
    """The table is not for this host and its devices; in a pod it may be from before the pod was started.

    Attributes:
        lacks: What another table has to have.
    """

    lacks = "this host"


class NotAMemberError(EarlierTableError):
    """None of the table's servers is this host."""


class OtherDevicesError(EarlierTableError):
    """The table has devices of this host that this process cannot see."""

    lacks = "the devices of this host"


def find(
    table: RankTable,
    placements: Sequence[RankPlacement],
    hosts: Hosts,
    around: Surroundings,
    *,
    local_check: bool,
    notes: list[str],
) -> int:
    """Return the index of this host's server, or ``NOT_A_MEMBER`` if none matches and the plan is only shown.

    ``--node-rank`` applies only if nothing else identifies the server. With ``local_check`` the addresses of
    this host's NPUs are compared with the table.

    Raises:
        LaunchError: No server matches, or more than one does, or the devices have other addresses.
        UsageError: ``--node-rank`` selects a server other than this host's.
    """
    if hosts.include_this_host and hosts.server is None and hosts.node_rank is None:
        _refuse_simulated(table)
    addresses = around.addresses if local_check else None
    is_later = addresses is None or hosts.server is not None or _is_by_name(table, around.environ)
    real = None if is_later or addresses is None else addresses.of(table).first
    try:
        here = this_server(table, wanted=hosts.server, environ=around.environ, device_addresses=real)
    except (AmbiguousHostError, NotAMemberError) as error:
        if hosts.node_rank is not None:
            here = _server_of_node_rank(placements, hosts.node_rank)
            server_id = table.servers[here].server_id
            notes.append(f'--node-rank {hosts.node_rank}: this host is assumed to be server "{server_id}"')
        elif hosts.include_this_host or not isinstance(error, NotAMemberError):
            raise
        else:
            notes.append(
                f"{error.message}: a launch on this host would be refused; the plan is for the table's hosts"
            )
            return NOT_A_MEMBER
    else:
        if hosts.node_rank is not None:
            _check_node_rank(table, placements, hosts, here)
    if addresses is not None:
        addresses.check_later(table, here)
    return here


def _is_by_name(table: RankTable, environ: Mapping[str, str]) -> bool:
    """Return whether this host is the only server of a table by its name: its devices need not decide."""
    if len(table.servers) > 1 or is_loopback(table.servers[0].address):
        return False
    with suppress(NotAMemberError):
        return this_server(table, environ=environ) == 0
    return False


def _refuse_simulated(table: RankTable) -> None:
    """Refuse hosts that only exist in a simulation: this host would wait for the others."""
    names = [server.server_id for server in table.servers]
    if len(names) > 1 and all(map(is_simulated, names)):
        raise LaunchError(
            f"the {len(names)} hosts of the table are simulated ({and_more(names)}): they cannot join",
            hint="`--cpu --all-here` runs the ranks of all of them on this machine",
        )


def _server_of_node_rank(placements: Sequence[RankPlacement], node_rank: int) -> int:
    """Return the index of a server; node rank 0 is the server of rank 0, as for torchrun and msrun."""
    along_the_ranks = list(dict.fromkeys(placement.server_index for placement in placements))
    return along_the_ranks[node_rank]


def _check_node_rank(table: RankTable, placements: Sequence[RankPlacement], hosts: Hosts, here: int) -> None:
    found = table.servers[here].server_id
    named = table.servers[_server_of_node_rank(placements, hosts.node_rank or 0)].server_id
    if named != found:
        known = "--server selects" if hosts.server is not None else "this host is"
        ranks = [str(placement.rank) for placement in placements if placement.server_index == here]
        listed = ", ".join(ranks if len(ranks) <= 8 else [*ranks[:3], "...", ranks[-1]])
        raise UsageError(
            f'--node-rank {hosts.node_rank} selects server "{named}" of the table, but {known} "{found}"',
            hint=f'leave --node-rank out: "{found}" starts its own ranks, {listed}',
        )


def this_server(
    table: RankTable,
    *,
    wanted: str | None = None,
    environ: Mapping[str, str],
    device_addresses: Mapping[int, str] | None = None,
    local: Callable[[str], bool] = is_local,
) -> int:
    """Return the index of this host's server, identified by names, addresses and devices.

    Raises:
        LaunchError: No server matches, or more than one does.
    """
    if wanted is not None:
        return _named(table, wanted)
    # Inside a Slurm step the host has a node name, which can differ from its own hostname.
    own_name = environ.get("SLURMD_NODENAME") or os.uname().nodename
    names = {own_name, own_name.split(".")[0]}
    devices = {device: DeviceState((ip,)) for device, ip in (device_addresses or {}).items()}
    own = frozenset(environ[name] for name in ADDRESS_VARIABLES if environ.get(name))
    known = frozenset({*names, environ.get("POD_NAME") or own_name})
    found = recognise(table, HostState((), devices, known, local, own), loopback=False)
    if len(found.servers) == 1:
        return found.servers[0]
    if found.servers:
        raise _ambiguous(table, list(found.servers), found.way)
    return _by_loopback(table, device_addresses, sorted(names))


def _by_loopback(table: RankTable, device_addresses: Mapping[int, str] | None, names: list[str]) -> int:
    only = table.servers[0]
    if len(table.servers) == 1 and is_loopback(only.address):
        if not device_addresses or all(ip is None for ip in table.device_ips):
            return 0
        raise LaunchError(
            f"the table's only server is \"{only.server_id}\", but this host's devices have other addresses",
            hint="make the table of this host with `hccl-tools gen`, or use `--server "
            f"{shlex.quote(only.server_id)}` if the table is right",
        )
    shown = and_more([f'"{server.server_id}"' for server in table.servers])
    found = interface_addresses()
    own = f" ({', '.join(found)})" if found else ""
    raise NotAMemberError(
        f"none of the table's servers is this host ({shown})",
        hint=f"this host is {', '.join(names)}{own}; {_way_on(only.server_id)}",
    )


def _way_on(server: str) -> str:
    if in_pod():
        return "the table may be from before this pod was moved: `--wait SECONDS` waits for the next one"
    return (
        f"select its server with `--server {shlex.quote(server)}`, or rehearse the whole job here with "
        "`--cpu --all-here`"
    )


def _named(table: RankTable, wanted: str) -> int:
    found = [
        index for index, server in enumerate(table.servers) if wanted in (server.server_id, server.host_ip)
    ]
    if found:
        return found[0]
    known = ", ".join(server.server_id for server in table.servers[:8])
    raise LaunchError(f'the table has no server "{wanted}"', hint=f"its servers: {known}")


def _ambiguous(table: RankTable, found: list[int], what: str) -> AmbiguousHostError:
    shown = " and ".join(f'"{table.servers[index].server_id}"' for index in found[:4])
    return AmbiguousHostError(
        f"servers {shown} match this host by {what}",
        hint=f"select one with `--server {shlex.quote(table.servers[found[0]].server_id)}`",
    )
