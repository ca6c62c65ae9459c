"""The pings between the devices of a job: who pings whom, and what failed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.host import pings
from hccl_tools.host.observation import HCCS, ROCE, PingServer
from hccl_tools.host.recognition import listed_addresses, same
from hccl_tools.records import NamedTuple
from hccl_tools.rules.local_devices import is_absent
from hccl_tools.table.addresses import packed
from hccl_tools.table.fingerprint import hosts
from hccl_tools.table.model import super_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.host.observation import PingObservation
    from hccl_tools.table.model import RankTable, Server

    Address = bytes | str


#: Names by which a host knows itself in a request, and their characters.
_MOST_NAMES, _LONGEST_NAME = 8, 255
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
    """The pings from one device to another over RoCE or HCCS: packets sent and received."""

    source: Endpoint
    target: Endpoint
    sent: int
    received: int
    over: str = ROCE


class Measured(NamedTuple):
    """The same by indices of servers in the table and physical ids; ``source`` is -1 if it is not known."""

    host: str
    source: int
    device: int
    target: int
    peer: int
    answer: PingObservation


def table_of(cases: Mapping[str, Case]) -> RankTable | None:
    """Return the table of a job, with which all its hosts are compared."""
    return next((case.table for case in cases.values() if case.table is not None), None)


def stated_names(server: Server) -> list[str]:
    """Return the names and addresses that a table has of a server."""
    stated = (server.server_id, server.host_ip, server.fields.get("container_ip"))
    return [text for text in stated if isinstance(text, str)]


def stated_addresses(server: Server) -> list[str]:
    """Return the names and addresses that a table has of a server, then that of its network card."""
    card = server.fields.get("host_nic_ip")
    return [*stated_names(server), *([card] if isinstance(card, str) else ())]


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


def most_pings(servers: Sequence[PingServer], *, every: bool, over: str = ROCE) -> int:
    """Return the number of pings of the host with most of them."""
    if not every or over == HCCS:
        counts = (len(pings.targets(servers, own, every=every, over=over)) for own in range(len(servers)))
        return max(counts, default=0)
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


def servers_in_super_pods(
    table: RankTable, cases: Mapping[str, Case], *, every: bool
) -> tuple[PingServer, ...]:
    """Return the servers with devices to ping over HCCS, and their addresses in the super pod.

    Args:
        every: Whether the devices of one server ping each other as well.
    """
    pods, hosts_of, claimed = super_pods(table), hosts_of_servers(table, cases), _claimed(cases)
    found = []
    for index, server in enumerate(table.servers):
        case, pod = cases.get(hosts_of[index]), pods.get(server.server_id, "")
        if case is None or not pod:
            continue
        known = {one.device: one.vnic for one in case.seen.devices if one.vnic}
        numbers = sorted(table.device_numbers[row] or 0 for row in server.rows)
        devices = tuple((number, known[number]) for number in numbers if number in known)
        known_as = (*case.seen.local_addresses, *case.seen.names)
        own = [
            name for name in known_as if claimed.get(name) == hosts_of[index] and len(name) <= _LONGEST_NAME
        ]
        names = (hosts_of[index], *own[:_MOST_NAMES])
        found.append(PingServer(names, pod, devices))
    shared = Counter(one.super_pod for one in found)
    return tuple(one for one in found if one.devices and (every or shared[one.super_pod] > 1))


def measured(table: RankTable, cases: Mapping[str, Case]) -> Iterator[Measured]:
    """Yield the pings of all hosts to devices of the table."""
    hosts_of, pods = hosts_of_servers(table, cases), super_pods(table)
    pod_of = [pods.get(server.server_id, "") for server in table.servers]
    ends: dict[tuple[str, Address], tuple[int, int]] = {}
    numbers = table.device_numbers
    for index, server in enumerate(table.servers):
        for row in server.rows:
            first, number = next(listed_addresses(table, row), None), numbers[row]
            if first is not None and number is not None:
                ends["", same(first[1])] = index, number
        case = cases.get(hosts_of[index])
        for one in case.seen.devices if case is not None and pod_of[index] else ():
            if one.vnic:  # an address inside the super pod: other super pods may have the same
                ends[pod_of[index], same(one.vnic)] = index, one.device
    of_host = {host: index for index, host in enumerate(hosts_of) if host}
    for host, case in cases.items():
        source = of_host.get(host, -1)
        own = {numbers[row] for row in table.servers[source].rows} if source >= 0 else set()
        for answer in case.seen.pings:
            if source >= 0 and answer.device not in own:
                continue  # It was not asked for.
            space = pod_of[source] if answer.over == HCCS else ""
            if (end := ends.get((space, same(answer.address)))) is not None:
                yield Measured(host, source, answer.device, *end, answer)


def ways(cases: Mapping[str, Case]) -> Iterator[Way]:
    """Yield the pings of all hosts, without those that another finding explains.

    A device that is not on its host, whose link is down, or that does not have its address in the table,
    cannot answer over RoCE. A host that did not answer is a finding of its own.
    """
    table = table_of(cases)
    if table is None or not any(case.seen.pings for case in cases.values()):
        return
    hosts_of = hosts_of_servers(table, cases)
    if len(cases) == 1:  # the others were not asked: they have their names in the table
        hosts_of = [host or server.server_id for host, server in zip(hosts_of, table.servers, strict=True)]
    real = {
        Endpoint(host, one.device): (one.link, {same(ip) for ip in one.ips})
        for host, case in cases.items()
        for one in case.seen.devices
    }
    mute = {
        Endpoint(host, one.device)
        for host, case in cases.items()
        for one in case.seen.devices
        if one.device not in case.seen.nodes or is_absent(one.problem) or one.is_without_address
    }
    for host, _source, device, target, peer, answer in measured(table, cases):
        ends = Endpoint(host, device), Endpoint(hosts_of[target], peer)
        explained = not hosts_of[target]
        if answer.over == ROCE:
            ips = real.get(ends[1], (None, set[object]()))[1]
            explained |= any(end in mute or real.get(end, ("UP", None))[0] == "DOWN" for end in ends)
            explained |= bool(ips) and same(answer.address) not in ips
        if not explained:
            yield Way(*ends, answer.sent, answer.received, answer.over)


def hosts_of_servers(table: RankTable, cases: Mapping[str, Case]) -> list[str]:
    """Return for each server the name under which its host was asked; empty if it did not answer.

    The name under which a host was asked is its own. Another name or address that a host claims counts if no
    other host claims it.
    """
    known = _claimed(cases)
    return [
        next((known[name] for name in stated_names(server) if name in known), "") for server in table.servers
    ]


def _claimed(cases: Mapping[str, Case]) -> dict[str, str]:
    """Return the host of each name: the one that was asked under it, else the only one that claims it."""
    claims = claimants(cases)
    known = {name: hosts[0] for name, hosts in claims.items() if len(hosts) == 1}
    return known | {host: host for host in cases}


def claimants(cases: Mapping[str, Case]) -> dict[str, list[str]]:
    """Return the hosts that claim each name and address; a name that is an address does not count."""
    found: dict[str, list[str]] = {}
    for host, case in cases.items():
        names = (name for name in case.seen.names if packed(name) is None)
        for name in dict.fromkeys((*names, *case.seen.local_addresses)):
            found.setdefault(name, []).append(host)
    return found
