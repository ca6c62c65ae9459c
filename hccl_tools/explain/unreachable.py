"""Addresses that ranks could not connect to: by which ranks, and whether other hosts can reach them."""

from __future__ import annotations

import os
import re
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.explain.candidates import MOST_RANKS
from hccl_tools.explain.cause import Cause
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import and_more

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.explain.cause import Case
    from hccl_tools.explain.events import Seen

#: Messages of a rank that did not reach the address in them.
_NOT_REACHED = ("HCM231", "HCM606", "HCM655", "HCM916", "HCM662", "HCM664", "HCM665", "HCM666", "HCM667")
#: A connection that had been there.
_LOST = {"HCM662", "HCM664"}
#: Exceptions that may have the address only in their text.
_EXCEPTIONS = ("HCM810",)
_IN_TEXTS = (*_EXCEPTIONS, "HCM664")
_IN_TEXT = re.compile(r"(?:connect|refused|reach).{0,80}?(\d{1,3}(?:\.\d{1,3}){3})")
#: HCCL names the address and the interface of the root in these messages.
_ROOT = ("HCM320", "HCM321", "HCM323")
#: A process says that it chose docker0, virbr0 or an address of its own host.
_CHOSEN = ("HCM333", "HCM344", "HCM345", "HCM346")
#: The waits for connections, a store or a cluster.
_WAITS = {"connect", "store", "cluster"}
_LOCAL, _FOREIGN = "HCM835", "HCM836"
#: Interfaces of one host: of containers, of virtual machines, and the loopback.
_LOCAL_INTERFACE = re.compile(
    r"(?:docker|virbr|br-|veth|cni|cali|flannel|lxcbr|lxdbr|podman|kube-ipvs|vnet|dummy|tun|tap)[\w.-]*|lo\d*"
)
#: Addresses that are compared with the waits of all ranks.
_MOST_ADDRESSES = 64
#: Ranks of one host at most.
_MOST_ON_A_HOST = 16
#: A folder of a rank, not of a host.
_OF_RANK = re.compile(r"(?:rank|worker|attempt|\d{5,})")
#: Networks whose addresses mean another thing on every host, and what they are.
_LOCAL_NETWORKS = (
    (IPv4Network("127.0.0.0/8"), "a loopback address, which each host has for itself"),
    (IPv4Network("169.254.0.0/16"), "a link-local address, which no router passes on"),
    (IPv4Network("172.17.0.0/16"), "in the network that docker gives to its bridge on every host by default"),
    (
        IPv4Network("192.168.122.0/24"),
        "in the network that libvirt gives to its bridge on every host by default",
    ),
)


def cause(case: Case, timeouts: Sequence[Seen]) -> Cause | None:
    """Return the ranks that did not reach an address at which others waited for them.

    Args:
        timeouts: The waits of all ranks.
    """
    for address, attempts in islice(_tried(case.events).items(), _MOST_ADDRESSES):
        failed = {one.actor for one in attempts}
        others = [one for one in timeouts if one.actor not in failed]
        if not others or not _waited_then(case, attempts, others):
            continue
        first = attempts[0]
        places = tuple(dict.fromkeys(one.place for one in attempts if one.place.rank is not None))
        if not places:
            continue
        number = f"{len(attempts)} lines say" if len(attempts) > 1 else "a line says"
        tried_it = f"{number} that {'it' if len(places) == 1 else 'they'} did not reach {address}"
        reason = f"{tried_it}; {_waiting(others)} no such failure, and waited"
        return Cause(first.event.message, "compared", places, first, reason, places, others[0])
    return None


def _waiting(others: Iterable[Seen]) -> str:
    waiting = {one.place.rank for one in others if one.place.rank is not None}
    listed = number_list.fold(sorted(waiting))
    return (
        f"rank {listed} reports"
        if len(waiting) == 1
        else f"ranks {listed} report"
        if waiting
        else "others report"
    )


def local_addresses(case: Case) -> list[Cause]:
    """Return the cause if ranks did not reach an address that only its own host knows."""
    tried = _tried(case.events, _EXCEPTIONS)
    if not _has_several_hosts(case):
        return []
    chosen = _chosen(case)
    for address, attempts in tried.items():
        if why := _why_local(address, chosen):
            return [_caused(_LOCAL, attempts, f"{address} is {why}", chosen.get(address))]
    own = next((one for one in case.cluster.seen if one.event.message.id in _CHOSEN), None)
    waits = [one for one in case.events if one.event.message.limit in _WAITS]
    if own is None or not waits or len(waits) < len(case.events):
        return []
    what = own.event.fields.get("value", "") or "one"
    reason = (
        f"the line says that {what} was chosen, which other hosts do not reach, and ranks did not connect"
    )
    places = (own.place,) if own.place != Place() else ()
    return [Cause(messages()[_LOCAL], "compared", places, own, reason, (), waits[0])]


def foreign_addresses(case: Case) -> list[Cause]:
    """Return the cause if all ranks look for an address that none of the hosts with logs has."""
    hosts = _hosts(case)
    size = min(case.cluster.size, MOST_RANKS)
    all_ranks = set(range(size)) if size else case.cluster.logged
    if len(hosts) < 2 or not all_ranks:
        return []
    for address, attempts in _tried(case.events).items():
        if address in hosts or _network(address) is None or len(attempts) < len(all_ranks):
            continue
        if not {one.place.rank for one in attempts} >= all_ranks:
            continue
        reason = f"no host with logs is known by {address}, but by {and_more(sorted(hosts), 8)}"
        return [_caused(_FOREIGN, attempts, reason, None)]
    return []


def _caused(message: str, attempts: Sequence[Seen], reason: str, beside: Seen | None) -> Cause:
    places = tuple(dict.fromkeys(one.place for one in attempts if one.place != Place()))
    return Cause(messages()[message], "compared", places, attempts[0], reason, (), beside)


def _tried(events: Iterable[Seen], more: Sequence[str] = ()) -> Mapping[str, list[Seen]]:
    """Return the lines about addresses that were not reached, by address."""
    found: dict[str, list[Seen]] = {}
    for one in events:
        if one.event.message.id in (*_NOT_REACHED, *more) and (address := _address(one)):
            found.setdefault(address, []).append(one)
    return found


def _address(one: Seen) -> str:
    """Return the address in a line, without its port; "" if it has none."""
    text = one.event.fields.get("peer_address", "")
    if not text and one.event.message.id in _IN_TEXTS:
        found = _IN_TEXT.search(one.event.text)
        text = found[1] if found is not None else ""
    text = text.removeprefix("::ffff:")
    return text.partition(":")[0] if text.count(":") == 1 else text


def _waited_then(case: Case, attempts: Sequence[Seen], others: Sequence[Seen]) -> bool:
    """Whether others waited when ranks did not reach an address: these did not come too late."""
    began = min((one.since for one in attempts if one.since is not None), default=None)
    ends = [one.until for one in others if one.until is not None]
    if began is not None and ends and {one.event.message.id for one in attempts} <= _LOST:
        return began <= max(ends)  # Those that had given up closed their connections.
    if began is None or not ends or any(one.event.is_yearless for one in attempts):
        return True
    return began - case.cluster.waits["connect"] <= max(ends)


def _network(address: str) -> IPv4Address | None:
    try:
        return IPv4Address(address)
    except AddressValueError:
        return None


def _why_local(address: str, chosen: Mapping[str, Seen]) -> str:
    """Return what makes an address one of its own host only, "" if nothing does."""
    one = chosen.get(address)
    interface = _interface(one, address) if one is not None else ""
    if interface and _LOCAL_INTERFACE.fullmatch(interface):
        return f"the address of {interface}, an interface of one host"
    number = _network(address)
    return next((what for network, what in _LOCAL_NETWORKS if number is not None and number in network), "")


def _interface(one: Seen, address: str) -> str:
    text = one.event.fields.get("identifier", "") or one.event.text
    found = re.search(re.escape(address) + r"%([\w.-]{1,15}?)(?=_\d|\]|,|$)", text)
    return found[1] if found else ""


def _chosen(case: Case) -> Mapping[str, Seen]:
    """Return the lines in which HCCL says which address the root has chosen."""
    found: dict[str, Seen] = {}
    for one in case.cluster.seen:
        if one.event.message.id in _ROOT:
            fields = one.event.fields
            for address in {
                fields.get("peer_address", ""),
                fields.get("identifier", "").partition("%")[0],
            } - {""}:
                found.setdefault(address, one)
    return found


def _has_several_hosts(case: Case) -> bool:
    """Whether the job has several hosts: on one host all ranks reach its own addresses."""
    if case.cluster.size > _MOST_ON_A_HOST:
        return True
    logs = [one for one in case.cluster.sources if one.is_of_process]
    hosts = {place.host for place in case.cluster.places.by_rank.values()}
    hosts |= {one.place.host for one in case.cluster.seen} | {one.host for one in logs}
    folders = {os.path.basename(one.group) for one in logs}
    return len(hosts - {""}) > 1 or len({one for one in folders if not _OF_RANK.search(one)}) > 1


def _hosts(case: Case) -> set[str]:
    """Return the addresses of the hosts of the ranks, if all of them are known as addresses."""
    of_rank = {one.place.rank: one.place.host for one in case.cluster.seen if one.place.host}
    logged = case.cluster.logged
    hosts = {case.cluster.places.find(Place(rank)).host or of_rank.get(rank, "") for rank in logged}
    return hosts if hosts and all(_network(host) is not None for host in hosts) else set()
