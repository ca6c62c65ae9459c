"""The JSON output for programs. New releases may add keys; ``schema_version`` covers all other changes.

``counts`` has the number of findings by rule; ``findings`` has the first 1,000 of each rule (``--all``: all).
For a table in a ConfigMap, ``container`` is the file, and ``container_line`` the line of a finding in it.
Characters that are not ASCII are escaped, so that every terminal and reader accepts the text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import pointer
from hccl_tools.diagnostics.placing import place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.diagnostics.placing import Placed, ReportOptions, SourceRange

SCHEMA_VERSION = 1


def render(reports: Iterable[Report], options: ReportOptions) -> Iterator[str]:
    """Yield the document piece by piece, with one finding per line."""
    encode = json.JSONEncoder().encode
    yield f'{{"schema_version": {SCHEMA_VERSION}, "files": ['
    first = True
    for report in reports:
        head = {
            "file": report.file,
            **({"container": report.origin.file} if report.origin else {}),
            "format": report.format,
            "product": report.product,
            "verdict": report.verdict,
            "verdict_by": report.verdict_by,
            "accepted_on": report.accepted_on or None,
            "left_out": list(report.left_out),
            "counts": {rule.id: number for rule, number in options.counts(report).items()},
        }
        yield f'{"" if first else ","}\n{encode(head)[:-1]}, "findings": ['
        first = False
        separator = "\n  "
        for placed in place(report, options.fold(report)[0]):
            yield separator + encode(_finding(report, placed))
            separator = ",\n  "
        yield "]}"
    yield "\n]}\n"


def _finding(report: Report, placed: Placed) -> dict[str, Any]:
    finding, where, others = placed
    return {
        "rule": finding.rule.id,
        "name": finding.rule.name,
        "severity": finding.rule.severity,
        "consequence": finding.rule.consequence,
        "message": finding.message,
        "pointer": finding.pointer,
        **_position(where),
        **({"container_line": report.origin.line_of(where.start.line)} if report.origin and where else {}),
        "hint": finding.hint,
        "hccl_code": finding.rule.hccl_code,
        "source": finding.rule.source,
        "related": [
            {"pointer": pointer(related.path), **_position(other), "message": related.message}
            for related, other in zip(finding.related, others, strict=True)
        ],
    }


def _position(where: SourceRange | None) -> dict[str, int | None]:
    """Return line and column, from 1; ``None`` if there is no document."""
    if where is None:
        return {"line": None, "column": None}
    return {"line": where.start.line, "column": where.start.column}
