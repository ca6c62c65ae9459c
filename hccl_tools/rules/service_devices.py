"""Rules on the devices of service tables: ranges of numbers, and duplicates in an instance.

Source: MindIE-Motor 5dfb024e, RankTableLoader.cpp; an instance starts from the rank table that its devices
make, so that HCCL's conditions apply to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.rules.registry import Finding, Input, rule
from hccl_tools.rules.service_structure import service_table
from hccl_tools.table.hccl_numbers import read_column

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from hccl_tools.table.service_table import Instance, ServiceTable

_TWO = 2
#: RankTableLoader.cpp:30-33, both inclusive.
_HIGHEST = {"device_id": 2048, "device_logical_id": 2048, "rank_id": 2048, "super_device_id": 1 << 30}


@rule("HCC721", "service-number", "refused", source="RankTableLoader.cpp:30-33, :479-509; device.py:6")
def number(subject: Input) -> Iterator[Finding]:
    """A device_id, device_logical_id or rank_id is not a number from 0 to 2048, or a super_device_id not to 2**30.

    Example: /server_group_list/2/server_list/0/device/0/device_id = "2049"
    Instead: /server_group_list/2/server_list/0/device/0/device_id = "2048"
    Hint: write a number from 0 to 2,048
    """
    table = service_table(subject)
    for key, highest in _HIGHEST.items():
        column = table.column(key)
        different = list(set(column))  # each value is parsed once
        numbers = dict(zip(different, read_column(different), strict=True))
        if all(text is None or (value is not None and value <= highest) for text, value in numbers.items()):
            continue
        for row, text in enumerate(column):
            value = numbers[text]
            if text is not None and (value is None or value > highest):
                what = "is not a number" if value is None else f"is above {highest:,}"
                hint = f"write a number from 0 to {highest:,}"
                yield Finding(f'{key} "{text}" {what}', table.device_path(row, key), hint)


@rule(
    "HCC722",
    "duplicate-service-device",
    "fails-later",
    source="rank_table_config_910.md; pd_ranktable_tools.py:103",
)
def duplicate_device(subject: Input) -> Iterator[Finding]:
    """An instance has the same device of a host twice.

    Example: /server_group_list/2/server_list/0/device/1/device_id = "0"
    Instead: /server_group_list/2/server_list/0/device/1/device_id = "1"
    Hint: correct one of the two device ids
    """
    table = service_table(subject)
    numbers = table.device_numbers
    kinds = {tuple(numbers[one.rows.start : one.rows.stop]) for one in table.servers}
    if table.hosts_are_distinct and all(len(set(kind)) == len(kind) for kind in kinds):
        return
    for instance in table.instances:
        hosts = [table.servers[server].text("server_id") for server in instance.servers]
        keys: list[Hashable] = []
        for host, server in zip(hosts, instance.servers, strict=True):
            rows = table.servers[server].rows
            keys += [
                None if one is None or host is None else (host, one)
                for one in table.device_numbers[rows.start : rows.stop]
            ]
        yield from _twice(table, instance, keys, "device_id", "correct one of the two device ids")


@rule("HCC723", "duplicate-service-rank", "fails-later", source="topoinfo_ranktableParser.cc (HCC203)")
def duplicate_rank(subject: Input) -> Iterator[Finding]:
    """Two devices of an instance have the same rank_id.

    If a table has only one group of instances and each of its servers has its own rank 0, each server is an
    instance.

    Example: /server_group_list/2/server_list/0/device/1/rank_id = "0"
    Instead: /server_group_list/2/server_list/0/device/1/rank_id = "1"
    Hint: number the devices of the instance from 0
    """
    table = service_table(subject)
    for instance in table.unordered_instances:
        rows = table.rows(instance.servers)
        keys = table.rank_numbers[rows.start : rows.stop]
        said = _numbered_again(table, instance)
        for finding in _twice(table, instance, keys, "rank_id", "number the devices of the instance from 0"):
            yield finding if said is None else finding._replace(message=said[0], hint=said[1], alike=said)


def _numbered_again(table: ServiceTable, instance: Instance) -> tuple[str, str] | None:
    """Return message and hint on ranks that begin with 0 on each server of an instance; None for others."""
    ranks, servers = table.rank_numbers, [table.servers[one] for one in instance.servers]
    if len(servers) == 1 or any(
        ranks[one.rows.start : one.rows.stop] != list(range(len(one.rows))) for one in servers
    ):
        return None
    first, second = (len(one.rows) for one in servers[:2])
    name = table.servers[instance.servers[1]].text("server_ip")
    more = ", and so on for each further server" if len(servers) > _TWO else ""
    return (
        f"the ranks of {instance.name} begin with 0 again on each server",
        f'number them on: {first} to {first + second - 1} on server "{name}"{more}',
    )


@rule("HCC724", "duplicate-service-device-ip", "fails-later", source="rank_table.py:83; HCC406")
def duplicate_device_ip(subject: Input) -> Iterator[Finding]:
    """Two devices of an instance have the same device_ip.

    omni-infer identifies a device by its address.

    Example: /server_group_list/2/server_list/0/device/1/device_ip = "10.20.0.1"
    Instead: /server_group_list/2/server_list/0/device/1/device_ip = "10.20.0.2"
    Hint: give every device its own address
    """
    table = service_table(subject)
    column = table.column("device_ip")
    for instance in table.instances if len(set(column)) < len(column) else ():
        rows = table.rows(instance.servers)
        keys = column[rows.start : rows.stop]
        yield from _twice(table, instance, keys, "device_ip", "give every device its own address")


def _twice(
    table: ServiceTable, instance: Instance, keys: Sequence[Hashable], name: str, hint: str
) -> Iterator[Finding]:
    """Yield the devices of an instance whose key another device has; ``None`` is not a key."""
    if len(set(keys)) == len(keys):
        return
    start = table.rows(instance.servers).start
    first: dict[Hashable, int] = {}
    for place, key in enumerate(keys):
        if key is not None and (seen := first.setdefault(key, place)) != place:
            related = (Related(table.device_path(start + seen, name), "first used here"),)
            value = table.devices[start + place][name]
            message = f'{name} "{value}" is used twice in {instance.name}'
            yield Finding(message, table.device_path(start + place, name), hint, related)
