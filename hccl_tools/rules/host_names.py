"""The places of the names of hosts in a table, by its format. This module declares no rules.

A 2.0 table has no entries for servers: the model takes the network instance of the first level of each rank as its
server. A rule on the names of servers must then name that key, which each rank of the host has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.registry import Subject


class HostName(NamedTuple):
    """The key with the name of a host, and the paths at which the table has it."""

    key: str
    paths: tuple[Path, ...]


def host_name(subject: Subject, index: int) -> HostName:
    """Return where a table has the name of a server."""
    if subject.table.format != "2.0":
        return HostName("server_id", (subject.server_path(index, "server_id"),))
    key = "net_instance_id"
    rows = subject.table.servers[index].rows
    return HostName(key, tuple((*subject.device_path(row, "level_list"), 0, key) for row in rows))


def of_name(subject: Subject, index: int, said: str, hint: str) -> Iterator[Finding]:
    """Yield the finding on the name of a server at each of its places; ``said`` follows the key with the name."""
    found = host_name(subject, index)
    name = subject.table.servers[index].server_id
    for path in found.paths:
        yield Finding(f'{found.key} "{name}" {said}', path, hint)
