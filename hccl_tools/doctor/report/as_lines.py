"""One line per finding: ``node[1-2]: stops HCD204 message``, with a place in the table that first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.host_list import fold
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.findings import Examination, HostFinding


def render(result: Examination, *, ascii_only: bool = False) -> Iterator[str]:
    """Yield one line per finding."""
    for one in result.findings:
        yield line(one, ascii_only=ascii_only)


def line(one: HostFinding, *, ascii_only: bool = False) -> str:
    """Return the line of one finding."""
    hosts = fold(one.hosts)
    where, end = (str(one.place), f" ({hosts})") if one.place else (hosts, "")
    text = f"{where}: {one.consequence} {one.check} {one.message}{end}"
    return escaped(text, ascii_only=ascii_only) + "\n"
