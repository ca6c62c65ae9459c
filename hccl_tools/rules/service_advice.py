"""Advice on service tables: what their readers accept, but is probably wrong."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.rules.registry import Finding, Subject, rule
from hccl_tools.rules.service_structure import service_table
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.hccl_numbers import read_int

if TYPE_CHECKING:
    from collections.abc import Iterator

_advice = partial(rule, consequence="advice")
_READY = "completed"
_MOST_RANKS = 1 << 16


@_advice("HCC651", "service-not-completed", source="get_group_id.py:36-41; clusterd")
def not_completed(subject: Subject) -> Iterator[Finding]:
    """The status of a service table is not "completed": every pod waits for it and reads it again each second.

    The pods print "status of ranktable is not completed". With a ConfigMap, kubelet can need 60 seconds for
    the update.

    Example: /status = "initializing"
    Instead: /status = "completed"
    Hint: wait for the platform to complete the table
    """
    status = subject.value.get("status")
    if isinstance(status, str) and status != _READY:
        message = f'status is "{status}", not "{_READY}"'
        yield Finding(message, ("status",), "wait for the platform to complete the table")


@_advice("HCC652", "service-version", source="clusterd, 05_service_configuration_apis.md:57")
def version(subject: Subject) -> Iterator[Finding]:
    """The version of a service table is neither "1.0" nor "1.2"; its readers ignore it.

    Example: /version = "1.1"
    Instead: /version = "1.0"
    Hint: write "version": "1.0", or "1.2" for super pods
    """
    found = subject.value.get("version")
    if isinstance(found, str) and found not in {"1.0", "1.2"}:
        hint = 'write "version": "1.0", or "1.2" for super pods'
        yield Finding(f'version is "{found}", which no platform writes', ("version",), hint)


@_advice("HCC653", "service-server-count", source="clusterd; pd_ranktable_tools.py:153")
def server_count(subject: Subject) -> Iterator[Finding]:
    """server_count is not the number of the group's servers, so that the file is probably incomplete.

    Example: /server_group_list/2/server_count = "2"
    Instead: /server_group_list/2/server_count = "1"
    Hint: write "server_count": "1", or add the missing servers
    """
    for index, group in enumerate(service_table(subject).groups):
        stated = group.entry.get("server_count")
        number = read_int(stated) if isinstance(stated, str) else stated
        if type(stated) in {str, int, float} and number != len(group.servers):
            shown = f'"{stated}"' if isinstance(stated, str) else stated
            hint = f'write "server_count": "{len(group.servers)}", or add the missing servers'
            message = f"server_count is {shown}, but the group lists {count(len(group.servers), 'server')}"
            yield Finding(message, (SERVICE, index, "server_count"), hint)


@_advice("HCC654", "service-uneven-servers", source="HCC511 of the instance's rank table; MindIE-Motor guide")
def uneven_servers(subject: Subject) -> Iterator[Finding]:
    """The servers of an instance have different numbers of devices.

    Base: server_group_list 2x4
    Example: remove /server_group_list/2/server_list/1/device/3
    Instead: table
    Hint: list the same number of devices for each server
    """
    table = service_table(subject)
    for instance in table.instances:
        sizes = [len(table.servers[server].rows) for server in instance.servers]
        if len(set(sizes)) <= 1:
            continue
        other = next(place for place, size in enumerate(sizes) if size != sizes[0])
        server = instance.servers[other]
        message = f"{instance.name} has servers with {fold(sorted(set(sizes)))} devices"
        hint = "list the same number of devices for each server"
        related = (Related(table.server_path(instance.servers[0]), f"{count(sizes[0], 'device')} here"),)
        yield Finding(message, table.server_path(server), hint, related)


@_advice("HCC655", "service-rank-gap", source="HCC202 of the instance's rank table")
def rank_gap(subject: Subject) -> Iterator[Finding]:
    """The ranks of an instance are not 0 to N-1, so that its rank table needs new ranks.

    Example: /server_group_list/2/server_list/0/device/1/rank_id = "5"
    Instead: /server_group_list/2/server_list/0/device/1/rank_id = "1"
    Hint: number the devices of the instance from 0
    """
    table = service_table(subject)
    for instance in table.unordered_instances:
        rows = table.rows(instance.servers)
        ranks = table.rank_numbers[rows.start : rows.stop]
        known = {rank for rank in ranks if rank is not None and rank < _MOST_RANKS}
        if known and None not in ranks and len(known) == len(ranks) and max(known) >= len(ranks):
            place = next(place for place, rank in enumerate(ranks) if rank is not None and rank >= len(ranks))
            message = f"the ranks of {instance.name} are {fold(sorted(known))}, not 0-{len(ranks) - 1}"
            hint = "number the devices of the instance from 0"
            yield Finding(message, table.device_path(rows.start + place, "rank_id"), hint)


@_advice("HCC656", "service-shared-device", source="pd_ranktable_tools.py:103")
def shared_device(subject: Subject) -> Iterator[Finding]:
    """Two instances have the same device of a host.

    Example: /server_group_list/3/server_list/0/server_id = "10.0.0.1"
    Instead: /server_group_list/3/server_list/0/server_id = "10.0.0.2"
    Hint: give each instance its own devices
    """
    table = service_table(subject)
    if table.hosts_are_distinct:
        return
    first: dict[tuple[str, int], tuple[int, int]] = {}
    for number, instance in enumerate(table.instances):
        for server in instance.servers:
            host = table.servers[server].text("server_id")
            for row in table.servers[server].rows if host is not None else ():
                device = table.device_numbers[row]
                if device is None:
                    continue
                owner, seen = first.setdefault((host or "", device), (number, row))
                if owner != number:
                    related = (Related(table.device_path(seen, "device_id"), "first used here"),)
                    message = (
                        f"device {device} of {host} is in {table.instances[owner].name} and {instance.name}"
                    )
                    hint = "give each instance its own devices"
                    yield Finding(message, table.device_path(row, "device_id"), hint, related)
