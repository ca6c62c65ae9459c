"""Damaged files with long runs of one sign take time in proportion to their size, and no traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools import validate
from tests.support.growth import least

if TYPE_CHECKING:
    from collections.abc import Callable

DAMAGES: dict[str, Callable[[int], str]] = {
    "a comment before quotes": lambda size: "{ // same\n" + '\\"' * size,
    "an unquoted key before quotes": lambda size: '{version: "1.0", "x": "' + '\\"' * size,
    "blanks in a member": lambda size: "".join(f"a:{' ' * (size // 8)}x y\n" for _ in range(3)),
    "a number of zeros": lambda size: f'{{"a": {"0" * size}x}}',
    "names with dots": lambda size: "{'server_list': " + "a." * size,
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_eight_times_the_run_is_no_more_than_the_time_for_it(damage: str) -> None:
    small, large = (DAMAGES[damage](size).encode() for size in (2_000, 16_000))
    validate(small)  # what is loaded or compiled once

    assert least(lambda: validate(large)) < 20 * least(lambda: validate(small)) + 0.02


def test_a_line_number_may_have_thousands_of_digits() -> None:
    data = "".join(f"{'1' * 5_000} {{\n" for _ in range(4)).encode()

    assert [one.rule.id for one in validate(data).findings] == ["HCC101"]
