"""The ends of long values, which output for people does not need."""

from __future__ import annotations

import json

from hccl_tools.document.spans import BEGINNING, find_spans

#: A list that is longer than what is always scanned, with brackets and quotes in its strings.
LONG = json.dumps({"first": 1, "list": ['"]}'] * BEGINNING, "last": [2]})


def test_a_long_value_ends_where_it_ends() -> None:
    (span,) = find_spans(LONG, [("list",)], unique=True)

    assert json.loads(LONG[span.start : span.end]) == ['"]}'] * BEGINNING


def test_the_end_of_the_last_long_value_may_be_missed() -> None:
    (span,) = find_spans(LONG, [("list",)], unique=True, whole=False)

    assert span.end - span.start == BEGINNING


def test_a_short_value_always_ends_where_it_ends() -> None:
    first, last = find_spans(LONG, [("first",), ("last",)], unique=True, whole=False)

    assert LONG[first.start : first.end] == "1"
    assert LONG[last.start : last.end] == "[2]"


def test_values_after_a_long_one_are_found() -> None:
    spans = find_spans(LONG, [("list",), ("last", 0)], unique=True, whole=False)

    assert [LONG[span.start : span.end] for span in spans][1] == "2"
