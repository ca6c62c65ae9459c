"""One line per finding, for grep, editors and pipes: ``table.json:8:67: error HCC203 message (/pointer)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.placing import place
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.diagnostics.placing import Placed, ReportOptions


def render(reports: Iterable[Report], options: ReportOptions) -> Iterator[str]:
    """Yield one line per finding."""
    for report in reports:
        shown, folded = options.fold(report)
        for placed in place(report, shown, whole=False):
            yield line(report, placed, ascii_only=options.ascii_only)
        for rule, number in folded.items():
            file = escaped(report.file, ascii_only=options.ascii_only)
            yield f"{file}: ... and {number:,} more {rule.id} (`--all`)\n"


def line(report: Report, placed: Placed, *, ascii_only: bool) -> str:
    """Return the line of one finding."""
    finding, where, _ = placed
    at = f":{where.start.line}:{where.start.column}" if where else ""
    pointer = f" ({finding.pointer})" if finding.pointer else ""
    text = f"{report.file}{at}: {finding.rule.severity} {finding.rule.id} {finding.message}{pointer}"
    return escaped(text, ascii_only=ascii_only) + "\n"
