"""Lengths of time as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.notation import durations


@pytest.mark.parametrize(
    ("text", "seconds", "unit"),
    [
        ("90", 90, "s"), ("0.5 s", 0.5, "s"), ("250ms", 0.25, "ms"), ("40 h", 144_000, "h"),
        ("2.50d", 216_000, "d"),
        ("1 d 4 h", 100_800, "d"), ("1h30m", 5400, "h"), ("2 Hours", 7200, "h"),
        ("3 mins.", 180, "min"),
        ("1:30", 90, "s"), ("1:30:00", 5400, "s"), ("1-02:00:00", 93_600, "s"),
        ("1e2", 100, "s"), (".5 d", 43_200, "d"),
    ],
)  # fmt: skip
def test_a_length_of_time(text: str, seconds: float, unit: str) -> None:
    found, first = durations.parse(text)

    assert found == pytest.approx(seconds)
    assert first == unit


def test_a_bare_number_has_the_default_unit() -> None:
    assert durations.parse("60", "h") == (216_000, "h")


@pytest.mark.parametrize(
    "text", ["", " ", "h", "4 x", "-1 h", "1 h 2 d", "1 h 2 h", "1 2", "1 h 2",
             "nan", "inf", "1,5 h", "1:2:3:4",
             "٣ h"]
)  # fmt: skip
def test_not_a_length_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        durations.parse(text)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        seconds, unit = durations.parse(text)
    except ValueError:
        return
    assert seconds >= 0
    assert unit in durations.UNITS
