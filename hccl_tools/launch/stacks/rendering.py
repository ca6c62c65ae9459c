"""Show the stacks of a job's ranks: equal ones once, with their ranks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hccl_tools.notation import screen
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import and_more
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.stacks.rank_stack import RankStack

#: The maximum number of hosts in a heading.
_MOST_HOSTS = 4


def as_json(run_dir: str, stacks: Sequence[RankStack]) -> str:
    """Return the stacks as JSON, a line per rank."""
    lines = ",\n".join(f"    {json.dumps(one._asdict())}" for one in stacks)
    return f'{{\n  "run_dir": {json.dumps(run_dir)},\n  "ranks": [\n{lines}\n  ]\n}}\n'


def as_text(stacks: Sequence[RankStack]) -> str:
    """Return the stacks as text; ranks with equal stacks are shown together, as ``dshbak -c`` does.

    Each line is escaped: text of a host cannot begin a line of its own.
    """
    groups: dict[tuple[object, ...], list[RankStack]] = {}
    for one in stacks:
        key = one.stack or (one.doing, one.problem)
        groups.setdefault(key, []).append(one)
    return "\n".join(map(_group, groups.values()))


def _group(group: list[RankStack]) -> str:
    first = group[0]
    hosts = and_more(list(dict.fromkeys(one.host for one in group)), _MOST_HOSTS)
    doing: dict[str, list[int]] = {}
    for one in group:
        doing.setdefault(one.doing, []).append(one.rank)
    what = "; ".join(
        text if len(doing) == 1 else f"{rank_list(ranks)} {text}" for text, ranks in doing.items() if text
    )
    pid = f", pid {first.pid}" if len(group) == 1 and first.pid else ""
    head = f"{rank_list(one.rank for one in group)} ({hosts}{pid}):"
    if first.ended:
        what = first.problem
    lines = [f"{head} {what}" if what else head]
    lines += [f"  {line}" for line in first.stack]
    if first.problem and not first.ended:
        lines.append(f"  no Python stack: {first.problem}" if first.pid else f"  {first.problem}")
    columns = screen.width()
    # The lines of a stack are data: they are not broken.
    return "".join(
        f"{part}\n"
        for line in lines
        for part in ([escaped(line)] if line[2:] in first.stack else screen.wrapped(escaped(line), columns))
    )
