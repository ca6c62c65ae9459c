"""Rules on the servers of 1.0 and 1.2 tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.table.hccl_values import byte_length, read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

#: SERVERID_MAX_LENGTH, in bytes.
LONGEST_SERVER_ID = 64


@rule(
    "HCC501",
    "server-count",
    "refused",
    code="EI0014",
    formats=SERVER_LIST,
    source="topoinfo_ranktableConcise.cc:235-269",
)
def server_count(subject: Subject) -> Iterator[Finding]:
    """server_count is not the number of servers.

    Example: /server_count = "2"
    Instead: /server_count = "1"
    Hint: write "server_count": "1", or complete server_list
    """
    count, servers = subject.table.declared.get("server_count"), len(subject.table.servers)
    if count is None or count == str(servers):
        return
    number = read_uint(count)
    if number is None:
        yield Finding(
            f'server_count "{count}" is not a number', ("server_count",),
            f'write "server_count": "{servers}"', right=str(servers),
        )  # fmt: skip
    elif number != servers:
        message = f'server_count is "{count}", but server_list has {servers} {"entry" if servers == 1 else "entries"}'
        yield Finding(
            message,
            ("server_count",),
            f'write "server_count": "{servers}", or complete server_list',
            right=str(servers),
        )


@rule(
    "HCC502",
    "server-id-length",
    "refused",
    needs=("server_id",),
    source="topoinfo_ranktableConcise.cc:289-300",
)
def server_id_length(subject: Subject) -> Iterator[Finding]:
    """A server_id is empty or longer than 64 bytes.

    The limit is in bytes, not characters: 22 Chinese characters exceed it.

    Example: /server_list/0/server_id = ""
    Instead: /server_list/0/server_id = "10.0.0.1"
    Hint: give the server its address
    """
    for index, server in enumerate(subject.table.servers):
        size = byte_length(server.server_id)
        if not server.server_id:
            yield Finding(
                "server_id is empty", subject.server_path(index, "server_id"), "give the server its address"
            )
        elif size > LONGEST_SERVER_ID:
            message = f"server_id has {size} bytes; HCCL accepts at most {LONGEST_SERVER_ID}"
            yield Finding(
                message,
                subject.server_path(index, "server_id"),
                "give the server a shorter id, such as its address",
            )


@rule(
    "HCC503",
    "duplicate-server-id",
    "refused",
    code="EI0014",
    formats=SERVER_LIST,
    needs=("server_id",),
    source="topoinfo_ranktableConcise.cc:306",
)
def duplicate_server_id(subject: Subject) -> Iterator[Finding]:
    """Two servers have the same server_id.

    HCCL's message reports a repeated "IP", whatever the server_id is. The usual cause is a table that was
    merged with itself.

    Base: 2x8
    Example: /server_list/1/server_id = "10.0.0.1"
    Instead: /server_list/1/server_id = "10.0.0.2"
    Hint: give every server its own server_id, or list its devices in one entry
    """
    servers = subject.table.servers
    if len({server.server_id for server in servers}) == len(servers):
        return
    first: dict[str, int] = {}
    for index, server in enumerate(servers):
        if (seen := first.setdefault(server.server_id, index)) != index:
            yield Finding(
                f'server_id "{server.server_id}" is used by two servers',
                subject.server_path(index, "server_id"),
                "give every server its own server_id, or list its devices in one entry",
                (Related(subject.server_path(seen, "server_id"), "first used here"),),
            )
