"""JUnit's XML: a test suite per file, a test case per rule that was applied, so that CI shows passes too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics import concise, junit_xml
from hccl_tools.diagnostics.placing import place
from hccl_tools.diagnostics.wording import conclusion, reaction
from hccl_tools.notation.phrases import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Report, RuleFacts
    from hccl_tools.diagnostics.placing import Placed, ReportOptions


def render(reports: Iterable[Report], options: ReportOptions) -> Iterator[str]:
    """Yield the document; a rule fails if it counts for the exit code, else its findings are output."""
    return junit_xml.document("hccl-tools validate", (_suite(report, options) for report in reports))


def _suite(report: Report, options: ReportOptions) -> junit_xml.Suite:
    shown, folded = options.fold(report)
    by_rule: dict[str, list[Placed]] = {}
    for placed in place(report, shown, whole=False):
        by_rule.setdefault(placed.finding.rule.id, []).append(placed)
    counts = options.counts(report)
    rules = {facts.id: facts for facts in (*filter(options.shows, report.asked()), *counts)}
    cases = [
        _case(report, facts, by_rule.get(facts.id, []), folded.get(facts, 0), strict=options.strict)
        for _, facts in sorted(rules.items())
    ]
    total = sum(counts.values())
    return junit_xml.Suite(report.file, cases, conclusion(report, count(total, "finding") if total else ""))


def _case(
    report: Report, facts: RuleFacts, found: list[Placed], more: int, *, strict: bool
) -> junit_xml.Case:
    lines = []
    for placed in found:
        lines.append(concise.line(report, placed, ascii_only=False).rstrip("\n"))
        lines += [f"  {reaction(placed.finding)}"]
        lines += [f"  help: {placed.finding.hint}"] if placed.finding.hint else []
    lines += [f"... and {more:,} more (`--all`)"] if more else []
    name = f"{facts.id} {facts.name}"
    if strict or facts.severity == "error":
        return junit_xml.Case(name, lines, facts.consequence)
    return junit_xml.Case(name, output=lines)
