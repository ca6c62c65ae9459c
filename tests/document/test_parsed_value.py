"""Parsed values are checked like a file with them; values that no file can have are findings."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict, defaultdict
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools import validate
from hccl_tools.diagnostics import FORMATS, render
from hccl_tools.document.fast_parser import NESTING_LIMIT
from hccl_tools.document.parsed_value import NotJsonError, as_read
from tests.support.tables import table

HALF = "\ud800"
FORMAT_NAMES = ["1.0", "1.2", "2.0", "group_list", "lab"]


class Port(enum.IntEnum):
    FIRST = 1


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def circle() -> Any:
    value: list[Any] = []
    value += [value, value]
    return value


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (HALF, "a string has half of a character (a lone surrogate)"),
        ({HALF: 1}, "a string has half of a character (a lone surrogate)"),
        ({1: 1}, "a key of type int is not JSON: all keys are strings"),
        ({None: 1}, "a key of type NoneType is not JSON: all keys are strings"),
        (10**5000, "a number is too large"),
        (-(10**400), "a number is too large"),
        (float("nan"), "nan is not a JSON number"),
        (float("inf"), "inf is not a JSON number"),
        ({1, 2}, "a value of type set is not JSON"),
        (b"x", "a value of type bytes is not JSON"),
        (circle(), "an object or list contains itself"),
    ],
    ids=lambda part: part if isinstance(part, str) and part.isascii() else type(part).__name__,
)
@pytest.mark.parametrize("table_format", FORMAT_NAMES)
def test_what_no_file_can_hold(part: Any, message: str, table_format: str) -> None:
    report = validate({**table(table_format), "x": {"y": [0, part]}})

    (finding,) = report.findings
    assert (finding.rule.id, finding.message, finding.path[:3]) == ("HCC101", message, ("x", "y", 1))
    assert report.verdict == "refused"
    for name in FORMATS:
        assert "".join(render([report], name))


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        ((1, (2, "x")), [1, [2, "x"]]),
        (Port.FIRST, 1),
        (2**64, float(2**64)),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
        (-(2**63) - 1, float(-(2**63) - 1)),
        (True, True),
        (None, None),
    ],
)
def test_what_becomes_of_other_types(value: Any, read: Any) -> None:
    found = as_read({"x": value})["x"]

    assert found == read
    assert type(found) is type(read)


@pytest.mark.parametrize("levels", [1, NESTING_LIMIT - 1, NESTING_LIMIT, NESTING_LIMIT + 1, 10_000])
def test_deep_values_are_judged(levels: int) -> None:
    assert validate({**table("1.0"), "x": nested(levels)}).verdict == "accepted"


def test_a_sound_value_is_not_copied() -> None:
    value = {**table("1.0"), "x": ["\u6606", 1.5, -1]}

    assert as_read(value) is value


def test_one_object_in_many_places_is_no_circle() -> None:
    device = {"a": 1}

    assert as_read([device, device, [device]]) == [device, device, [device]]


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(min_value=2**63), st.floats(), st.text(max_size=3),
    st.sampled_from([HALF, "a" + HALF, "\0", "1.2.3.4\0", "\U0001f600", "", "0", "-1", "9" * 5000]),
    st.sampled_from([400, 5000]).map(lambda digits: 10**digits),
    st.sampled_from([[], {}, (), {1: 2}, {HALF: "x"}, [HALF], [[]], [None], [{}]]).map(deepcopy),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all values."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inside for found in places(item, (*path, key)))]


@settings(max_examples=4 * settings().max_examples, deadline=None)
@given(st.data())
def test_nothing_that_is_put_anywhere_raises(data: st.DataObject) -> None:
    value = json.loads(json.dumps(table(data.draw(st.sampled_from(FORMAT_NAMES)))))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([path for path in places(value) if path]))
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        if isinstance(holder, dict) and data.draw(st.integers(0, 3)) == 0:
            holder[data.draw(st.sampled_from([1, None, HALF, "x", "rank_id", "device_ip"]))] = data.draw(ODD)
        else:
            holder[path[-1]] = data.draw(ODD)

    product = data.draw(st.sampled_from([None, "910a", "a2", "a3", "a3-server", "300i", "a5"]))
    report = validate(value, product=product)

    for name in FORMATS:
        "".join(render([report], name)).encode()
    try:
        text = json.dumps(as_read(value)).encode()
    except NotJsonError:
        assert report.verdict == "refused"
    else:
        assert validate(text, product=product).verdict == report.verdict
