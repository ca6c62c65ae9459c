"""The findings of ``doctor`` for programs: JSON, JUnit, annotations, SARIF, and one line per finding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics import junit_xml, sarif_log
from hccl_tools.diagnostics import sarif as sarif_rules
from hccl_tools.diagnostics.workflow_commands import LIMIT, annotation, beyond
from hccl_tools.doctor.registry import all_checks
from hccl_tools.formats.file_kinds import LOCAL
from hccl_tools.notation.host_list import fold
from hccl_tools.notation.printable import escaped, not_a_command
from hccl_tools.rules.registry import rules_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.doctor.findings import Examination, HostFinding
    from hccl_tools.host.observation import BandwidthObservation, Observation

SCHEMA_VERSION = 1
_ANNOTATIONS = {"stops": "error", "may-stop": "warning", "slows": "warning", "note": "notice"}
_SARIF_LEVELS = {**_ANNOTATIONS, "note": "note"}


def as_json(result: Examination, *, seen: Mapping[str, Observation]) -> Iterator[str]:
    """Yield the result as JSON; ``schemas/doctor.schema.json`` describes it."""
    found = {
        "schema_version": SCHEMA_VERSION,
        "table": result.table,
        "hosts": [_host(host, one) for host, one in seen.items()],
        "findings": [_finding(one) for one in result.findings],
    }
    yield json.dumps(found, indent=1) + "\n"


def _host(host: str, seen: Observation) -> dict[str, Any]:
    return {
        "host": host,
        "product": seen.product,
        "devices": list(seen.nodes),
        "versions": dict(seen.versions),
        **({"bandwidth": [_bandwidth(one) for one in seen.bandwidths]} if seen.bandwidths else {}),
    }


def _bandwidth(one: BandwidthObservation) -> dict[str, Any]:
    return {
        "device": one.device,
        "peer_host": one.host,
        "peer_device": one.peer,
        "link": one.link,
        "gigabytes_per_second": one.gigabytes,
        "check_result": one.verdict,
    }


def _finding(one: HostFinding) -> dict[str, Any]:
    return {
        "check": one.check,
        "name": one.name,
        "consequence": one.consequence,
        "message": one.message,
        "hosts": list(one.hosts),
        "devices": list(one.devices),
        "place": str(one.place) if one.place else None,
        "remedy": one.remedy or None,
        "source": one.source,
        "not_examined": one.is_unknown,
    }


def concise(result: Examination, *, ascii_only: bool = False) -> Iterator[str]:
    """Yield one line per finding."""
    for one in result.findings:
        yield _line(one, ascii_only=ascii_only)


def _line(one: HostFinding, *, ascii_only: bool = False) -> str:
    """Return the line of one finding."""
    hosts = fold(one.hosts)
    where, end = (str(one.place), f" ({hosts})") if one.place else (hosts, "")
    text = f"{where}: {one.consequence} {one.check} {one.message}{end}"
    return escaped(text, ascii_only=ascii_only) + "\n"


def junit(result: Examination, *, strict: bool = False) -> Iterator[str]:
    """Yield JUnit's XML: a test suite per host, a test case per check that was asked there.

    A check fails if it counts for the exit code, else its findings are output.
    """
    found: dict[tuple[str, str], list[HostFinding]] = {}
    for one in result.findings:
        for host in one.hosts:
            found.setdefault((host, one.check), []).append(one)
    suites = (_suite(host, result, found, strict=strict) for host in result.hosts)
    return junit_xml.document("hccl-tools doctor", suites)


def _suite(
    host: str, result: Examination, found: dict[tuple[str, str], list[HostFinding]], *, strict: bool
) -> junit_xml.Suite:
    names = dict(result.asked.get(host, ()))
    names |= {one.check: one.name for one in result.findings if host in one.hosts}
    cases = [
        _case(f"{check} {name}", found.get((host, check), []), strict=strict)
        for check, name in sorted(names.items())
    ]
    return junit_xml.Suite(host, cases)


def _case(name: str, found: list[HostFinding], *, strict: bool) -> junit_xml.Case:
    counted = [one for one in found if one.counts(strict=strict)]
    others = [one for one in found if not one.counts(strict=strict)]
    unknown = "; ".join(one.message for one in others if one.is_unknown)
    output = [line for one in others if not one.is_unknown for line in _lines(one)]
    return junit_xml.Case(
        name,
        failure=[line for one in counted for line in _lines(one)],
        kind=counted[0].consequence if counted else "",
        skipped="" if counted else unknown,
        output=output + ([unknown] if counted and unknown else []),
    )


def _lines(one: HostFinding) -> list[str]:
    return [_line(one).rstrip("\n"), *([f"  help: {one.remedy}"] if one.remedy else [])]


def github(result: Examination) -> Iterator[str]:
    """Yield annotations for GitHub Actions, the worst first, then a line for each other finding."""
    for one in result.findings[:LIMIT]:
        yield _annotation(one)
    others = result.findings[LIMIT:]
    if others:
        yield beyond(len(others))
    for one in others:
        yield not_a_command(_line(one))


def _annotation(one: HostFinding) -> str:
    properties = {}
    if one.place:
        file, line, column = one.place
        properties = {"file": file, "line": str(line), "col": str(column)}
    lines = [f"{fold(one.hosts)}: {one.message}", one.consequence]
    lines += [f"help: {one.remedy}"] if one.remedy else []
    return annotation(_ANNOTATIONS[one.consequence], one.check, properties, lines)


def sarif(result: Examination) -> Iterator[str]:
    """Yield a log of SARIF 2.1.0 piece by piece, with one result per line.

    Hosts are logical locations; a finding with a place in the table has that place as well.
    """
    return sarif_log.log(_results(result), {})


def _results(result: Examination) -> Iterator[sarif_log.Result]:
    known = {one.facts.id: sarif_rules.rule(one.facts) for one in rules_for(LOCAL.name)}
    for check in all_checks().values():
        level, properties = _SARIF_LEVELS[check.consequence], {"consequence": check.consequence}
        known[check.id] = sarif_log.Rule(
            check.id, check.name, check.title, check.why, check.source, level, properties
        )
    for one in result.findings:
        help_text = f" Help: {one.remedy}." if one.remedy else ""
        fields = {"locations": [_location(one)], "properties": {"consequence": one.consequence}}
        text = f"{one.message}.{help_text}"
        yield sarif_log.Result(known[one.check], _SARIF_LEVELS[one.consequence], text, fields)


def _location(one: HostFinding) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"name": host, "kind": "host"} for host in one.hosts]}
    if one.place:
        file, line, column = one.place
        region = {"startLine": line, "startColumn": column}
        location["physicalLocation"] = {
            "artifactLocation": {"uri": sarif_log.uri(file)}, "region": region
        }  # fmt: skip
    return location
