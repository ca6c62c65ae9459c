"""Tests of many cases in one: a failed case is named, and the cases behind it are tried all the same."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from tests.support.bulk import for_each

if TYPE_CHECKING:
    from pathlib import Path


@for_each([1, 2, 3, 4], name=lambda number: f"number {number}")
def even(number: int, tmp_path: Path) -> None:
    assert tmp_path.is_dir()
    assert number % 2 == 0, "it is odd"


def test_each_failed_case_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        even(tmp_path=tmp_path)

    first, *named = [line for line in str(caught.value).splitlines() if not line.startswith("assert")]
    assert first == "2 of 4 cases failed"
    assert "number 1: AssertionError" in named[0]
    assert any("number 3: AssertionError" in line for line in named)
    assert "number 2" not in str(caught.value)


def test_pytest_is_asked_for_fixtures_alone() -> None:
    assert list(inspect.signature(even).parameters) == ["tmp_path"]
