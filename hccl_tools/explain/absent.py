"""Ranks that report nothing although others wait: silent, ended, or their logs were not collected."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.explain.candidates import ATTEMPTS, MOST_RANKS
from hccl_tools.explain.locations import Place
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.explain.cause import Case

#: The usual numbers of devices of a host.
_PER_HOST = (8, 16)


class Absent(NamedTuple):
    """The ranks that report nothing.

    Attributes:
        silent: Their log is there, or the logs of their host are: they have written nothing.
        uncollected: No log of them is there, and none of their host as far as that is known.
        ended: They were ended from outside, which is why they report nothing.
    """

    silent: set[int]
    uncollected: set[int]
    ended: set[int]


def ranks(case: Case, waiting: set[int]) -> Absent:
    """Return the ranks that report nothing; none if that says nothing: too few ranks report that they waited.

    Args:
        waiting: The ranks that report that they waited.
    """
    if not waiting:
        return Absent(set(), set(), set())
    reporting = {one.place.rank for one in case.events if one.place.rank is not None}
    # A rank that has only warned that it waits was ended before it gave up.
    reporting |= {
        one.place.rank
        for one in case.cluster.seen
        if one.event.message.kind == "timeout" and one.event.message.id not in ATTEMPTS
        if one.place.rank is not None
    }
    logged = case.cluster.logged
    expected = set(range(min(case.cluster.size, MOST_RANKS))) - case.not_started
    quiet = expected - reporting
    ended = quiet & case.ended
    quiet -= ended
    absent = quiet - logged
    if logged >= expected or len(waiting) > 1:
        silent = quiet & logged or _never_wrote(case, absent)
        return Absent(silent, absent - silent, ended)
    named = {one.peer.rank for one in case.events if one.peer is not None and one.peer.rank is not None}
    return Absent(quiet & logged & named, absent, ended)


def _never_wrote(case: Case, absent: set[int]) -> set[int]:
    """Return the ranks without a log whose host has logs of other ranks, if most ranks have a log."""
    size = case.cluster.size
    if 2 * len(absent) >= size or is_whole_host(absent, size):
        return set()
    find = case.cluster.places.find
    with_logs = {find(Place(rank)).host for rank in case.cluster.logged}
    hosts = _hosts(case)
    per_host = _per_host(hosts.values(), size)
    of_block = {rank // per_host: host for rank, host in hosts.items()}
    # Without any host, a rank that is missing between others is silent, too.
    return {
        rank
        for rank in absent
        if not hosts or (hosts.get(rank) or of_block.get(rank // per_host)) in with_logs
    }


def _hosts(case: Case) -> dict[int, str]:
    return {rank: place.host for rank, place in case.cluster.places.by_rank.items() if place.host}


def _per_host(hosts: Iterable[str], size: int) -> int:
    """Return the number of ranks of a host: of the fullest one, or the next one that divides all ranks."""
    fullest = max(Counter(hosts).values(), default=size)
    return next((number for number in range(fullest, size) if size % number == 0), max(size, 1))


def is_whole_host(ranks: Iterable[int], size: int) -> bool:
    """Return whether ranks are those of a host with 8 or 16 devices, if ranks have the order of hosts."""
    listed = sorted(ranks)
    count = len(listed)
    if count not in _PER_HOST or size % count or size == count or listed[0] % count:
        return False
    return listed == list(range(listed[0], listed[0] + count))


def like_a_host(case: Case, places: Sequence[Place]) -> str:
    """Return that ranks are as those of a whole host, if no line says on which host they are."""
    unknown = [place.rank for place in places if place.rank is not None and not place.host]
    if len(unknown) < len(places) or not is_whole_host(unknown, case.cluster.size):
        return ""
    return f"; with {len(unknown)} devices per host, they are one whole host"
