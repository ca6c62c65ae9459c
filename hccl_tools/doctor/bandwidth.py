"""The pairs of devices whose bandwidth is measured, and the pairs that are slow."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from hccl_tools.doctor.ping_results import Endpoint, hosts_of_servers
from hccl_tools.host.observation import HCCS, ROCE, PingServer
from hccl_tools.host.pings import reached
from hccl_tools.records import NamedTuple
from hccl_tools.table.links import UNKNOWN, Links
from hccl_tools.table.model import super_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

    #: The row of each device in the table, by host and in ascending order.
    Rows = Mapping[str, Mapping[int, int]]

#: The ids of the checks that read the measurements.
CHECKS = ("HCD605", "HCD606", "HCD607")
#: A pair below this share of the median is slow. A choice: a link at half its speed is far below it.
SLOW_SHARE = 0.75


class Pair(NamedTuple):
    """Two devices and their link, in the words of ``npu-smi info -t topo``."""

    first: Endpoint
    second: Endpoint
    link: str

    def __str__(self) -> str:
        """Return the pair as messages name it."""
        if self.first.host == self.second.host:
            return f"devices {self.first.device} and {self.second.device} of {self.first.host}"
        return f"{self.first} and {self.second}"

    @property
    def kind(self) -> str:
        """The kind of link, of which all pairs should be equally fast."""
        link = "an unknown link" if self.link == UNKNOWN else self.link
        return f"{link} {'inside' if self.first.host == self.second.host else 'between'} servers"


class MeasuredPair(NamedTuple):
    """A pair with its bandwidth in GB/s; ``verdict`` is ``success``, ``failed`` or ``NULL``."""

    pair: Pair
    gigabytes: float
    verdict: str

    def __str__(self) -> str:
        """Return the pair with its bandwidth, as messages name it."""
        return f"{self.pair} ({self.gigabytes:.2f} GB/s)"


def obstacle(case: Case) -> str:
    """Return why nothing is measured on a host; empty if its devices are known to be free."""
    if case.seen.processes:
        one = case.seen.processes[0]
        return f"process {one.pid} is on device {one.device}, and a measurement would slow it"
    return "" if case.seen.npus else "npu-smi does not say whether the devices are free"


def pairs(table: RankTable, product: Product, cases: Mapping[str, Case]) -> list[Pair]:
    """Return the pairs of devices to measure on these hosts.

    These are neighbouring devices of each server, then the pairs that ping each other: each device with the
    device at its place in the next server, once over HCCS inside the super pod and once between super pods.
    """
    rows, servers = _rows(table, cases)
    links = Links(table, product)
    found = []
    for host, own in rows.items():
        ids = list(own)
        for first, second in pairwise(ids):
            link = links.within([own[first], own[second]])[0][1]
            found.append(Pair(Endpoint(host, first), Endpoint(host, second), link))
    keys = [links.server_key(server) for server in table.servers]
    seen = set()
    for first_end, second_end in _between(servers):
        if (second_end, first_end) not in seen:
            seen.add((first_end, second_end))
            ends = (table.server_of_row[rows[end.host][end.device]] for end in (first_end, second_end))
            found.append(Pair(first_end, second_end, links.between(*(keys[index] for index in ends))))
    return found


def _rows(table: RankTable, cases: Mapping[str, Case]) -> tuple[Rows, list[PingServer]]:
    hosts, pods, numbers = hosts_of_servers(table, cases), super_pods(table), table.device_numbers
    rows: dict[str, dict[int, int]] = {}
    pod_of: dict[str, str] = {}
    for host, server in zip(hosts, table.servers, strict=True):
        if host in cases:
            pod_of.setdefault(host, pods.get(server.server_id, ""))
            own = rows.setdefault(host, {})
            own.update((number, row) for row in server.rows if (number := numbers[row]) is not None)
    ordered = {host: dict(sorted(own.items())) for host, own in rows.items()}
    servers = [
        PingServer((host,), pod_of[host], tuple((number, "") for number in own))
        for host, own in ordered.items()
    ]
    return ordered, servers


def _between(servers: list[PingServer]) -> Iterator[tuple[Endpoint, Endpoint]]:
    for over in (HCCS, ROCE):
        for own, server in enumerate(servers):
            for number in list(reached(servers, own, over))[:1]:
                other = servers[number]
                for (first, _), (second, _) in zip(server.devices, other.devices, strict=False):
                    yield Endpoint(server.names[0], first), Endpoint(other.names[0], second)


def measured_pairs(cases: Mapping[str, Case]) -> list[MeasuredPair]:
    """Return what was measured, the slowest pair first."""
    found = [
        MeasuredPair(
            Pair(Endpoint(host, one.device), Endpoint(one.host, one.peer), one.link),
            one.gigabytes,
            one.verdict,
        )
        for host, case in cases.items()
        for one in case.seen.bandwidths
    ]
    return sorted(found, key=lambda one: one.gigabytes)


def slow_pairs(found: list[MeasuredPair]) -> Iterator[tuple[float, int, list[MeasuredPair]]]:
    """Yield for each kind of link with slow pairs: the median in GB/s, the number of pairs, the slow ones.

    The median is the upper one: if half of the pairs share a slow device, the others are the measure.
    """
    kinds: dict[str, list[MeasuredPair]] = defaultdict(list)
    for one in found:
        kinds[one.pair.kind].append(one)
    for own in kinds.values():
        middle = sorted(one.gigabytes for one in own)[len(own) // 2]
        slow = [one for one in own if one.gigabytes < SLOW_SHARE * middle]
        if slow:
            yield middle, len(own), slow
