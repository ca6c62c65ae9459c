"""The lines and columns of findings, computed in one pass over the document."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import HCCL_CONSEQUENCES
from hccl_tools.diagnostics.hint_files import with_files
from hccl_tools.notation.hint import Hint
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Report, RuleFacts
    from hccl_tools.document.document import Document, Position
    from hccl_tools.document.spans import Span


class ReportOptions(NamedTuple):
    """The options of the output formats.

    Attributes:
        limit: The number of findings to show per rule and file; ``None`` shows all that a report kept.
        only_hccl: Show only findings for which HCCL itself refuses the table or waits.
        strict: Whether warnings count as errors.
        width: The columns of the screen; ``None`` if the text is not for a screen.
        chinese: Returns the Chinese line of a rule by its id, "" if there is none; ``None``: no such lines.
    """

    limit: int | None = None
    color: bool = False
    only_hccl: bool = False
    ascii_only: bool = False
    strict: bool = False
    width: int | None = None
    chinese: Callable[[str], str] | None = None

    def shows(self, rule: RuleFacts) -> bool:
        """Return whether the findings of a rule are shown."""
        return not self.only_hccl or rule.consequence in HCCL_CONSEQUENCES

    def counts(self, report: Report) -> dict[RuleFacts, int]:
        """Return the number of findings of each rule that is shown."""
        return {rule: number for rule, number in report.counts.items() if self.shows(rule)}

    def fold(self, report: Report) -> tuple[list[Diagnostic], dict[RuleFacts, int]]:
        """Return the findings to show, and the number of hidden findings by rule."""
        counts = self.counts(report)
        shown: list[Diagnostic] = []
        seen: Counter[RuleFacts] = Counter()
        for one in report.findings:
            if one.rule in counts and (self.limit is None or seen[one.rule] < self.limit):
                seen[one.rule] += 1
                shown.append(one)
        return shown, {rule: number - seen[rule] for rule, number in counts.items() if number > seen[rule]}

    def groups(self, report: Report) -> tuple[list[list[Diagnostic]], dict[RuleFacts, int]]:
        """Return the findings to show, those that say the same together, and the others' numbers by rule.

        The limit counts the groups, whatever the number of their findings.
        """
        counts = self.counts(report)
        groups: dict[Any, list[Diagnostic]] = {}
        begun: Counter[RuleFacts] = Counter()
        for one in report.findings:
            if one.rule not in counts:
                continue
            said = (one.rule, one.alike or (one.message, one.hint), () if one.alike else one.related)
            if said not in groups:
                if self.limit is not None and begun[one.rule] >= self.limit:
                    continue
                begun[one.rule] += 1
            groups.setdefault(said, []).append(one)
        shown = Counter(one.rule for group in groups.values() for one in group)
        hidden = {rule: number - shown[rule] for rule, number in counts.items() if number > shown[rule]}
        return list(groups.values()), hidden


class SourceRange(NamedTuple):
    """A part of a document: its first line and column, and its bytes from ``begin`` to ``stop``."""

    start: Position
    begin: int
    stop: int


class Placed(NamedTuple):
    """A finding with the source ranges of itself and of ``finding.related``; ``None`` without a document."""

    finding: Diagnostic
    place: SourceRange | None
    related: tuple[SourceRange | None, ...]


def place(report: Report, findings: Sequence[Diagnostic], *, whole: bool = True) -> list[Placed]:
    """Return the given findings of a report with their source ranges, in the same order.

    The commands of their hints have the names of files.

    ``whole`` tells whether the ends of long lists and objects are needed.
    """
    document = report.document
    if not findings:
        return []
    findings = [
        one._replace(hint=with_files(one.hint, report)) if isinstance(one.hint, Hint) else one
        for one in findings
    ]
    if document is None:
        return [Placed(one, None, (None,) * len(one.related)) for one in findings]
    wanted = [path for one in findings for path in (one.path, *(other.path for other in one.related))]
    spans = iter(document.spans(wanted, whole=whole))
    placed = []
    for one in findings:
        own = _own(document, one, next(spans))
        others = [next(spans) for _ in one.related]
        placed.append(Placed(one, own, tuple(_range(document, other.start, other.end) for other in others)))
    return placed


def _own(document: Document, finding: Diagnostic, span: Span) -> SourceRange:
    if finding.offset is not None:
        return _range(document, finding.offset, finding.offset)
    if finding.at_key and span.key_start is not None and span.key_end is not None:
        return _range(document, span.key_start, span.key_end)
    return _range(document, span.start, span.end)


def _range(document: Document, begin: int, stop: int) -> SourceRange:
    return SourceRange(document.position(begin), begin, stop)
