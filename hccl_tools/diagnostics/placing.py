"""Where findings stand: line and column of many of them, from one pass over the document."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.diagnostics.diagnostic import HCCL_CONSEQUENCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Report
    from hccl_tools.document import Document, Position
    from hccl_tools.positions import Span

#: Findings of one rule in one file that are shown without ``--all``.
FOLD_BEHIND = 20


@dataclass(frozen=True, slots=True)
class View:
    """How reports are to be shown.

    Attributes:
        show_all: Do not fold many findings of one rule.
        color: Use ANSI colours.
        only_hccl: Only what HCCL itself refuses or waits for.
        ascii_only: The terminal takes nothing but ASCII: escape the rest.
    """

    show_all: bool = False
    color: bool = False
    only_hccl: bool = False
    ascii_only: bool = False

    def findings(self, report: Report) -> Sequence[Diagnostic]:
        """Return the findings of a report that count here, folded ones included."""
        if not self.only_hccl:
            return report.findings
        return [one for one in report.findings if one.rule.consequence in HCCL_CONSEQUENCES]

    def fold(self, findings: Sequence[Diagnostic]) -> tuple[list[Diagnostic], dict[str, int]]:
        """Return the findings to show and, per rule id, how many more there are."""
        if self.show_all:
            return list(findings), {}
        shown: list[Diagnostic] = []
        seen: Counter[str] = Counter()
        for one in findings:
            seen[one.rule.id] += 1
            if seen[one.rule.id] <= FOLD_BEHIND:
                shown.append(one)
        return shown, {rule: count - FOLD_BEHIND for rule, count in seen.items() if count > FOLD_BEHIND}


class Place(NamedTuple):
    """A stretch of a document: its first line and column, and its bytes from ``begin`` to ``stop``."""

    start: Position
    begin: int
    stop: int


class Placed(NamedTuple):
    """A finding with its place and those of ``finding.related``; ``None`` where there is no document."""

    finding: Diagnostic
    place: Place | None
    related: tuple[Place | None, ...]


def place(report: Report, findings: Sequence[Diagnostic]) -> list[Placed]:
    """Find the places of some findings of a report, in their order."""
    document = report.document
    if document is None:
        return [Placed(one, None, (None,) * len(one.related)) for one in findings]
    wanted = [path for one in findings for path in (one.path, *(other.path for other in one.related))]
    spans = iter(document.spans(wanted))
    placed = []
    for one in findings:
        own = _own(document, one, next(spans))
        others = [next(spans) for _ in one.related]
        placed.append(Placed(one, own, tuple(_stretch(document, other.start, other.end) for other in others)))
    return placed


def _own(document: Document, finding: Diagnostic, span: Span) -> Place:
    if finding.offset is not None:
        return _stretch(document, finding.offset, finding.offset)
    if finding.at_key and span.key_start is not None and span.key_end is not None:
        return _stretch(document, span.key_start, span.key_end)
    return _stretch(document, span.start, span.end)


def _stretch(document: Document, begin: int, stop: int) -> Place:
    return Place(document.position(begin), begin, stop)
