"""The pings between the devices of a job: who pings whom, and what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.discover.recognition import listed_addresses, same
from hccl_tools.inspection import pings
from hccl_tools.inspection.observation import PingServer
from hccl_tools.records import NamedTuple
from hccl_tools.table.fingerprint import hosts, super_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.doctor.case import Case
    from hccl_tools.table.model import RankTable, Server

    Address = bytes | str


#: The ids of the checks that read pings begin with this.
FAMILY = "HCD6"


class Endpoint(NamedTuple):
    """A device of a host, by physical id."""

    host: str
    device: int

    def __str__(self) -> str:
        """Return the device as messages name it."""
        return f"device {self.device} of {self.host}"


class Way(NamedTuple):
    """A ping from one device to the address of another: packets sent and received."""

    source: Endpoint
    target: Endpoint
    sent: int
    received: int


def stated_names(server: Server) -> list[str]:
    """Return the names and addresses that a table has of a server."""
    stated = (server.server_id, server.host_ip, server.fields.get("container_ip"))
    return [text for text in stated if isinstance(text, str)]


def ping_servers(table: RankTable) -> tuple[PingServer, ...]:
    """Return the servers of a table with their devices in ascending order; none for format 2.0.

    The devices of an Ascend 950 have no addresses that ``hccn_tool -ping`` accepts.
    """
    if table.format == "2.0" or len(table.servers) < 2:
        return ()
    pods, numbers = super_pods(table), table.device_numbers
    found = []
    for server_id, parts in hosts(table):
        names = tuple(dict.fromkeys(name for part in parts for name in stated_names(part)))
        rows = [row for part in parts for row in part.rows]
        devices = ((numbers[row], next(listed_addresses(table, row), None)) for row in rows)
        known = sorted((number, ip[1]) for number, ip in devices if number is not None and ip is not None)
        found.append(PingServer(names, pods.get(server_id, ""), tuple(known)))
    return tuple(found)


def most_pings(servers: Sequence[PingServer], *, every: bool) -> int:
    """Return the number of pings of the host with most of them."""
    if not every:
        return max((len(pings.targets(servers, own, every=False)) for own in range(len(servers))), default=0)
    total = sum(len(one.devices) for one in servers)
    in_pod: dict[str, int] = {}
    for one in servers:
        in_pod[one.super_pod] = in_pod.get(one.super_pod, 0) + len(one.devices)
    return max(
        (
            len(one.devices) * (total - (in_pod[one.super_pod] if one.super_pod else len(one.devices)))
            for one in servers
        ),
        default=0,
    )


class Measured(NamedTuple):
    """The pings from a device of one server of the table to a device of another, by physical ids.

    ``source`` and ``target`` are indices of servers.
    """

    source: int
    device: int
    target: int
    peer: int
    sent: int
    received: int


def measured(table: RankTable, cases: Mapping[str, Case]) -> Iterator[Measured]:
    """Yield the pings of all hosts whose server in the table is known."""
    known = _known_hosts(cases)
    of_host: dict[str, int] = {}
    of_address: dict[Address, tuple[int, int]] = {}
    numbers = table.device_numbers
    for index, server in enumerate(table.servers):
        hosts = (known[name] for name in stated_names(server) if name in known)
        of_host.setdefault(next(hosts, ""), index)
        for row in server.rows:
            first, number = next(listed_addresses(table, row), None), numbers[row]
            if first is not None and number is not None:
                of_address[same(first[1])] = index, number
    for host, case in cases.items():
        for one in case.seen.pings if host in of_host else ():
            if (end := of_address.get(same(one.address))) is not None:
                yield Measured(of_host[host], one.device, *end, one.sent, one.received)


def ways(cases: Mapping[str, Case]) -> Iterator[Way]:
    """Yield the pings of all hosts, without those that another finding explains.

    A device whose link is down, or that does not have its address in the table, cannot answer.
    """
    table = next((case.table for case in cases.values() if case.table is not None), None)
    if table is None or not any(case.seen.pings for case in cases.values()):
        return
    of_address = _endpoints(table, cases)
    real = {
        Endpoint(host, one.device): (one.link, {same(ip) for ip in one.ips})
        for host, case in cases.items()
        for one in case.seen.devices
    }
    for host, case in cases.items():
        for one in case.seen.pings:
            source, target = Endpoint(host, one.device), of_address.get(same(one.address))
            if target is None or target.host == "":
                continue
            explained = any(real.get(end, ("UP", None))[0] == "DOWN" for end in (source, target))
            ips = real.get(target, (None, set[object]()))[1]
            if not explained and (not ips or same(one.address) in ips):
                yield Way(source, target, one.sent, one.received)


def _endpoints(table: RankTable, cases: Mapping[str, Case]) -> dict[Address, Endpoint]:
    """Return the device of each address of a table, with the name under which its host answered.

    The host is empty if it did not answer: that is a finding of its own. If this host alone was asked, the
    others have their names in the table.
    """
    known = _known_hosts(cases)
    found: dict[Address, Endpoint] = {}
    numbers = table.device_numbers
    for server in table.servers:
        unasked = server.server_id if len(cases) == 1 else ""
        host = next((known[name] for name in stated_names(server) if name in known), unasked)
        for row in server.rows:
            first, number = next(listed_addresses(table, row), None), numbers[row]
            if first is not None and number is not None:
                found[same(first[1])] = Endpoint(host, number)
    return found


def _known_hosts(cases: Mapping[str, Case]) -> dict[str, str]:
    """Return the name under which a host was asked, by each of its names and addresses."""
    known = {name: host for host, case in cases.items() for name in (host, *case.seen.names)}
    return known | {name: host for host, case in cases.items() for name in case.seen.local_addresses}
