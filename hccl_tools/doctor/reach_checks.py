"""Checks of the network between hosts: who reaches whom over TCP, and the MTU."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from hccl_tools.doctor.cross_host_checks import differences
from hccl_tools.doctor.registry import Finding, check
from hccl_tools.host.connections import LEAST_REPEATED, MOST_HOSTS
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.host.observation import SlowHost

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
            how = _how([one, rest[target, source]])
            yield Finding(
                f"{source} and {target} get no answer from each other {how}", hosts=(source, target)
            )


def _owners(cases: Cases) -> Mapping[str, set[str]]:
    """Return the hosts with each address; a host has the name under which it was asked."""
    owners: dict[str, set[str]] = defaultdict(set)
    for host, case in cases.items():
        for address in (host, *case.seen.local_addresses):
            owners[address].add(host)
    return owners


def _lost(cases: Cases) -> list[_Lost]:
    owners = _owners(cases)
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
    reasons = {one.reason: one.source for one in lost}
    told = "; ".join(f"{source}: {reason}" for reason, source in reasons.items())
    return f"over TCP, {noun} {number_list.fold(ports)} ({told if len(reasons) > 1 else lost[0].reason})"


@check(
    "HCD524",
    "answers-late",
    "may-stop",
    remedy="look at the host's cable, its switch port and its interface: `ip -s link`, `ethtool -S INTERFACE`",
    source="Linux sends the first packet of a connection again after a second",
    between=True,
)
def answers_late(cases: Cases) -> Iterator[Finding]:
    """Do the packets between hosts arrive at the first try, and within 0.1 s?

    Each host connects to each other host three times, and five times more if an answer took 0.9 s. Two such
    answers mean that packets are lost. A host that all pairs have in common is named alone. Answers that are only
    late, all of them by more than 0.1 s, slow a job.
    """
    owners = _owners(cases)
    found: dict[bool, dict[tuple[str, str], SlowHost]] = {True: {}, False: {}}
    for host, case in cases.items():
        for one in case.seen.slow:
            for target in owners[one.address] - {host} if len(owners[one.address]) == 1 else ():
                found[one.repeated >= LEAST_REPEATED][host, target] = one
    for are_lost, pairs in found.items():
        common = _in_common(pairs, len(cases) - 1)
        for host, others in common.items():
            number = count(len(others), "other host")
            yield _late(f"it and {number}", [pairs[one] for one in others.values()], are_lost, host)
        for (source, target), one in pairs.items():
            is_told = source in common or target in common or (target < source and (target, source) in pairs)
            if not is_told:
                yield _late(f"{source} and {target}", [one], are_lost, source, target)


def _in_common(
    pairs: Mapping[tuple[str, str], SlowHost], others: int
) -> dict[str, dict[str, tuple[str, str]]]:
    """Return the hosts whose packets to or from all others are late, with the others and a pair for each."""
    touching: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for pair in pairs:
        touching[pair[0]][pair[1]] = pair
        touching[pair[1]][pair[0]] = pair
    return {host: own for host, own in touching.items() if len(own) >= max(2, min(others, MOST_HOSTS))}


def _late(between: str, own: list[SlowHost], are_lost: bool, *hosts: str) -> Finding:
    if are_lost:
        repeated, tries = sum(one.repeated for one in own), sum(one.tries for one in own)
        message = f"packets between {between} are lost: {repeated} of {tries} connections needed a second try"
        return Finding(message, hosts=hosts)
    quickest = min(one.seconds for one in own)
    return Finding(
        f"packets between {between} take {1000 * quickest:.0f} ms there and back",
        hosts=hosts,
        consequence="slows",
    )


@check(
    "HCD525",
    "large-packets-lost",
    "may-stop",
    remedy="set the MTU of the switch ports and of all interfaces on the way to at least that of the hosts: "
    "`ping -M do -s BYTES ADDRESS`",
    source="packets above the MTU of a switch are dropped without a message; RFC 4821",
    between=True,
)
def large_packets_lost(cases: Cases) -> Iterator[Finding]:
    """Do packets as large as the MTU of a host arrive at the others?

    Each host sends a small packet and packets of its MTU to a port of the others on which nothing listens. What
    arrives is refused. Hosts whose MTU differs are a finding of their own (HCD513). A host that does not answer
    doctor, as its answer is too large, is named with its address.
    """
    owners = _owners(cases)
    for host, case in cases.items():
        for address in case.seen.cut:
            for target in owners.get(address, {address}) - {host}:
                if target not in cases or cases[target].seen.mtu == case.seen.mtu:
                    message = f"packets of {case.seen.mtu} bytes to {target} are lost, small ones arrive"
                    yield Finding(message, hosts=(host,))


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
