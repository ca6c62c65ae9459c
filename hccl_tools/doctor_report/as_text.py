"""The findings as text for a terminal."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from hccl_tools.notation.host_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.findings import Examination, HostFinding

#: Findings of one check that are shown in full.
_SHOWN = 3
#: A longer list of hosts has a line of its own.
_LONGEST_HOSTS = 60
_COLORS = {"stops": "31", "may-stop": "33", "slows": "33", "note": "36"}


def render(result: Examination, *, color: bool = False, ascii_only: bool = False) -> Iterator[str]:
    """Yield the findings, those of one check together, and a last line with the verdict."""
    for _key, group in groupby(result.findings, key=lambda one: (one.consequence, one.check)):
        found = list(group)
        for number, one in enumerate(found[:_SHOWN], 1):
            is_last = number == min(len(found), _SHOWN)
            yield from _lines(
                one, color=color, ascii_only=ascii_only, remedy=is_last, many=len(result.hosts) > 1
            )
        if rest := found[_SHOWN:]:
            hosts = list(dict.fromkeys(host for one in rest for host in one.hosts))
            where = escaped(fold(hosts), ascii_only=ascii_only)
            yield f"  = and {count(len(rest), 'finding')} more on {where} (-f json has all)\n"
    yield f"{escaped(_verdict(result), ascii_only=ascii_only)}\n"


def _lines(one: HostFinding, *, color: bool, ascii_only: bool, remedy: bool, many: bool) -> Iterator[str]:
    head = f"{one.consequence}[{one.check}]"
    shown = f"\033[1;{_COLORS[one.consequence]}m{head}\033[0m" if color else head
    hosts = fold(one.hosts) if many or not one.place else ""
    is_short = len(hosts) <= _LONGEST_HOSTS
    prefix = f"{hosts if is_short else count(len(one.hosts), 'host')}: " if hosts else ""
    yield f"{shown}: {escaped(prefix + one.message, ascii_only=ascii_only)}\n"
    where = [*([] if is_short else [hosts]), *([one.place] if one.place else [])]
    if where:
        yield f" --> {escaped(', '.join(where), ascii_only=ascii_only)}\n"
    if remedy and one.remedy:
        yield f"  = help: {escaped(one.remedy, ascii_only=ascii_only)}\n"


def _verdict(result: Examination) -> str:
    numbers = {name: sum(one.consequence == name for one in result.findings) for name in _COLORS}
    where = result.hosts[0] if len(result.hosts) == 1 else count(len(result.hosts), "host")
    found = [
        f"{count(numbers['stops'], 'fault')} would stop the job"
        if numbers["stops"]
        else "nothing would stop the job",
        *([f"{numbers['may-stop']} may stop it"] if numbers["may-stop"] else []),
        *([f"{numbers['slows']} would slow it"] if numbers["slows"] else []),
        *([count(numbers["note"], "note")] if numbers["note"] else []),
    ]
    return f"{where}: {', '.join(found)}"
