"""Advice on servers of a table that are one host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.table.addresses import is_unset, packed

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(
    "HCC616",
    "same-host-twice",
    "advice",
    formats=SERVER_LIST,
    source="topoinfo_ranktableConcise.cc (ids are compared as texts)",
)
def same_host_twice(subject: Subject) -> Iterator[Finding]:
    """Two servers are one host: they have one address in two spellings, or one host_ip, and different devices.

    HCCL takes them for two hosts, and connects their devices over the network.

    Base: 2x8
    Example: /server_list/0/server_id = "fd00::1"; /server_list/1/server_id = "fd00:0::1"
    Instead: /server_list/0/server_id = "fd00::1"; /server_list/1/server_id = "fd00::2"
    Hint: write the address of its own host in one of the two: both list the same devices of "fd00::1"
    """
    yield from _of_one_host_ip(subject)
    ids = [server.server_id for server in subject.table.servers]
    if not any(":" in one or one != one.strip() for one in ids):
        return  # An IPv4 address has one spelling.
    first: dict[bytes, int] = {}
    for index, server in enumerate(subject.table.servers):
        raw = packed(server.server_id.strip())
        if raw is None:
            continue
        seen = first.setdefault(raw, index)
        other = subject.table.servers[seen].server_id
        if seen != index and other != server.server_id:
            yield Finding(
                f"server_id {quoted(server.server_id)} is another spelling of {quoted(other)}",
                subject.server_path(index, "server_id"),
                _in_one_server(subject, seen, index),
                (Related(subject.server_path(seen, "server_id"), "the same host"),),
            )


def _in_one_server(subject: Subject, seen: int, index: int) -> str:
    """Return the hint on two servers that are one host; with the same devices, one of the two has a wrong name."""
    name = quoted(subject.table.servers[seen].server_id.strip())
    if _share_devices(subject, seen, index):
        return f"write the address of its own host in one of the two: both list the same devices of {name}"
    return f"list all devices of the host in one server, {name}, remove the other entry{_count_without(subject, seen, index)}"


def _share_devices(subject: Subject, seen: int, index: int) -> bool:
    table = subject.table
    own, others = ({table.device_numbers[row] for row in table.servers[one].rows} for one in (seen, index))
    return not own.isdisjoint(others)


def _count_without(subject: Subject, seen: int, index: int) -> str:
    """Return what changes if two servers become one, as the end of a hint: the ranks stay if they follow each other."""
    table, stated = subject.table, subject.table.declared.get("server_count")
    is_next = table.servers[seen].rows.stop == table.servers[index].rows.start
    ranks = "" if is_next else ", and keep each device's rank_id"
    number = len(table.servers) - 1
    return f'{ranks}, and write "server_count": "{number}"' if stated == str(len(table.servers)) else ranks


def _of_one_host_ip(subject: Subject) -> Iterator[Finding]:
    """Yield the servers with the host_ip of another server."""
    table, first = subject.table, dict[str, int]()
    hosts = [server.host_ip for server in table.servers if server.host_ip is not None]
    if len(set(hosts)) == len(hosts) or not subject.damaged.isdisjoint({"device_id", "host_ip"}):
        return
    for index, server in enumerate(table.servers):
        address = server.host_ip
        if address is None or packed(address) is None or is_unset(address):
            continue
        seen = first.setdefault(address, index)
        if seen == index or table.servers[seen].server_id == server.server_id:
            continue
        said = f"servers {seen + 1} and {index + 1} have one host_ip, {quoted(address)}"
        related = (Related(subject.server_path(seen, "host_ip"), "the same host_ip here"),)
        path = subject.server_path(index, "host_ip")
        if _share_devices(subject, seen, index):
            names = " and ".join(quoted(table.servers[one].server_id) for one in (seen, index))
            hint = f"write in each the address of its own host: one of {names} has that of the other"
            yield Finding(f"{said}, and list the same devices", path, hint, related)
            continue
        yield Finding(
            f"{said}, and different devices: they are probably one host, for example two pods of it, and HCCL connects their devices over "
            "the network",
            path,
            f"if both are on this host (`kubectl get pod -o wide` shows the node of each pod), list all their devices in one server with the "
            f"server_id {quoted(address)}{_count_without(subject, seen, index)}; else write in each the host_ip of its own host",
            related,
        )
