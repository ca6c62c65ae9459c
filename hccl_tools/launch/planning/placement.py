"""Which rank sits where, and which of a table's servers this host is."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.discover.local_addresses import interface_addresses, is_local
from hccl_tools.discover.site import ADDRESS_VARIABLES
from hccl_tools.errors import LaunchError
from hccl_tools.table.addresses import is_loopback, packed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.table.model import RankTable, Server


class AmbiguousHostError(LaunchError):
    """Which of the table's servers this host is cannot be told."""


class NotAMemberError(AmbiguousHostError):
    """This host is none of them."""


class RankPlacement(NamedTuple):
    """The place of one rank: its server (index in the table), physical device, and place on that server.

    ``local_rank`` counts the server's devices by ascending device id, whatever the order of the ranks.
    """

    rank: int
    host: str
    server_index: int
    device: int
    local_rank: int
    local_size: int


def place_ranks(table: RankTable) -> list[RankPlacement]:
    """Return the placements of a valid table, by rank."""
    ranks, devices = table.rank_numbers, table.device_numbers
    placements: list[RankPlacement] = []
    for index, server in enumerate(table.servers):
        host = address(server)
        by_device = sorted(server.rows, key=lambda row: devices[row] or 0)
        size = len(by_device)
        placements += [
            RankPlacement(ranks[row] or 0, host, index, devices[row] or 0, place, size)
            for place, row in enumerate(by_device)
        ]
    return sorted(placements, key=lambda placement: placement.rank)


def place_ranks_without_table(devices: Sequence[int], hosts: Sequence[str]) -> list[RankPlacement]:
    """Return the placements of a job without a table: on every host the same devices, in the listed order."""
    order = sorted(devices)
    size = len(devices)
    return [
        RankPlacement(index * size + place, host, index, device, order.index(device), size)
        for index, host in enumerate(hosts)
        for place, device in enumerate(devices)
    ]


def address(server: Server) -> str:
    """Return how other machines reach a server: its host_ip, else its server_id."""
    return server.host_ip or server.server_id


def this_server(
    table: RankTable,
    *,
    wanted: str | None = None,
    environ: Mapping[str, str],
    device_addresses: Mapping[int, str] | None = None,
    local: Callable[[str], bool] = is_local,
) -> int:
    """Return the index of the server that this host is.

    Args:
        table: A valid table.
        wanted: The server_id that the user named (``--server``).
        environ: The caller's environment.
        device_addresses: What this host's devices really have as address, where known.
        local: Whether an address is this machine's.

    Raises:
        LaunchError: No server matches, or more than one does; the message shows what was looked for.
    """
    if wanted is not None:
        return _named(table, wanted)
    from hccl_tools.discover.facts import DeviceState, HostState  # noqa: PLC0415  (a job without a table)
    from hccl_tools.discover.recognition import recognise  # noqa: PLC0415

    # Inside a Slurm step the host has a name for the job, whatever the machine calls itself.
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
    if len(table.servers) == 1 and is_loopback(address(only)):
        if not device_addresses or all(ip is None for ip in table.device_ips):
            return 0
        raise LaunchError(
            f"the table's only server is \"{only.server_id}\", but this host's devices have other addresses",
            hint="write the table of this host with `hccl-tools gen`, or say `--server "
            f"{shlex.quote(only.server_id)}` if it is right",
        )
    shown = ", ".join(f'"{server.server_id}"' for server in table.servers[:4])
    more = f" and {len(table.servers) - 4} more" if len(table.servers) > 4 else ""
    raise NotAMemberError(
        f"none of the table's servers is this host ({shown}{more})",
        hint=f"this host is {', '.join(names)}{_own_addresses()}; say which server it is with "
        f"`--server {shlex.quote(only.server_id)}`, or rehearse the whole job here with `--cpu --all-here`",
    )


def _own_addresses() -> str:
    found = interface_addresses()
    return f" ({', '.join(found)})" if found else ""


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
        f"servers {shown} are both this host by {what}",
        hint=f"say which with `--server {shlex.quote(table.servers[found[0]].server_id)}`",
    )


def rendezvous_address(table: RankTable, placements: Sequence[RankPlacement]) -> str:
    """Return the address where the ranks meet: that of rank 0's server, as other machines reach it.

    Raises:
        LaunchError: The job has several servers and rank 0's is only known as loopback, or by a name that
            nobody here can resolve.
    """
    if len(table.servers) == 1:
        return "127.0.0.1"
    host = placements[0].host
    if is_loopback(host):
        raise LaunchError(
            f'rank 0 is on "{host}", which on every other machine means that machine itself',
            hint="give its server a host_ip or a server_id that the other machines can reach",
        )
    if packed(host) is not None:
        return host
    import socket  # noqa: PLC0415

    try:
        found = socket.gethostbyname(host)
    except OSError as error:
        raise LaunchError(
            f'the name of rank 0\'s server, "{host}", cannot be resolved: {error.strerror or error}',
            hint="give it a host_ip in the table, or say `--master-addr ADDRESS`",
        ) from error
    if is_loopback(found):
        # Debian's /etc/hosts gives a machine's own name 127.0.1.1.
        raise LaunchError(
            f'the name of rank 0\'s server, "{host}", means {found} here, which no other machine can reach',
            hint="give it a host_ip in the table, or say `--master-addr ADDRESS`",
        )
    return found
