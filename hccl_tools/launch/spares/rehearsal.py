"""The table of a spare host in a rehearsal on the CPU, where no host has NPUs to query."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hccl_tools.errors import TableError
from hccl_tools.transform.subsetting import subset

if TYPE_CHECKING:
    from typing import Any

    from hccl_tools.table.model import RankTable

#: Keys of a server with an address or name of its host.
_NAMES = ("container_ip", "pod_ip", "pod_name", "server_ip")


def table_of(host: str, table: RankTable, index: int) -> RankTable:
    """Return a table of a host that has the devices, with their addresses, of a server in a table.

    Raises:
        TableError: The format has no server ids.
    """
    if table.format == "2.0":
        raise TableError("in a rehearsal a 2.0 table has no spares: it has no server ids")
    old = table.servers[index]
    one = subset(table, servers=[old.server_id])
    server = one.servers[0]
    fields: dict[str, Any] = {key: host if key in _NAMES else value for key, value in server.fields.items()}
    renamed = replace(server, server_id=host, host_ip=host if server.host_ip else None, fields=fields)
    pods = [replace(pod, server_ids=[host]) for pod in one.super_pods] if one.super_pods else None
    return replace(one, servers=[renamed], super_pods=pods)
