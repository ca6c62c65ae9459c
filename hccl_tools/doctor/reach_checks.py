"""Checks of the network between hosts: who reaches whom over TCP, and the MTU."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from hccl_tools.doctor.between_checks import differences
from hccl_tools.doctor.registry import Finding, check
from hccl_tools.inspection.connections import MOST_HOSTS
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.doctor.case import Case

    Cases = Mapping[str, Case]


class _Lost(NamedTuple):
    """The connections from one host to another to which no answer came."""

    source: str
    target: str
    ports: tuple[int, ...]
    reason: str


@check(
    "HCD512",
    "host-unreachable",
    "stops",
    remedy="let the hosts of the job reach each other on all TCP ports of the job (HCCL's are 60000-60015): look at "
    "the firewall (`firewall-cmd --list-all`, `iptables -S`), the route (`ip route get ADDRESS`) and the switch",
    source="HCCL and the frameworks connect each host to the others over TCP",
    between=True,
)
def host_unreachable(cases: Cases) -> Iterator[Finding]:
    """Does each host reach the others over TCP, in each direction?

    Each host connects to the last of HCCL's ports on all others (with more than 64 others, on the next 64 of
    the table), and to the start port on the first. A refused connection is an answer: nothing has to listen.
    A host that did not answer doctor is a finding of its own.
    """
    lost = _lost(cases)
    sources: dict[str, list[_Lost]] = defaultdict(list)
    targets: dict[str, list[_Lost]] = defaultdict(list)
    for one in lost:
        sources[one.source].append(one)
        targets[one.target].append(one)
    others = min(len(cases) - 1, MOST_HOSTS)
    cut = {host for host, own in targets.items() if len(own) >= max(2, others)}
    mute = {host for host, own in sources.items() if len(own) >= max(2, cases[host].seen.tried)}
    for host in [one for one in cases if one in cut | mute]:
        yield _of_host(host, sources[host] if host in mute else [], targets[host] if host in cut else [])
    rest = {(one.source, one.target): one for one in lost if one.source not in mute and one.target not in cut}
    for (source, target), one in rest.items():
        if (target, source) not in rest:
            yield Finding(f"no answer from {target} {_how([one])}, in this direction", hosts=(source,))
        elif source < target:
            yield Finding(
                f"{source} and {target} get no answer from each other {_how([one])}", hosts=(source, target)
            )


def _lost(cases: Cases) -> list[_Lost]:
    owners: dict[str, set[str]] = defaultdict(set)
    for host, case in cases.items():
        for address in (host, *case.seen.local_addresses):
            owners[address].add(host)
    found: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for host, case in cases.items():
        for one in case.seen.unreached:
            for target in owners[one.address] if len(owners[one.address]) == 1 else ():
                if target != host:
                    found[host, target][one.port] = one.reason
    return [
        _Lost(source, target, tuple(sorted(reasons)), next(iter(reasons.values())))
        for (source, target), reasons in found.items()
    ]


def _of_host(host: str, to_others: list[_Lost], from_others: list[_Lost]) -> Finding:
    number = count(len(to_others or from_others), "other host")
    message = f"it reaches none of {number}" if to_others else f"none of {number} reaches it"
    if to_others and from_others:
        message += ", and none of them reaches it"
    return Finding(f"{message} {_how([*from_others, *to_others])}", hosts=(host,))


def _how(lost: list[_Lost]) -> str:
    ports = sorted({port for one in lost for port in one.ports})
    noun = "port" if len(ports) == 1 else "ports"
    return f"over TCP, {noun} {number_list.fold(ports)} ({lost[0].reason})"


@check(
    "HCD513",
    "mtu-differs-between-hosts",
    "slows",
    remedy="set one MTU on the interfaces of the job: `ip link set INTERFACE mtu BYTES`, and on the ports of the switch",
    source="packets larger than the MTU of the receiver are lost or split; RFC 1191",
    between=True,
)
def mtu_differs_between_hosts(cases: Cases) -> Iterator[Finding]:
    """Do the interfaces on which HCCL listens have one MTU on all hosts?"""
    known = {host: case.seen.mtu for host, case in cases.items() if case.seen.mtu is not None}
    yield from differences(
        {host: f"{mtu} bytes" for host, mtu in known.items()},
        "the MTU of the host's network interface differs",
    )
