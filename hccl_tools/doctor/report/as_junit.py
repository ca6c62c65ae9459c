"""JUnit's XML: a test suite per host, a test case per check that was asked there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics import junit_xml
from hccl_tools.doctor.report import as_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.findings import Examination, HostFinding


def render(result: Examination, *, strict: bool = False) -> Iterator[str]:
    """Yield the document; a check fails if it counts for the exit code, else its findings are output."""
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
    return [as_lines.line(one).rstrip("\n"), *([f"  help: {one.remedy}"] if one.remedy else [])]
