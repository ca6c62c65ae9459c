"""Annotations for GitHub Actions for the ten worst findings of a call; the other findings are plain lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics import concise
from hccl_tools.diagnostics.placing import place
from hccl_tools.diagnostics.wording import SEVEREST_FIRST, reaction
from hccl_tools.diagnostics.workflow_commands import LIMIT, annotation, beyond
from hccl_tools.notation.printable import not_a_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Report
    from hccl_tools.diagnostics.placing import Placed, ReportOptions

_RANK = {consequence: rank for rank, consequence in enumerate(SEVEREST_FIRST)}


def render(reports: Iterable[Report], options: ReportOptions) -> Iterator[str]:
    """Yield the annotations after the last report, worst first, then a line for each other finding."""
    found: list[tuple[Report, Diagnostic]] = []
    folded = 0
    for report in reports:
        shown, more = options.fold(report)
        found += [(report, finding) for finding in shown]
        folded += sum(more.values())
    found.sort(key=lambda pair: _RANK[pair[1].rule.consequence])  # stable: files and places stay in order
    for report, placed in _placed(found[:LIMIT]):
        yield _annotation(report, placed)
    others = found[LIMIT:]
    if others or folded:
        yield beyond(len(others) + folded)
    for report, placed in _placed(others):
        yield not_a_command(concise.line(report, placed, ascii_only=options.ascii_only))
    if folded:
        yield f"... and {folded:,} more (`--all`)\n"


def _placed(found: list[tuple[Report, Diagnostic]]) -> Iterator[tuple[Report, Placed]]:
    by_report: dict[int, list[Diagnostic]] = {}
    reports = {id(report): report for report, _ in found}
    for report, finding in found:
        by_report.setdefault(id(report), []).append(finding)
    places = {key: iter(place(reports[key], findings)) for key, findings in by_report.items()}
    for report, _ in found:
        yield report, next(places[id(report)])


def _annotation(report: Report, placed: Placed) -> str:
    finding, where, _ = placed
    lines = [finding.message + (f" ({finding.pointer})" if finding.pointer else "")]
    properties = {"file": report.file}
    if report.origin is not None:
        properties["file"] = report.origin.file
        if where:
            properties["line"] = str(report.origin.line_of(where.start.line))
            lines.append(f"at {report.file}:{where.start.line}:{where.start.column}")
    elif where and report.document is not None:
        properties["line"] = str(where.start.line)
        properties["col"] = str(where.start.column)
        end = report.document.position(where.stop)
        if end.line == where.start.line and end.column > where.start.column:
            properties["endColumn"] = str(end.column)
    lines.append(f"{reaction(finding)}")
    if finding.hint:
        lines.append(f"help: {finding.hint}")
    return annotation(finding.rule.severity, finding.rule.id, properties, lines)
