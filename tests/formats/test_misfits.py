from __future__ import annotations

import json
from typing import Any

import pytest

from hccl_tools.formats import misfits
from tests.support.pictures import doctored, explained, record

MESSAGE = dict.fromkeys(("name", "meaning", "remedy", "anchor", "example"), "text") | {
    "id": "SITE001",
    "kind": "fact",
}


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("knowledge", [], "a list is not an object"),
        ("knowledge", {}, "messages is missing"),
        ("knowledge", {"messages": [MESSAGE, {}]}, "messages[1]: id is missing"),
        ("knowledge", {"messages": [MESSAGE] * 1001}, "messages: the list has 1,001 values, more than 1,000"),
        ("scaling", [{"devices": [8]}], "[0].devices: a list is not a whole number or text"),
        ("scaling", {"schema_version": "1", "runs": []}, 'schema_version: "1" is not 1'),
        ("explain", {"ranks": 0}, "ranks: 0 is less than 1"),
        (
            "explain",
            explained([record(1, "x", message="hcm1")]),
            'causes[0].message: "hcm1" does not match ^[A-Z]{2,6}[0-9]{3}$',
        ),
        (
            "explain",
            explained([record(1, "x", peer={"rank": "1"})]),
            'causes[0].peer.rank: "1" is not a whole number',
        ),
        (
            "doctor",
            {"hosts": [{"versions": {"a b": 5}}]},
            'hosts[0].versions["a b"]: 5 is not text',
        ),
        (
            "doctor",
            doctored({"hosts": ["x"], "name": json.loads("[" * 500 + "]" * 500)}),
            "a list is not text",
        ),
    ],
)
def test_the_first_misfit_is_named(name: str, value: Any, sentence: str) -> None:
    found = misfits.first(value, name, of_any_release=name in {"explain", "doctor"})

    assert found is not None
    assert found.sentence.endswith(sentence)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("knowledge", {"messages": []}),
        ("knowledge", {"messages": [MESSAGE], "comment": "x"}),
        ("scaling", [{"devices": " 8 ", "time": "1 d", "colour": [1]}, {"devices": "N/A", "time": None}]),
        ("explain", explained([record(1, "x", new=1)])),
        ("explain", {}),
        ("doctor", doctored({"hosts": ["x"]})),
    ],
)
def test_what_fits_has_none(name: str, value: Any) -> None:
    assert misfits.first(value, name, of_any_release=name in {"explain", "doctor"}) is None


def test_keys_are_required_of_todays_release() -> None:
    assert misfits.first({}, "doctor") is not None
    assert misfits.first({}, "doctor", of_any_release=True) is None
