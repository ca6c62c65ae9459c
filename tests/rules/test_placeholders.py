"""A placeholder of a template that was not filled in is named as the cause, wherever it stands."""

from __future__ import annotations

import json

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

_SAID = "is a placeholder of a template that was not filled in"


@pytest.mark.parametrize(
    "text", ["{{ x }}", "${X}", "$X", "<x>", "%s", "@X@", "{x}", "__X__", "TODO", "YOUR_X"]
)
@pytest.mark.parametrize(
    ("table_format", "value", "rule"),
    [
        ("1.0", '"10.0.0.2"', "HCC619"),
        ("1.0", '"192.168.1.103"', "HCC403"),
        ("1.0", '"rank_id": "3"', "HCC201"),
        ("2.0", '"10.0.0.3"', "HCC456"),
    ],
)
def test_a_placeholder_is_the_cause(text: str, table_format: str, value: str, rule: str) -> None:
    good = json.dumps(table(table_format, 2, 4))
    assert value in good
    key, _, _ = value.rpartition(": ")
    damaged = good.replace(value, f'{key}{": " if key else ""}"{text}"', 1)

    messages = [one.message for one in validate(damaged.encode()).findings if one.rule.id == rule]

    assert any(_SAID in message and text in message for message in messages)


def test_other_texts_are_not_placeholders() -> None:
    good = json.dumps(table("1.0", 2, 4)).replace("10.0.0.2", "node-2.example.org")

    assert not [one for one in validate(good.encode()).findings if one.rule.id == "HCC619"]


def test_a_group_list_and_its_status_say_that_a_template_is_not_filled_in() -> None:
    value = table("group_list", 2, 8)
    instance = value["group_list"][0]["instance_list"][1]
    instance.update(server_id="<SERVER_IP>", devices=[{"device_id": "<ID>", "device_ip": "<IP>"}])

    report = validate({**value, "status": "initializing"})

    said = {one.rule.id: one for one in report.findings}
    assert report.verdict == "hangs"
    assert _SAID in said["HCC619"].message
    assert "placeholders of a template" in said["HCC106"].message
    assert "do not wait" in (said["HCC106"].hint or "")
    assert not any("wait:" in (one.hint or "") for one in report.findings)
    other = validate({**table("group_list", 2, 8), "status": "initializing"})
    assert "wait, for example" in (other.findings[0].hint or "")
