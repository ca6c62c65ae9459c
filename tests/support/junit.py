"""Check JUnit's XML as the schema of Jenkins' xunit plugin does, and read it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

#: Element -> its attributes (the first is required) and the elements inside.
_ALLOWED: dict[str, tuple[list[str], set[str]]] = {
    "testsuites": (["name", "time", "tests", "failures", "errors"], {"testsuite"}),
    "testsuite": (
        ["name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"],
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        ["name", "classname", "time", "status"],
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (["message", "type"], set()),
    "skipped": (["message"], set()),
    "system-out": ([], set()),
}


def check(text: str) -> ET.Element:
    """Return the root of a document that JUnit's readers accept; fail for any other."""
    assert text.isascii()
    root = ET.fromstring(text)  # noqa: S314  (our own output)
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, inside = _ALLOWED[element.tag]
        assert set(element.attrib) <= set(attributes), element.attrib
        assert not attributes or attributes[0] in element.attrib, element.tag
        assert {child.tag for child in element} <= inside, element.tag
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.get("tests", "-1")) == len(cases)
        assert int(suite.get("failures", "-1")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped", "-1")) == len(suite.findall("testcase/skipped"))
        assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
    return root


def cases(text: str) -> dict[tuple[str, str], str]:
    """Return suite and check -> ``failure``, ``skipped``, ``output`` or ``passed``."""
    states = {}
    for suite in check(text):
        for case in suite.findall("testcase"):
            state = next((child.tag for child in case), "passed").replace("system-out", "output")
            states[suite.get("name", ""), case.get("name", "").partition(" ")[0]] = state
    return states
