"""JUnit's XML as CI servers read it: a test suite per file or host, a test case per check.

Source: jenkinsci/xunit-plugin, ``junit-10.xsd``. The text is ASCII, so that any encoding of standard output
agrees with the declaration. Control characters, which XML 1.0 forbids even as references, are escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from hccl_tools.notation.printable import escaped
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Case(NamedTuple):
    """One check of one file or host. At most one of ``failure`` and ``skipped`` has text.

    Attributes:
        name: The id and name of the check.
        failure: Why it failed; the first line is the message.
        kind: The consequence of the failure.
        skipped: Why it could not be run.
        output: Findings that do not fail it.
    """

    name: str
    failure: Sequence[str] = ()
    kind: str = ""
    skipped: str = ""
    output: Sequence[str] = ()


class Suite(NamedTuple):
    """The checks of one file or host, and a summary."""

    name: str
    cases: Sequence[Case]
    output: str = ""


def document(name: str, suites: Iterable[Suite]) -> Iterator[str]:
    """Yield the document, one suite at a time."""
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={_attribute(name)}>\n'
    for suite in suites:
        failures = sum(bool(case.failure) for case in suite.cases)
        skipped = sum(bool(case.skipped) for case in suite.cases)
        yield (
            f'  <testsuite name={_attribute(suite.name)} tests="{len(suite.cases)}" '
            f'failures="{failures}" errors="0" skipped="{skipped}">\n'
        )
        for case in suite.cases:
            yield from _case(case, suite.name)
        if suite.output:
            yield f"    <system-out>{_text(suite.output)}</system-out>\n"
        yield "  </testsuite>\n"
    yield "</testsuites>\n"


def _case(case: Case, suite: str) -> Iterator[str]:
    head = f"    <testcase name={_attribute(case.name)} classname={_attribute(suite)}"
    inside = []
    if case.failure:
        message, kind = _attribute(case.failure[0]), _attribute(case.kind)
        inside.append(f"<failure message={message} type={kind}>{_lines(case.failure)}</failure>")
    if case.skipped:
        inside.append(f"<skipped message={_attribute(case.skipped)}/>")
    if case.output:
        inside.append(f"<system-out>{_lines(case.output)}</system-out>")
    if not inside:
        yield f"{head}/>\n"
        return
    yield f"{head}>\n" + "".join(f"      {element}\n" for element in inside) + "    </testcase>\n"


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(map(_text, lines))


def _attribute(text: str) -> str:
    return f'"{_text(text)}"'


def _text(text: str) -> str:
    """Return a text as characters of XML; a printable character is always one."""
    return escape(escaped(text)).encode("ascii", "xmlcharrefreplace").decode("ascii")
