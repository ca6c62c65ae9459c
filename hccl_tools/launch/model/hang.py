"""What is known of the ranks of a job that hangs; report.json has the same fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import time_span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.runs.job_report import HungRank

#: Ranks of several hosts stopped at the same time if their silence differs by less than this factor: a host
#: looks at its ranks eight times in the time after which a job counts as hanging.
_SAME_TIME = 0.75
#: How the calls end in which a rank waits for another one.
_ON_SOCKET = " on a socket"
#: The maximum number of ranks that a host reports to others.
MOST_RANKS = 16


def on_all_hosts(reported: Sequence[HungRank], others: Sequence[HungRank]) -> list[HungRank]:
    """Return the ranks of all hosts, those that stopped first before the others.

    ``reported`` are the ranks of the host that has ended the job, ``others`` those of all hosts.
    """
    known = {one.rank for one in reported}
    hung = [*reported, *(one for one in others if one.rank not in known)]
    first = [one for one in hung if one.is_first]
    if culprits := [one for one in first if one.is_culprit]:
        first = culprits
    elif (odd := odd_ones_first(hung)) != hung:
        return odd
    else:
        longest = max((_silent_seconds(one) for one in first), default=0.0)
        first = [one for one in first if _silent_seconds(one) >= longest * _SAME_TIME]
    numbers = {one.rank for one in first}
    hung = [one._replace(is_first=one.rank in numbers) for one in hung]
    return sorted(hung, key=lambda one: not one.is_first)


def odd_ones_first(hung: Sequence[HungRank]) -> list[HungRank]:
    """Return the ranks of a job with the few first that differ from all others, which wait for them.

    They differ by their Python stack, if the ranks have two; or all others wait on a socket. Nothing changes
    if neither tells, or if a rank's state shows the cause.
    """
    if any(one.is_first and one.is_culprit for one in hung):
        return list(hung)
    by_stack, by_call = dict[object, list[int]](), dict[object, list[int]]()
    for one in hung:
        by_stack.setdefault(tuple(one.stack), []).append(one.rank)
        by_call.setdefault(one.doing.endswith(_ON_SOCKET), []).append(one.rank)
    few = [] if () in by_stack else _few(by_stack)
    if not few and len(by_call.get(False, hung)) < len(by_call.get(True, ())):
        few = by_call[False]
    if not few:
        return list(hung)
    return sorted((one._replace(is_first=one.rank in few) for one in hung), key=lambda one: not one.is_first)


def _few(groups: Mapping[object, list[int]]) -> list[int]:
    """Return the smaller of two groups, [] if there are more or both are equal."""
    few, many = sorted(groups.values(), key=len)[:2] if len(groups) == 2 else ([], [])
    return few if len(few) < len(many) else []


def _silent_seconds(one: HungRank) -> float:
    return max(one.idle, one.idle_heartbeat or 0.0)


def headline(hung: Sequence[HungRank]) -> str:
    """Return the ranks that stopped first, and what they do, as a sentence."""
    first = [one for one in hung if one.is_first]
    if not first:
        return "no rank has written or computed anything"
    doing = {one.doing for one in first}
    text = f"{rank_list(one.rank for one in first)} stopped first"
    if len(first) == len(hung) > 1:
        text = f"{rank_list(one.rank for one in first)} stopped at the same time"
    return f"{text}: {doing.pop()}" if len(doing) == 1 else text


def silence(one: HungRank) -> str:
    """Return for how long a rank has done nothing: ``no heartbeat for 1m 2s``."""
    if one.idle_heartbeat is not None and one.idle_heartbeat > one.idle:
        return f"no heartbeat for {time_span(one.idle_heartbeat, 2)}"
    what = "no line that matches --progress" if one.by_progress else "no output and no CPU time"
    return f"{what} for {time_span(one.idle, 2)}"
