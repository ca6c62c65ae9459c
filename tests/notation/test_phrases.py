from __future__ import annotations

import sys

import pytest

from hccl_tools.notation.phrases import as_root, count, devices


@pytest.mark.parametrize(("number", "text"), [(0, "0 devices"), (1, "1 device"), (65_536, "65,536 devices")])
def test_a_number_has_its_noun(number: int, text: str) -> None:
    assert count(number, "device") == text


def test_devices_are_named_in_the_plural() -> None:
    assert devices([4]) == "device 4"
    assert devices(iter([4, 5, 7])) == "devices 4,5,7"


def test_a_command_for_root_does_not_need_its_path() -> None:
    assert as_root("gen ...") == f"sudo {sys.executable} -m hccl_tools gen ..."
