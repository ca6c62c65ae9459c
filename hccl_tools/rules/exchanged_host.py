"""A server_id and a device_ip that are exchanged (HCC633, HCC631). This module declares no rules."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.commands import how
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.table.addresses import joined_ipv4, packed

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject


def _network(text: str) -> str:
    """Return the first two numbers of an IPv4 address; "" for other texts."""
    return ".".join(text.split(".")[:2]) if "." in text and packed(text) is not None else ""


@shared
def exchanged_with_host(subject: Subject) -> int | None:
    """Return the only row whose device_ip is in the network of all other server_ids, while its server_id is in that of the device_ips.

    The result is None if the hosts and the devices are not in two networks of their own.
    """
    table = subject.table
    if len(table.servers) < 2 or not subject.damaged.isdisjoint({"server_id", "device_ip"}):
        return None
    joined = joined_ipv4([*map(attrgetter("server_id"), table.servers)])
    if joined is None or len({*zip(joined[::4], joined[1::4], strict=True)}) != 2:
        return None
    hosts = [_network(server.server_id) for server in table.servers]
    times = Counter(hosts)
    odd = [index for index, one in enumerate(hosts) if times[one] == 1]
    devices = [_network(text) if isinstance(text, str) else "" for text in table.device_ips]
    found = list[int]()
    for index in odd:
        others = {one for place, one in enumerate(hosts) if place != index}
        rows = [row for row in table.servers[index].rows if devices[row] in others]
        rest = {network for row, network in enumerate(devices) if row not in rows}
        if len(others) == 1 and len(rows) == 1 and rest == {hosts[index]}:
            found += rows
    return found[0] if len(found) == 1 else None


def of_exchanged_host(subject: Subject, row: int) -> Finding:
    """Return the finding on a server_id and a device_ip that are exchanged."""
    table = subject.table
    index = table.server_of_row[row]
    name, text, device = table.servers[index].server_id, table.device_ips[row], table.device_ids[row]
    return Finding(
        f"server_id {quoted(name)} of server {index + 1} is in the network of the devices, and device_ip {quoted(text)} of its device "
        f"{device} in that of the servers: the two are probably exchanged",
        subject.server_path(index, "server_id"),
        f"{how(subject, row, host=text)}: if it is {quoted(name)}, exchange the two",
        (Related(subject.device_path(row, "device_ip"), "the other one"),),
    )
