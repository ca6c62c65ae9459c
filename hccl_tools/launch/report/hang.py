"""The part of the report about a job that hung: what stopped first, and what the others wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.model.hang import shortened_frame, silence
from hccl_tools.launch.runs import names
from hccl_tools.notation.number_list import rank_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.hang import HungRank

#: The maximum number of ranks that are described one by one.
_MOST_RANKS = 4
#: The maximum number of groups of ranks that do the same.
_MOST_GROUPS = 8


def lines(hung: Sequence[HungRank]) -> list[str]:
    """Return the ranks of a job that hung as text, those that stopped first one by one."""
    first = [one for one in hung if one.is_first]
    verb = "stopped at the same time" if len(first) == len(hung) > 1 else "stopped first"
    found = [line for one in first[:_MOST_RANKS] for line in _one(one, verb)]
    rest = [one for one in hung if one not in first[:_MOST_RANKS]]
    groups: dict[str, list[int]] = {}
    for one in rest:
        groups.setdefault(one.doing, []).append(one.rank)
    found += [f"  {rank_list(ranks)}: {doing}" for doing, ranks in list(groups.items())[:_MOST_GROUPS]]
    if len(groups) > _MOST_GROUPS:
        found.append(f"  ... and {len(groups) - _MOST_GROUPS} more groups of ranks in report.json")
    return found


def _one(one: HungRank, verb: str) -> list[str]:
    found = [f"  {one.name} {verb} (host {one.host}, pid {one.pid}): {one.doing}; {silence(one)}"]
    if one.last_line:
        found.append(f"    its last line: {one.last_line}")
    if one.stack:
        found.append(f"    its stack, innermost call first, from {names.shown(one.log)}:")
        found += [f"    | {shortened_frame(line)}" for line in one.stack]
    return found
