"""SARIF 2.1.0: hosts are logical locations; a finding with a place in the table has that place as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics import sarif, sarif_log
from hccl_tools.doctor.registry import all_checks
from hccl_tools.formats.file_kinds import LOCAL
from hccl_tools.rules.registry import rules_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.findings import Examination, HostFinding

_LEVELS = {"stops": "error", "may-stop": "warning", "slows": "warning", "note": "note"}


def render(result: Examination) -> Iterator[str]:
    """Yield the log piece by piece, with one result per line."""
    return sarif_log.log(_results(result), {})


def _results(result: Examination) -> Iterator[sarif_log.Result]:
    known = {one.facts.id: sarif.rule(one.facts) for one in rules_for(LOCAL.name)}
    for check in all_checks().values():
        level, properties = _LEVELS[check.consequence], {"consequence": check.consequence}
        known[check.id] = sarif_log.Rule(
            check.id, check.name, check.title, check.why, check.source, level, properties
        )
    for one in result.findings:
        help_text = f" Help: {one.remedy}." if one.remedy else ""
        fields = {"locations": [_location(one)], "properties": {"consequence": one.consequence}}
        text = f"{one.message}.{help_text}"
        yield sarif_log.Result(known[one.check], _LEVELS[one.consequence], text, fields)


def _location(one: HostFinding) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"name": host, "kind": "host"} for host in one.hosts]}
    if one.place:
        file, line, column = one.place
        region = {"startLine": line, "startColumn": column}
        location["physicalLocation"] = {
            "artifactLocation": {"uri": sarif_log.uri(file)}, "region": region
        }  # fmt: skip
    return location
