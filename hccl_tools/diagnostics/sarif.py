"""SARIF 2.1.0, for code scanning services: the first 1,000 findings of each rule in a file (``--all``: all).

For rules with more findings, the run's ``properties.omitted`` has the number of omitted findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics import sarif_log
from hccl_tools.diagnostics.diagnostic import Path, pointer
from hccl_tools.diagnostics.placing import place
from hccl_tools.diagnostics.wording import reaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Report, RuleFacts
    from hccl_tools.diagnostics.placing import Placed, ReportOptions, SourceRange


def render(reports: Iterable[Report], options: ReportOptions) -> Iterator[str]:
    """Yield the log piece by piece, with one result per line; the rules follow the results."""
    omitted: list[dict[str, Any]] = []
    yield from sarif_log.log(_results(reports, options, omitted), {"omitted": omitted})


def rule(facts: RuleFacts) -> sarif_log.Rule:
    """Return a rule of ``validate`` for a log."""
    properties = {"consequence": facts.consequence, "hccl_code": facts.hccl_code}
    return sarif_log.Rule(
        facts.id, facts.name, facts.title, facts.why, facts.source, facts.severity, properties
    )


def _results(
    reports: Iterable[Report], options: ReportOptions, omitted: list[dict[str, Any]]
) -> Iterator[sarif_log.Result]:
    rules: dict[RuleFacts, sarif_log.Rule] = {}
    for report in reports:
        shown, folded = options.fold(report)
        omitted += [
            {"uri": sarif_log.uri(_file(report)), "ruleId": facts.id, "count": number}
            for facts, number in folded.items()
        ]
        for placed in place(report, shown):
            facts = placed.finding.rule
            if facts not in rules:
                rules[facts] = rule(facts)
            text = _message(report, placed)
            yield sarif_log.Result(rules[facts], facts.severity, text, _locations(report, placed))


def _locations(report: Report, placed: Placed) -> dict[str, Any]:
    finding, where, others = placed
    fields: dict[str, Any] = {"locations": [_location(report, finding.path, where)]}
    if finding.related:
        fields["relatedLocations"] = [
            {**_location(report, related.path, other), "id": number, "message": {"text": related.message}}
            for number, (related, other) in enumerate(zip(finding.related, others, strict=True))
        ]
    return fields


def _message(report: Report, placed: Placed) -> str:
    finding, where, _ = placed
    hint = f" Help: {finding.hint}." if finding.hint else ""
    at = f", at {report.file}:{where.start.line}:{where.start.column}" if report.origin and where else ""
    return f"{finding.message}{at}. {reaction(finding)}.{hint}"


def _file(report: Report) -> str:
    """Return the file of a report; a table in a ConfigMap is a part of a file."""
    return report.origin.file if report.origin else report.file


def _location(report: Report, path: Path, where: SourceRange | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": sarif_log.uri(_file(report))}}
    if where is not None and report.origin is not None:
        physical["region"] = {"startLine": report.origin.line_of(where.start.line)}
    elif where is not None and report.document is not None:
        end = report.document.position(where.stop)
        physical["region"] = {
            "startLine": where.start.line,
            "startColumn": where.start.column,
            "endLine": end.line,
            "endColumn": end.column,
        }
    location: dict[str, Any] = {"physicalLocation": physical}
    if path:
        location["logicalLocations"] = [{"name": str(path[-1]), "fullyQualifiedName": pointer(path)}]
    return location
