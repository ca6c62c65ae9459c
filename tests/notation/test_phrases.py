from __future__ import annotations

import pytest

from hccl_tools.notation.phrases import and_more, count, devices, did_you_mean


@pytest.mark.parametrize(("number", "text"), [(0, "0 devices"), (1, "1 device"), (65_536, "65,536 devices")])
def test_a_number_has_its_noun(number: int, text: str) -> None:
    assert count(number, "device") == text


def test_devices_are_named_in_the_plural() -> None:
    assert devices([4]) == "device 4"
    assert devices(iter([4, 5, 7])) == "devices 4,5,7"


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")],
)
def test_long_lists_end_in_the_number_of_the_others(names: list[str], text: str) -> None:
    assert and_more(names, 2) == text


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("HCC230", 'did you mean "HCC203"?'),
        ("hcc23", 'did you mean "HCC203"?'),
        ("Duplicate-Rank", 'did you mean "duplicate-rank-id"?'),
        ("something else", ""),
    ],
)
def test_the_closest_name_is_proposed(name: str, question: str) -> None:
    assert did_you_mean(name, ("HCC203", "duplicate-rank-id", "HCC601")) == question
