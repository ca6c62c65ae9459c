"""Checks of the ways between devices of different servers: they read the pings of all hosts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from hccl_tools.doctor.cross_host_checks import differences
from hccl_tools.doctor.ping_results import hosts_of_servers, table_of, ways
from hccl_tools.doctor.registry import Finding, check
from hccl_tools.host.observation import HCCS, ROCE
from hccl_tools.notation.phrases import and_more, devices
from hccl_tools.table.model import super_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.doctor.ping_results import Endpoint, Way

    Cases = Mapping[str, Case]

#: A fault of a rail can be told from one of a pair if so many pings failed.
_LEAST_OF_RAIL = 3
_MOST_NAMED = 4
_BETWEEN_HOSTS = (
    "look at what is between the two hosts: VLANs, routes and access lists of their switches; "
    "`hccn_tool -i {device} -lldp -g` names the switch port of a device"
)


class _Faults:
    """The pings without an answer, by their common cause: a rail, a device, or a pair of devices."""

    def __init__(self, found: Sequence[Way]) -> None:
        self.asked = found
        lost = [one for one in found if one.received == 0]
        self.rails = _rails(found)
        rest = [one for one in lost if one.source.device not in self.rails or not _on_rail(one)]
        self.dead = _dead(found, rest)
        dead = frozenset(self.dead)
        self.pairs = [one for one in rest if one.source not in dead and one.target not in dead]


def _faults(cases: Cases, over: str) -> _Faults:
    return _Faults([one for one in ways(cases) if one.over == over])


def _on_rail(one: Way) -> bool:
    return one.source.device == one.target.device


def _rails(found: Sequence[Way]) -> dict[int, list[Way]]:
    """Return the rails, by device id, on which no ping was answered."""
    of_rail: dict[int, list[Way]] = defaultdict(list)
    for one in found:
        if _on_rail(one):
            of_rail[one.source.device].append(one)
    return {
        device: own
        for device, own in of_rail.items()
        if len(own) >= _LEAST_OF_RAIL and all(one.received == 0 for one in own)
    }


def _dead(found: Sequence[Way], lost: Sequence[Way]) -> list[Endpoint]:
    """Return the devices of which every ping failed, to and from at least two others."""
    touching: dict[Endpoint, list[Way]] = defaultdict(list)
    for one in found:
        touching[one.source].append(one)
        touching[one.target].append(one)
    failed = {end for one in lost for end in (one.source, one.target)}
    return sorted(
        end
        for end in failed
        if len({peer for one in touching[end] for peer in (one.source, one.target)}) > 2
        and all(one.received == 0 for one in touching[end])
    )


@check(
    "HCD601",
    "device-unreachable",
    "stops",
    remedy="check address, gateway and cable of the device, and its switch port: "
    "`hccn_tool -i {device} -gateway -g`, `hccn_tool -i {device} -arp -g`",
    commands=("hccn_tool -i {device} -gateway -g", "hccn_tool -i {device} -arp -g"),
    source="hccn_tool -ping; HCCL communicates over RoCE between hosts",
    between=True,
    of_npus=True,
)
def device_unreachable(cases: Cases) -> Iterator[Finding]:
    """Does each device reach its peer on the next server, and do the packets come back?

    The answers are read by the numbers of packets, not by the exit code. If several pings fail, their common
    device is named. A ping to or from a device whose link is down, or whose address differs from that of
    the table, is not counted: that is a finding of its own.
    """
    yield from _unreachable(_faults(cases, ROCE), "server")


def _unreachable(faults: _Faults, others: str) -> Iterator[Finding]:
    dead: dict[str, list[int]] = defaultdict(list)
    for end in faults.dead:
        dead[end.host].append(end.device)
    for host, ids in dead.items():
        subject = f"reaches no other {others}, and no other {others} reaches it"
        if len(ids) > 1:
            subject = f"reach no other {others}, and no other {others} reaches them"
        yield Finding(f"{devices(ids)} {subject}", tuple(ids), hosts=(host,))
    yield from _lost_pairs(faults)


def _lost_pairs(faults: _Faults) -> Iterator[Finding]:
    """Yield the pairs of hosts between which packets are lost: of all devices, or of some."""
    lost: dict[tuple[str, str], list[Way]] = defaultdict(list)
    for one in faults.pairs:
        lost[min(one.source.host, one.target.host), max(one.source.host, one.target.host)].append(one)
    for pair, own in lost.items():
        ends = {frozenset((one.source, one.target)) for one in own}
        if len(ends) > 1 and len(own) == len([one for one in faults.asked if _hosts(one) == set(pair)]):
            first, second = own[0].source.host, own[0].target.host
            yield Finding(
                f"no packet passes between the devices of {first} and {second}: {len(own)} pings",
                tuple(sorted({one.source.device for one in own})),
                remedy=_BETWEEN_HOSTS,
                hosts=(first, second),
            )
        else:
            yield from _lost_ways(faults, own)


def _hosts(one: Way) -> set[str]:
    return {one.source.host, one.target.host}


def _lost_ways(faults: _Faults, lost: Sequence[Way]) -> Iterator[Finding]:
    both = {(one.source, one.target) for one in lost}
    asked = {(one.source, one.target) for one in faults.asked}
    found: dict[tuple[str, str, str], list[Way]] = defaultdict(list)
    for one in lost:
        back = one.target, one.source
        if back not in both or (one.source, one.target) < back:
            direction = (
                "in either direction" if back in both
                else "in this direction" if back in asked
                else "the other direction was not asked (--full asks it)"
            )  # fmt: skip
            found[one.source.host, one.target.host, direction].append(one)
    for (source, target, direction), own in found.items():
        named = [f"device {one.source.device} to device {one.target.device}" for one in own]
        message = f"no packet comes back from {target}: {and_more(named, _MOST_NAMED)}, {direction}"
        ids = tuple(dict.fromkeys(one.source.device for one in own))
        mutual = any((one.target, one.source) in both for one in own)
        yield Finding(message, ids, hosts=(source, target) if mutual else (source,))


@check(
    "HCD602",
    "rail-unreachable",
    "stops",
    remedy="check the switch of this rail, and that its ports are in one network: "
    "`hccn_tool -i {device} -lldp -g` names the switch port of a device",
    commands=("hccn_tool -i {device} -lldp -g",),
    source="hccn_tool -ping; the devices with one id are usually connected to one switch",
    between=True,
    of_npus=True,
)
def rail_unreachable(cases: Cases) -> Iterator[Finding]:
    """Do the devices with the same id reach each other on at least some servers?

    If none of three or more pings is answered, their switch is the probable cause.
    """
    for device, own in _faults(cases, ROCE).rails.items():
        hosts = tuple(dict.fromkeys(host for one in own for host in (one.source.host, one.target.host)))
        message = (
            f"rail {device}: none of {len(own)} pings between devices {device} of the servers is answered"
        )
        yield Finding(message, (device,), hosts=hosts)


@check(
    "HCD603",
    "packets-lost",
    "may-stop",
    remedy="check optical module, cable and switch port: `hccn_tool -i {device} -stat -g`",
    commands=("hccn_tool -i {device} -stat -g",),
    source="hccn_tool -ping; RoCE retries lost packets up to HCCL_RDMA_RETRY_CNT times",
    between=True,
    of_npus=True,
)
def packets_lost(cases: Cases) -> Iterator[Finding]:
    """Do all packets between devices come back?"""
    lossy: dict[str, list[Way]] = defaultdict(list)
    for one in ways(cases):
        if 0 < one.received < one.sent:
            lossy[one.source.host].append(one)
    for host, own in lossy.items():
        named = [
            f"{one.sent - one.received} of {one.sent} from device {one.source.device} to {one.target}"
            for one in own
        ]
        ids = tuple(dict.fromkeys(one.source.device for one in own))
        yield Finding(f"packets are lost: {and_more(named, _MOST_NAMED)}", ids, hosts=(host,))


@check(
    "HCD529",
    "super-pods-differ",
    "stops",
    remedy="give each super pod its own entry in super_pod_list: make a new table on all hosts, `hccl-tools gen`",
    products=("a3",),
    source="npu-smi info -t spod-info, Super Pod ID; HCCL communicates over HCCS inside a super pod of the table",
    between=True,
    explains=("HCD604",),
    of_npus=True,
)
def super_pods_differ(cases: Cases) -> Iterator[Finding]:
    """Are the servers of each super pod of the table in one super pod?"""
    table = table_of(cases)
    known: dict[str, dict[str, str]] = defaultdict(dict)
    pods = super_pods(table) if table is not None else {}
    for server, host in zip(table.servers, hosts_of_servers(table, cases), strict=True) if table else ():
        if host in cases and cases[host].seen.super_pod and server.server_id in pods:
            known[pods[server.server_id]][host] = cases[host].seen.super_pod
    for pod, values in known.items():
        yield from differences(
            values, f"the driver shows another super pod than on the others of super pod {pod}"
        )


@check(
    "HCD604",
    "super-pod-unreachable",
    "stops",
    remedy="check that all servers of the super pod in the table are in one super pod, and its switches: "
    "`npu-smi info -t spod-info -i NPU -c CHIP` names the super pod of a device",
    products=("a3",),
    source="hccn_tool -hccs_ping; HCCL communicates over HCCS inside a super pod",
    between=True,
    of_npus=True,
)
def super_pod_unreachable(cases: Cases) -> Iterator[Finding]:
    """Does each device of a super pod reach its peer on the next server of the super pod over HCCS?

    With --full, each pings all others of the super pod, those of its own server as well. The answers are read by the numbers of packets: the tool prints that it succeeded in any case. The
    addresses are those that the devices have inside the super pod (`hccn_tool -vnic`).
    """
    faults = _faults(cases, HCCS)
    for device, own in faults.rails.items():
        hosts = tuple(dict.fromkeys(host for one in own for host in (one.source.host, one.target.host)))
        message = f"over HCCS, none of {len(own)} pings between devices {device} of the servers is answered"
        yield Finding(message, (device,), hosts=hosts)
    for found in _unreachable(faults, "device of the super pod"):
        yield found._replace(message=f"over HCCS, {found.message}")
