"""Columns of numbers are read value by value, whatever way is taken for long ones."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.table.hccl_numbers import read_column, read_int, read_uint

VALUES: st.SearchStrategy[Any] = st.sampled_from(
    ["0", "7", "007", " 3", "3abc", "-1", "", "x", "4294967295", "4294967296", None, 5, []]
)


@given(st.lists(VALUES, min_size=1, max_size=4), st.integers(1, 60))
def test_a_long_column_is_read_like_its_values(values: list[Any], times: int) -> None:
    assert read_column(values * times) == [read_column([value])[0] for value in values] * times


@given(st.text("0123456789+- \n", max_size=12))
def test_small_numbers_are_the_same_with_and_without_a_sign(text: str) -> None:
    number = read_int(text)
    if number is not None and number >= 0:
        assert read_uint(text) == number
