from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.notation.number_list import TooManyNumbersError, distinct, fold, parse, span


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([4], "4"), ([0, 1], "0-1"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8"), ([7, 6, 5], "7,6,5")],
)
def test_runs_are_written_as_ranges(numbers: list[int], text: str) -> None:
    assert fold(numbers) == text
    assert parse(text) == numbers


def test_another_separator_may_be_written() -> None:
    assert fold([0, 1, 5], ", ") == "0-1, 5"


@given(st.lists(st.integers(0, 10_000)))
def test_what_is_written_is_read_again(numbers: list[int]) -> None:
    assert parse(fold(numbers)) == numbers


@pytest.mark.parametrize("item", ["", "a", "1-", "-1", "1-2-3", " 1", "1234567890", "\u0661"])
def test_any_other_text_is_not_a_span(item: str) -> None:
    assert span(item) is None


def test_a_wrong_item_is_named() -> None:
    with pytest.raises(ValueError, match='"b" is not a number or a range'):
        parse("1,b")


@pytest.mark.parametrize("text", ["1-99999999", "0-999999999", ",".join(["0-999999"] * 5)])
def test_a_list_has_a_most_of_numbers(text: str) -> None:
    with pytest.raises(TooManyNumbersError, match="more than 1,048,576 numbers"):
        parse(text)


def test_numbers_that_are_listed_often_are_made_once() -> None:
    assert distinct(",".join(["0-65535"] * 20_000), 65535) == set(range(65536))
    assert distinct("", 5) == distinct("7,x", 5) == set()
