"""SARIF 2.1.0, for code scanning services: the first 1,000 findings of each rule in a file (``--all``: all).

For rules with more findings, the run's ``properties.omitted`` has the number of omitted findings.

Source: OASIS "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hccl_tools.diagnostics.diagnostic import Path, pointer
from hccl_tools.diagnostics.placing import place
from hccl_tools.diagnostics.wording import reaction
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Report, RuleFacts
    from hccl_tools.diagnostics.placing import Placed, ReportOptions, SourceRange

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(reports: Iterable[Report], options: ReportOptions) -> Iterator[str]:
    """Yield the log piece by piece, with one result per line; the rules follow the results."""
    encode = json.JSONEncoder().encode
    rules: dict[str, tuple[int, RuleFacts]] = {}
    head = {"$schema": _SCHEMA, "version": "2.1.0"}
    yield f'{encode(head)[:-1]}, "runs": [{{"columnKind": "unicodeCodePoints", "results": ['
    separator = "\n  "
    omitted: list[dict[str, Any]] = []
    for report in reports:
        shown, folded = options.fold(report)
        omitted += [
            {"uri": _uri(report.file), "ruleId": rule.id, "count": number} for rule, number in folded.items()
        ]
        for placed in place(report, shown):
            facts = placed.finding.rule
            index, _ = rules.setdefault(facts.id, (len(rules), facts))
            yield separator + encode(_result(report, placed, index))
            separator = ",\n  "
    tool = {"driver": _driver([facts for _, facts in rules.values()])}
    properties = f', "properties": {encode({"omitted": omitted})}' if omitted else ""
    yield f'\n], "tool": {encode(tool)}{properties}}}]}}\n'


def _driver(rules: list[RuleFacts]) -> dict[str, Any]:
    return {
        "name": "hccl-tools",
        "version": __version__,
        "rules": [
            {
                "id": facts.id,
                "name": facts.name,
                "shortDescription": {"text": facts.title or facts.name.replace("-", " ")},
                **({"fullDescription": {"text": facts.why}} if facts.why else {}),
                # No helpUri: the pages of the rules have no public address.
                "help": {"text": f"`hccl-tools rules {facts.id}` explains this rule. Source: {facts.source}"},
                "defaultConfiguration": {"level": facts.severity},
                "properties": {"consequence": facts.consequence, "hccl_code": facts.hccl_code},
            }
            for facts in rules
        ],
    }


def _result(report: Report, placed: Placed, rule_index: int) -> dict[str, Any]:
    finding, where, others = placed
    result: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": rule_index,
        "level": finding.rule.severity,
        "message": {"text": _message(finding)},
        "locations": [_location(report, finding.path, where)],
    }
    if finding.related:
        result["relatedLocations"] = [
            {**_location(report, related.path, other), "id": number, "message": {"text": related.message}}
            for number, (related, other) in enumerate(zip(finding.related, others, strict=True))
        ]
    return result


def _message(finding: Diagnostic) -> str:
    hint = f" Help: {finding.hint}." if finding.hint else ""
    return f"{finding.message}. HCCL: {reaction(finding)}.{hint}"


def _location(report: Report, path: Path, where: SourceRange | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(report.file)}}
    if where is not None and report.document is not None:
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


def _uri(file: str) -> str:
    """Return a file name as a relative reference, or as a ``file:`` URI if it is absolute."""
    try:
        quoted = quote(os.fsencode(file))
    except UnicodeEncodeError:  # not a file name on this machine
        quoted = quote(file.encode(errors="replace"))
    return f"file://{quoted}" if file.startswith("/") else quoted
