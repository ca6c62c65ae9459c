"""The schemas of files and answers describe what the records hold, and what is really written."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from hccl_tools.codec import _RANGES
from hccl_tools.diagnostics import diagnostic
from hccl_tools.explain.knowledge.message import KINDS, Message
from hccl_tools.formats import MODULES
from hccl_tools.formats.file_kinds import OTHER_FILES
from hccl_tools.formats.schema import OTHERS, load
from hccl_tools.launch.model import plan
from hccl_tools.records import alternatives, annotation_texts, field_names
from hccl_tools.runs import ends, saved
from hccl_tools.runs.job_report import (
    AttemptReport,
    HungRank,
    JobReport,
    ProcessEnd,
    RankFailure,
    StuckProcess,
)
from tests.support import published
from tests.support.commands import run_here

_TYPES = {"str": "string", "OsText": "string", "bool": "boolean", "Seconds": "number"}


def described(annotation: str) -> dict[str, Any]:
    """Return the part of a schema for an annotation: the type, and the range of a number."""
    (kind,) = alternatives(annotation)
    name = kind.partition("[")[0]
    least, most = _RANGES.get(name, (0 if name == "Seconds" else None, None))
    json_type = "array" if "[" in kind else _TYPES.get(name, "integer")
    found: dict[str, Any] = {"type": [json_type, "null"] if annotation.endswith("| None") else json_type}
    if least is not None:
        found["minimum"] = least
    if name == "ExitCode":
        found["maximum"] = most
    if json_type == "array":
        found["items"] = {"type": "string"}
    return found


def properties(schema: str, definition: str) -> dict[str, Any]:
    """Return the properties of a definition, without their descriptions."""
    found = load(schema)["$defs"][definition]["properties"]
    return {name: {key: part[key] for key in part if key != "description"} for name, part in found.items()}


@pytest.mark.parametrize("name", OTHERS)
def test_each_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(load(name))


@pytest.mark.parametrize(
    ("definition", "record"), [("failure", RankFailure), ("hung_rank", HungRank), ("end", ProcessEnd)]
)
def test_a_record_of_the_report_is_described_as_it_is(definition: str, record: type) -> None:
    texts = annotation_texts(record)

    assert properties("report", definition) == {name: described(texts[name]) for name in texts}
    assert load("report")["$defs"][definition]["required"] == list(texts)


def test_the_report_has_the_fields_of_its_records_in_their_order() -> None:
    report = load("report")

    assert tuple(report["required"]) == JobReport._fields
    assert set(report["$defs"]["attempt"]["required"]) == set(AttemptReport._fields)
    assert set(report["$defs"]["stuck"]["required"]) == set(StuckProcess._fields)


def test_the_words_are_those_of_the_records() -> None:
    report, validated = load("report"), load("validate")["$defs"]
    finding, file = validated["finding"]["properties"], validated["file"]["properties"]

    for part in (report, report["$defs"]["attempt"]):
        assert part["properties"]["reason"]["enum"] == list(get_args(ends.Reason))
    assert load("plan")["properties"]["start"]["enum"] == list(get_args(plan.Start))
    assert finding["consequence"]["enum"] == list(get_args(diagnostic.Consequence))
    assert finding["severity"]["enum"] == list(get_args(diagnostic.Severity))
    assert file["verdict"]["enum"] == list(get_args(diagnostic.Verdict))
    assert set(file["format"]["enum"]) == {*MODULES, *OTHER_FILES, None}


def test_the_messages_of_a_user_are_described_as_they_are_read() -> None:
    message = load("knowledge")["$defs"]["message"]["properties"]

    assert message["kind"]["enum"] == list(KINDS)
    assert {*message} == {*Message._fields} - {"limit"}


@pytest.mark.parametrize(
    ("part", "record"),
    [
        (load("report"), saved.SavedReport),
        (load("report")["$defs"]["end"], saved.SavedEnd),
        (load("report")["$defs"]["failure"], saved.SavedFailure),
        (load("report")["$defs"]["hung_rank"], saved.SavedHungRank),
        (load("plan"), saved.SavedPlan),
        (load("plan"), saved.PlanHead),
        (load("plan")["$defs"]["process"], saved.SavedProcess),
    ],
)
def test_what_readers_use_is_described(part: dict[str, Any], record: type) -> None:
    assert set(field_names(record) or ()) <= set(part["properties"])


def test_a_key_that_is_not_described_is_a_fault_of_a_test_and_not_of_a_user() -> None:
    answer = {"schema_version": 1, "files": [], "new": 1}

    assert published.faults("validate", answer) != []
    assert Draft202012Validator(load("validate")).is_valid(answer)
    assert published.faults("validate", {"schema_version": 1, "files": None}) != []


@pytest.mark.parametrize("name", OTHERS)
def test_each_is_listed_and_printed(name: str) -> None:
    assert f"\n{name} " in run_here("schema").stdout
    assert run_here("schema", name).stdout.startswith('{\n  "$schema": ')
