"""Texts of others as parts of file names."""

from __future__ import annotations

import pytest

from hccl_tools.formats import read
from hccl_tools.notation.file_part import file_part
from hccl_tools.transform.generation import file_name
from tests.support.tables import table

HOSTILE = [
    "../x",
    "/etc/x",
    "..",
    ".",
    "-o",
    "a/../../b",
    "a\nb",
    "\x1b[31m",
    "a\0b",
    "\udcff",
    "n" * 5000,
    "$(id)",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_a_part_of_one_name(text: str) -> None:
    part = file_part(text)

    assert len(part) <= 64
    assert part.isprintable()
    assert part.isascii()
    assert "/" not in part
    assert part[0] not in ".-"


def test_long_texts_keep_different_names() -> None:
    assert file_part("n" * 100 + "1") != file_part("n" * 100 + "2")


def test_usual_names_stay() -> None:
    for name in ("10.0.0.1", "node-1_a", "fe80::1"):
        assert file_part(name) == name


def test_a_server_id_does_not_lead_to_another_folder() -> None:
    value = table("1.0", 1, 1)
    value["server_list"][0]["server_id"] = "x/../../pwn"

    assert file_name(read(value)) == "hccl_1p_0_x%2F..%2F..%2Fpwn.json"
