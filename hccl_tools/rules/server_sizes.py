"""Advice on servers and super pods that are smaller than the others: the end of a list may be lost.

HCCL accepts such tables on the products of these rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.rules.address_order import READ
from hccl_tools.rules.commands import how_device, shown_host
from hccl_tools.rules.copies import lost_devices, named_server
from hccl_tools.rules.registry import LEGACY, Finding, Subject, rule
from hccl_tools.rules.stray_devices import move_hint
from hccl_tools.rules.super_pod_list import is_used
from hccl_tools.rules.surplus_devices import (
    Surplus,
    refused_surplus,
    surplus_devices,
    why_surplus,
    without_surplus,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The fewest servers that can have different numbers of devices, and in which two or more can lack a device.
_LEAST_OF_SIZES, _LEAST_SERVERS = 2, 3
#: The most missing devices that are named one by one.
_MOST_SINGLE = 2
#: The fewest servers of a table whose super pods are compared.
_LEAST_OF_PODS = 4


@rule(
    "HCC639",
    "device-of-the-others-missing",
    "advice",
    formats=LEGACY,
    needs=("device_ip", "device_id", "rank_id", "server_id"),
    source="the other servers of the table; HCCL accepts servers with different numbers of devices on some products (config.cc:483-530)",
)
def device_missing(subject: Subject) -> Iterator[Finding]:
    """A server does not list devices that all other servers list, and the product accepts uneven servers.

    HCCL accepts such a table, and these devices are not used. If one of only two servers has more devices than the other,
    or one server lacks several, the end of a list was perhaps lost in a copy.

    Base: 4x8 a2
    Example: remove /server_list/3/device/7
    Instead: table
    Hint: add device 7 with its address (`hccn_tool -i 7 -ip -g` on 10.0.0.4 shows it), and number the ranks again without a gap, if it was lost; if it is left out on purpose, nothing is to be done
    """
    numbers, place = (
        subject.table.rank_numbers,
        "devices" if subject.table.format == "group_list" else "device",
    )
    if not subject.product.even_servers and (surplus := surplus_devices(subject)):
        yield from _with_surplus(subject, surplus)
        return
    if subject.product.even_servers or len(subject.table.servers) < _LEAST_OF_SIZES:
        return
    if subject.table.devices_of_each is not None or set(numbers) != set(range(len(numbers))):
        return
    if (short := _short_server(subject)) is not None:
        index, lacking = short
        yield _smaller_server(subject, index, lacking, place)
        return
    lost = lost_devices(subject) if len(subject.table.servers) >= _LEAST_SERVERS else None
    for index, device in lost.rows if lost is not None and len(lost.rows) <= _MOST_SINGLE else ():
        yield Finding(
            f"{named_server(subject, index)} has no device {device}, unlike all other servers",
            subject.server_path(index, place),
            move_hint(subject, [(index, device)])
            or _add(
                subject, f"device {device} with its address ({how_device(subject, index, device)} shows it)"
            ),
        )


def _with_surplus(subject: Subject, surplus: dict[int, Surplus]) -> Iterator[Finding]:
    """Yield the servers with all devices of a machine and one more that HCCL reads as any other."""
    limit, table = subject.product.device_limit, subject.table
    for index, one in surplus.items():
        if index in refused_surplus(subject):
            continue
        if one.twin is not None or (table.device_numbers[one.row] or 0) >= limit:
            continue  # HCC303 or HCC302 reports it.
        own = [table.device_numbers[row] for row in table.servers[index].rows]
        if len(set(own)) < len(own):
            continue  # HCC303 reports it.
        size = len(own)
        yield Finding(
            f"{named_server(subject, index)} has {count(size, 'device')}, one more than a machine with {size - 1}: {why_surplus(subject, index)}",
            subject.device_path(one.row, "device_id"),
            f"{without_surplus(subject, index)}; if the host has more than {size - 1} devices (`npu-smi info -l` shows them), and the job uses "
            f"{size}, nothing is to be done",
        )


def _short_server(subject: Subject) -> tuple[int, list[int]] | None:
    """Return the only server that lists some of the devices that each other server lists, with those it lacks."""
    table = subject.table
    if not subject.damaged.isdisjoint(READ) or len({one.server_id for one in table.servers}) < len(
        table.servers
    ):
        return None
    if len({one is None for one in table.columns.get("super_device_id", ())}) > 1:
        return None  # A server without super_device_ids is of another generation, which HCC525 reports.
    numbers = table.device_numbers
    sets = [frozenset(numbers[row] for row in server.rows) for server in table.servers]
    if any(len(one) < len(server.rows) for one, server in zip(sets, table.servers, strict=True)):
        return None
    small = min(sets, key=len)
    others = {*sets} - {small}
    if sets.count(small) != 1 or len(others) != 1 or not small or not small < (usual := others.pop()):
        return None
    lacking = [one for one in usual - small if one is not None]
    return (sets.index(small), sorted(lacking)) if len(lacking) == len(usual - small) else None


def _smaller_server(subject: Subject, index: int, lacking: list[int], place: str) -> Finding:
    """Return the finding on the only server with fewer devices."""
    rows = subject.table.servers[index].rows
    others = "the other server" if len(subject.table.servers) == _LEAST_OF_SIZES else "all other servers"
    shown = how_device(subject, index, lacking[0])
    if len(lacking) == 1:
        message = f"{named_server(subject, index)} has no device {lacking[0]}, unlike {others}"
        what = f"device {lacking[0]} with its address ({shown} shows it)"
    else:
        own = fold(sorted(one for row in rows if (one := subject.table.device_numbers[row]) is not None))
        has = "has" if len(subject.table.servers) == _LEAST_OF_SIZES else "have"
        message = (
            f"{named_server(subject, index)} has {count(len(rows), 'device')} ({own}), and {others} {has} "
            f"{len(rows) + len(lacking)}: devices {fold(lacking)} are perhaps missing"
        )
        what = f"devices {fold(lacking)} with their addresses ({shown} shows the first)"
    moved = move_hint(subject, [(index, device) for device in lacking])
    hint = moved or _add(subject, what, several=len(lacking) > 1)
    return Finding(message, subject.server_path(index, place), hint)


def _add(subject: Subject, what: str, *, several: bool = False) -> str:
    was, is_out = ("they were", "they are") if several else ("it was", "it is")
    then = "number the ranks again without a gap"
    if subject.table.format == "group_list":  # It has no ranks, but the number of its devices.
        then = f"check that device_count counts {'them' if several else 'it'}"
    return f"add {what}, and {then}, if {was} lost; if {is_out} left out on purpose, nothing is to be done"


@rule(
    "HCC650",
    "uneven-super-pods",
    "advice",
    formats=("1.2",),
    source="the other super pods of the table; HCCL accepts super pods of different sizes",
)
def uneven_super_pods(subject: Subject) -> Iterator[Finding]:
    """The super pods have different numbers of servers, and the servers of the table could be divided evenly.

    A server is probably listed in the super pod of others. HCCL accepts such a table.

    Base: 1.2 4x8
    Example: /super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}]}, {"super_pod_id": "1", "server_list": [{"server_id": "10.0.0.2"}, {"server_id": "10.0.0.3"}, {"server_id": "10.0.0.4"}]}]
    Instead: table
    Hint: if a server is in the wrong super pod, move it: `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.2 shows the super pod of the host, and so on for each host of super pod "1"; if the sizes are right, nothing is to be done
    """
    pods = subject.table.super_pods or []
    if not is_used(subject) or len(pods) < 2 or len(subject.table.servers) < _LEAST_OF_PODS:
        return
    sizes = [len(pod.server_ids) for pod in pods]
    if len({*sizes}) == 1 or sum(sizes) != len(subject.table.servers) or sum(sizes) % len(sizes):
        return
    pod_of = {name: number for number, pod in enumerate(pods) for name in pod.server_ids}
    order = [pod_of.get(server.server_id, -1) for server in subject.table.servers]
    if order != sorted(order):
        return  # HCC529 reports a server among those of another super pod.
    large = sizes.index(max(sizes))
    parts = and_more(
        [
            f"{quoted(pod.super_pod_id)} has {count(size, 'server')}"
            for pod, size in zip(pods, sizes, strict=True)
        ],
        8,
    )
    first = pods[large].server_ids[0]
    yield Finding(
        f"the super pods have different numbers of servers: {parts}",
        ("super_pod_list", large, "server_list"),
        f"if a server is in the wrong super pod, move it: `npu-smi info -t spod-info -i 0 -c 0` on {shown_host(first)} shows the super "
        f"pod of the host, and so on for each host of super pod {quoted(pods[large].super_pod_id)}; if the sizes are right, "
        "nothing is to be done",
    )
