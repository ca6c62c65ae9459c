"""The outputs for programs: JSON, GitHub annotations, SARIF, one line per finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from hccl_tools.diagnostics import render
from hccl_tools.diagnostics.diagnostic import Diagnostic
from hccl_tools.document.document import Document
from hccl_tools.rules.pages import page
from hccl_tools.rules.registry import all_rules
from hccl_tools.validation.checker import validate
from tests.support import junit, reports
from tests.support.tables import table

SARIF_SCHEMA = Path(__file__).parent.parent / "data" / "sarif-2.1.0-rtm.5.json"
EVERYTHING = (reports.table(), reports.sound("folder/a b%.json"), reports.broken(), reports.parsed())


def sarif(*shown: Any) -> Any:
    return json.loads("".join(render(shown, "sarif")))


def test_json_has_the_keys_that_were_promised() -> None:
    document = json.loads("".join(render(EVERYTHING, "json")))

    assert list(document) == ["schema_version", "files"]
    assert document["schema_version"] == 1
    assert [file["verdict"] for file in document["files"]] == ["refused", "accepted", "refused", "refused"]
    assert list(document["files"][0]) == [
        *("file", "format", "product", "verdict", "verdict_by"),
        *("accepted_on", "left_out", "counts", "findings"),
    ]
    assert document["files"][0]["counts"]["HCC203"] == 1
    assert document["files"][0]["findings"][1] == {
        "rule": "HCC203",
        "name": "duplicate-rank-id",
        "severity": "error",
        "consequence": "refused",
        "message": 'rank id "0" is used by two devices',
        "pointer": "/server_list/0/device/1/rank_id",
        "line": 8,
        "column": 67,
        "hint": "give every device its own rank id, 0 to N-1",
        "hccl_code": "EI0014",
        "source": "the guide, on duplicate-rank-id",
        "related": [
            {
                "pointer": "/server_list/0/device/0/rank_id",
                "line": 7,
                "column": 67,
                "message": "first used here",
            }
        ],
    }
    assert document["files"][2]["format"] is None
    assert document["files"][3]["findings"][0]["line"] is None


@pytest.mark.parametrize("output_format", ["json", "sarif"])
def test_nothing_is_folded_for_programs(output_format: str) -> None:
    text = "".join(render([reports.many(1000)], output_format))

    document = json.loads(text)
    found = document["files"][0]["findings"] if output_format == "json" else document["runs"][0]["results"]
    assert len(found) == 1000


def test_programs_learn_of_findings_beyond_the_limit() -> None:
    counts = {"HCC203": 1500}

    file = json.loads("".join(render([reports.many(1500)], "json")))["files"][0]
    assert (file["counts"], len(file["findings"])) == (counts, 1000)
    run = sarif(reports.many(1500))["runs"][0]
    assert run["properties"]["omitted"] == [{"uri": "many.json", "ruleId": "HCC203", "count": 500}]
    assert len(run["results"]) == 1000
    file = json.loads("".join(render([reports.many(1500)], "json", show_all=True)))["files"][0]
    assert (file["counts"], len(file["findings"])) == (counts, 1500)


@pytest.mark.parametrize("output_format", ["text", "concise", "github"])
def test_findings_that_were_not_kept_are_counted(output_format: str) -> None:
    whole, short = reports.many(1500), reports.many(1500)
    short = short._replace(findings=short.findings[:20], omitted={reports.DUPLICATE_RANK: 1480})

    assert "".join(render([short], output_format)) == "".join(render([whole], output_format))


def test_a_report_without_findings_looks_for_no_places() -> None:
    report = reports.sound()
    assert report.document is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Document, "spans", None)  # would raise

        assert "no findings" in "".join(render([report], "text"))


def test_no_reports_are_a_document_too() -> None:
    assert json.loads("".join(render([], "json"))) == {"schema_version": 1, "files": []}
    assert sarif()["runs"][0]["results"] == []


def test_places_in_json_are_those_of_the_text() -> None:
    report = reports.many(3000)
    assert report.document is not None

    found = json.loads("".join(render([report], "json", show_all=True)))["files"][0]["findings"]

    text = report.document.data.decode()
    assert [text[one["column"] - 1 :][:7] for one in found] == [f'"{number:05d}"' for number in range(3000)]


def test_sarif_is_valid() -> None:
    schema = json.loads(SARIF_SCHEMA.read_text(encoding="utf-8"))
    Draft4Validator.check_schema(schema)
    validator = Draft4Validator(schema)

    for shown in (EVERYTHING, (), (reports.many(30),)):
        assert [error.message for error in validator.iter_errors(sarif(*shown))] == []


def test_sarif_names_rules_and_pointers() -> None:
    run = sarif(*EVERYTHING)["runs"][0]

    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["HCC105", "HCC203", "HCC106", "HCC401", "HCC309", "HCC601", "HCC101"]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    duplicate = run["results"][1]
    assert duplicate["locations"][0] == {
        "physicalLocation": {
            "artifactLocation": {"uri": "table.json"},
            "region": {"startLine": 8, "startColumn": 67, "endLine": 8, "endColumn": 70},
        },
        "logicalLocations": [{"name": "rank_id", "fullyQualifiedName": "/server_list/0/device/1/rank_id"}],
    }
    assert duplicate["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 7


@pytest.mark.parametrize(
    ("file", "uri"),
    [("a b%.json", "a%20b%25.json"), ("/x/设备.json", "file:///x/%E8%AE%BE%E5%A4%87.json"), ("-", "-"),
     ("<bytes>", "%3Cbytes%3E"), ("\udcff.json", "%FF.json")],
)  # fmt: skip
def test_sarif_files_are_uris(file: str, uri: str) -> None:
    result = sarif(reports.table(file))["runs"][0]["results"][0]

    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_github_gets_the_ten_worst_of_all_files_first() -> None:
    mild = tuple(Diagnostic(reports.ADVICE, f"advice {number}") for number in range(8))
    grave = tuple(Diagnostic(reports.DUPLICATE_RANK, f"error {number}") for number in range(7))

    lines = "".join(
        render(
            [reports.table("mild.json", findings=mild), reports.table("grave.json", findings=grave)], "github"
        )
    ).splitlines()

    annotations = [line for line in lines if line.startswith("::")]
    assert len(annotations) == 10
    assert all(line.startswith("::error ") and "file=grave.json" in line for line in annotations[:7])
    assert all(line.startswith("::warning ") and "file=mild.json" in line for line in annotations[7:])
    assert lines[10] == "5 more findings beyond the 10 annotations that GitHub shows for a step"
    assert lines[11] == "mild.json:1:1: warning HCC601 advice 3"
    assert len(lines) == 16


def test_github_folds_the_rest() -> None:
    lines = "".join(render([reports.many(1000)], "github")).splitlines()

    assert sum(line.startswith("::") for line in lines) == 10
    assert lines[10] == "990 more findings beyond the 10 annotations that GitHub shows for a step"
    assert lines[-1] == "... and 980 more (`--all`)"


def test_github_properties_and_messages_are_escaped() -> None:
    finding = Diagnostic(reports.DUPLICATE_RANK, "100% wrong: a,b", ("a",), "50%\nmore")

    (line,) = "".join(render([reports.table("a,b:c%.json", findings=(finding,))], "github")).splitlines()

    assert line == (
        "::error title=hccl-tools (HCC203),file=a%2Cb%3Ac%25.json,line=1,col=1::100%25 wrong: a,b (/a)"
        "%0AHCCL: refuses the table with EI0014%0Ahelp: 50%25\\u000amore"
    )


@pytest.mark.parametrize(
    "file", ["::warning file=x::pwn.json", " \t::add-mask::a", "##[group]b", "a ##[error]"]
)
@pytest.mark.parametrize("kept", [12, 1500])
def test_github_takes_no_name_of_a_file_for_a_command(file: str, kept: int) -> None:
    report = reports.many(kept, file)

    text = "".join(render([report], "github"))

    assert reports.commands_of_workflow(text) == text.splitlines()[:10]
    assert len(text.splitlines()) > 12
    assert all(line.startswith("::error title=hccl-tools") for line in text.splitlines()[:10])


def test_github_takes_no_value_of_a_table_for_a_command() -> None:
    findings = tuple(Diagnostic(reports.DUPLICATE_RANK, f"server ##[add-path]/x{n}") for n in range(12))

    text = "".join(render([reports.table("a.json", findings=findings)], "github"))

    assert reports.commands_of_workflow(text) == text.splitlines()[:10]
    assert text.splitlines()[-1].endswith("server ##\\u005badd-path]/x11")


def test_concise_is_one_line_a_finding() -> None:
    lines = "".join(render(EVERYTHING, "concise")).splitlines()

    assert lines[1] == (
        'table.json:8:67: error HCC203 rank id "0" is used by two devices (/server_list/0/device/1/rank_id)'
    )
    assert lines[-1].startswith("<object>: error HCC203 ")
    assert len(lines) == 8


def test_concise_folds() -> None:
    lines = "".join(render([reports.many(1000)], "concise")).splitlines()

    assert lines[20:] == ["many.json: ... and 980 more HCC203 (`--all`)"]
    assert len("".join(render([reports.many(1000)], "concise", show_all=True)).splitlines()) == 1000


def test_sarif_explains_the_rules_as_their_pages_do() -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][1]["rank_id"] = "0"

    (rule,) = sarif(validate(value))["runs"][0]["tool"]["driver"]["rules"]

    own_page = page(all_rules()["HCC203"])
    assert rule["shortDescription"]["text"] == own_page.splitlines()[2].rstrip(".")
    assert rule["fullDescription"]["text"] in own_page
    assert rule["fullDescription"]["text"] != rule["shortDescription"]["text"]
    assert "Example:" not in rule["fullDescription"]["text"]


def test_junit_has_a_case_for_every_rule_that_was_applied() -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][1]["rank_id"] = "0"

    states = junit.cases("".join(render([validate(value)], "junit")))

    assert states.pop(("<object>", "HCC203")) == "failure"
    assert len(states) > 30
    assert states["<object>", "HCC105"] == "passed"


def test_junit_leaves_out_what_was_not_applied() -> None:
    selected = junit.cases("".join(render([validate(table("1.0", 1, 8), select=["HCC203"])], "junit")))

    assert selected == {("<object>", "HCC203"): "passed"}


def test_junit_fails_advice_only_if_it_counts() -> None:
    report = reports.table(findings=(Diagnostic(reports.ADVICE, "advice \x00\x1b<&\ud800"),))

    states = [junit.cases("".join(render([report], "junit", strict=strict))) for strict in (False, True)]

    assert [list(one.values()) for one in states] == [["output"], ["failure"]]
