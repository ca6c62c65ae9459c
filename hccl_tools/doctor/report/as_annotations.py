"""Annotations for GitHub Actions for the ten worst findings; the other findings are plain lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.workflow_commands import LIMIT, annotation, beyond
from hccl_tools.doctor.report import as_lines
from hccl_tools.notation.host_list import fold
from hccl_tools.notation.printable import not_a_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.findings import Examination, HostFinding

_LEVELS = {"stops": "error", "may-stop": "warning", "slows": "warning", "note": "notice"}


def render(result: Examination) -> Iterator[str]:
    """Yield the annotations, the worst first, then a line for each other finding."""
    for one in result.findings[:LIMIT]:
        yield _annotation(one)
    others = result.findings[LIMIT:]
    if others:
        yield beyond(len(others))
    for one in others:
        yield not_a_command(as_lines.line(one))


def _annotation(one: HostFinding) -> str:
    properties = {}
    if one.place:
        file, line, column = one.place
        properties = {"file": file, "line": str(line), "col": str(column)}
    lines = [f"{fold(one.hosts)}: {one.message}", one.consequence]
    lines += [f"help: {one.remedy}"] if one.remedy else []
    return annotation(_LEVELS[one.consequence], one.check, properties, lines)
