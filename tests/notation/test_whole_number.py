"""Whole numbers in texts."""

from __future__ import annotations

import pytest

from hccl_tools.notation.whole_number import whole_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1.0", "1e3", "\u0663", "\u00b2", "9" * 19, "9" * 5000]
)
def test_other_texts_are_none(text: str) -> None:
    assert whole_number(text) is None
