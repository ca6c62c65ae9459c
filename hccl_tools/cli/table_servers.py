"""Find the server of a table that a command is about: the one that was named, or this host."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from hccl_tools.errors import TableError
from hccl_tools.host.site import Site
from hccl_tools.notation.phrases import and_more

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable


def named(table: RankTable, wanted: str) -> int:
    """Return the index of the server with a server_id, host_ip or pod name.

    Raises:
        TableError: The table has no such server.
    """
    from hccl_tools.transform.spare import index_of  # noqa: PLC0415  (only for --server)

    for index, server in enumerate(table.servers):
        if wanted in (server.server_id, server.host_ip, server.fields.get("pod_name")):
            return index
    return index_of(table, wanted)


def this_host(table: RankTable) -> tuple[int, str]:
    """Return the index of this host's server, and the criterion that recognised it.

    Raises:
        TableError: No server of the table is this host, or several may be.
    """
    from hccl_tools.host import host_state, recognition  # noqa: PLC0415  (only for --here)

    state = host_state.read_host_state(
        {number for number in table.device_numbers if number is not None}, Site()
    )
    found = recognition.recognise(table, state)
    names = [table.servers[index].server_id for index in found.servers[:4]]
    if len(found.servers) > 1:
        raise TableError(
            f"this host may be {' or '.join(names)}, by {found.way}", hint="choose one with --server ID"
        )
    if not found.servers:
        known = and_more([server.server_id for server in table.servers])
        raise TableError(
            f"none of the table's servers is this host: {known}",
            hint=f"this host is {', '.join(sorted(state.names))}; "
            "neither its addresses, its name nor its devices match a server; for another host: "
            f"--server {quote(table.servers[0].server_id)}",
        )
    return found.servers[0], found.way
