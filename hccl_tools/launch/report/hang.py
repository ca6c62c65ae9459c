"""The part of the report about a job that hung: what stopped first, and what the others wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.model.hang import silence
from hccl_tools.notation.number_list import rank_list
from hccl_tools.processes.stack_dump import shortened_frame
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.hang import HungRank

#: The maximum number of ranks, or groups with one stack, that are described one by one.
_MOST_RANKS = 4
#: The maximum number of groups of ranks that do the same.
_MOST_GROUPS = 8


def lines(hung: Sequence[HungRank]) -> list[str]:
    """Return the ranks of a job that hung as text: those that stopped first with stacks, equal ones once."""
    first = [one for one in hung if one.is_first]
    verb = "stopped at the same time" if len(first) == len(hung) > 1 else "stopped first"
    alike: dict[object, list[HungRank]] = {}
    for one in first:
        alike.setdefault((one.doing, *one.stack) if one.stack else one.rank, []).append(one)
    # The few that differ are more telling than the many.
    shown = sorted(alike.values(), key=len)[:_MOST_RANKS]
    found = [line for some in shown for line in _group(some, verb)]
    described = {one.rank for some in shown for one in some}
    groups: dict[str, list[int]] = {}
    for one in hung:
        if one.rank not in described:
            groups.setdefault(one.doing, []).append(one.rank)
    found += [f"  {rank_list(ranks)}: {doing}" for doing, ranks in list(groups.items())[:_MOST_GROUPS]]
    if len(groups) > _MOST_GROUPS:
        found.append(f"  ... and {len(groups) - _MOST_GROUPS} more groups of ranks in report.json")
    return found


def _group(some: Sequence[HungRank], verb: str) -> list[str]:
    """Return a rank, or several that do the same with the same stack, as text."""
    one = some[0]
    who, its, whose = one.name, "its last line", "its stack"
    where = f" (host {one.host}, pid {one.pid})"
    if len(some) > 1:
        who, where = rank_list(each.rank for each in some), ""
        its, whose = f"the last line of {one.name}", "the stack of each"
    found = [f"  {who} {verb}{where}: {one.doing}; {silence(one)}"]
    if one.last_line:
        found.append(f"    {its}: {one.last_line}")
    return found + _stack(one, whose)


def _stack(one: HungRank, whose: str) -> list[str]:
    if not one.stack:
        return []
    lines = [f"    {whose}, innermost call first, from {names.shown(one.log)}:"]
    return lines + [f"    | {shortened_frame(line)}" for line in one.stack]
