"""The output formats of ``doctor``, on results made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from hccl_tools.doctor.findings import Examination, HostFinding, Place
from hccl_tools.doctor.registry import all_checks
from hccl_tools.doctor.report import render
from hccl_tools.version import __version__
from tests.support import junit
from tests.support.reports import commands_of_workflow

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTS = ("node1", "node2", "node3")
SARIF_SCHEMA = Path(__file__).parents[2] / "data" / "sarif-2.1.0-rtm.5.json"
_CHECKS = (
    *(("HCD001", "not-examined"), ("HCD204", "tls-differs")),
    *(("HCD103", "npu-unhealthy"), ("HCC431", "address-not-on-device")),
)
ASKED = dict.fromkeys(HOSTS[:2], _CHECKS)
HOSTILE = '<b>&"\x1b[31m\x00]]>\ufffe\nline'


def finding(check: str, consequence: Any, message: str, *hosts: str, **fields: Any) -> HostFinding:
    return HostFinding(check, f"name-of-{check}", consequence, message, hosts, source="a page", **fields)


RESULT = Examination(
    HOSTS,
    (
        finding(
            "HCC431", "stops", "device 1 has 10.0.0.9", "node2", devices=(1,),
            place=Place("设 备:x.json", 8, 67), remedy="correct the table",
        ),
        finding("HCD204", "stops", "TLS is on on device 1", "node1", "node2",
                remedy="`hccn_tool -i 1 -tls -s enable 0`"),
        finding("HCD501", "stops", "No route to host", "node3"),
        finding("HCD103", "may-stop", HOSTILE, "node1"),
        finding("HCD402", "note", "the log disk is 100% full, nearly: 5", "node1"),
        finding("HCD001", "note", "not looked at: TLS: no hccn_tool", "node2"),
    ),
    "table.json",
    ASKED,
)  # fmt: skip


def rendered(output_format: str, result: Examination = RESULT, **options: Any) -> str:
    return "".join(render(result, {}, output_format, **options))


@pytest.mark.parametrize("output_format", ["text", "concise", "json", "junit", "github", "sarif"])
def test_golden(golden: Callable[[str, str], None], output_format: str) -> None:
    text = rendered(output_format)

    assert "\x1b" not in text
    golden(f"doctor-{output_format}.txt", text.replace(f'"version": "{__version__}"', '"version": "X.Y.Z"'))


def test_junit_shows_passes() -> None:
    assert junit.cases(rendered("junit")) == {
        ("node1", "HCC431"): "passed",
        ("node1", "HCD001"): "passed",
        ("node1", "HCD103"): "output",
        ("node1", "HCD204"): "failure",
        ("node1", "HCD402"): "output",
        ("node2", "HCC431"): "failure",
        ("node2", "HCD001"): "skipped",
        ("node2", "HCD103"): "passed",
        ("node2", "HCD204"): "failure",
        ("node3", "HCD501"): "failure",
    }


def test_junit_fails_what_strict_counts() -> None:
    strict = junit.cases(rendered("junit", strict=True))

    assert strict["node1", "HCD103"] == strict["node2", "HCD001"] == "failure"
    assert strict["node1", "HCD402"] == "output"


@given(st.text(st.characters(), max_size=40), st.text(st.characters(), max_size=40))
def test_junit_is_xml_whatever_hosts_answer(message: str, name: str) -> None:
    one = finding("HCD103", "stops", message, name, remedy=message)

    junit.check(rendered("junit", Examination((name,), (one,))))


def test_sarif_is_valid_and_has_hosts_as_logical_locations() -> None:
    log = json.loads(rendered("sarif"))

    validator = Draft4Validator(json.loads(SARIF_SCHEMA.read_text(encoding="utf-8")))
    assert [error.message for error in validator.iter_errors(log)] == []
    (run,) = log["runs"]
    in_table, on_hosts = (one["locations"][0] for one in run["results"][:2])
    assert in_table["physicalLocation"]["region"] == {"startLine": 8, "startColumn": 67}
    assert [one["name"] for one in on_hosts["logicalLocations"]] == ["node1", "node2"]
    assert "physicalLocation" not in on_hosts
    rules = {one["id"]: one for one in run["tool"]["driver"]["rules"]}
    assert rules["HCD204"]["shortDescription"]["text"] == all_checks()["HCD204"].title


def test_github_shows_ten_and_lists_the_others() -> None:
    many = tuple(finding("HCD204", "stops", f"fault {number}", "node1") for number in range(12))

    lines = rendered("github", Examination(HOSTS, many)).splitlines()

    assert [line.startswith("::error ") for line in lines] == [True] * 10 + [False] * 3
    assert lines[10] == "2 more findings beyond the 10 annotations that GitHub shows for a step"
    assert lines[11] == "node1: stops HCD204 fault 10"


@pytest.mark.parametrize("place", [None, Place("::error::a.json", 1, 2)])
@pytest.mark.parametrize("text", ["::add-mask::a", "a ##[error]b"])
def test_github_takes_no_text_of_a_host_for_a_command(place: Place | None, text: str) -> None:
    many = (finding("HCD204", "stops", f"fault {text}", text, place=place),) * 12

    lines = rendered("github", Examination((text,), many))

    assert commands_of_workflow(lines) == lines.splitlines()[:10]
    assert len(lines.splitlines()) == 13
