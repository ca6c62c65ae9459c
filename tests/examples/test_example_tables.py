"""The files of examples/tables that hccl-tools makes are those that it makes today."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.example_tables import FOLDER, write

if TYPE_CHECKING:
    from pathlib import Path

HOW = "run: python -m tests.support.example_tables"


@pytest.mark.slow
def test_the_files_are_those_that_are_made_today(tmp_path: Path) -> None:
    write(tmp_path)
    made = {
        str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    }

    assert len(made) >= 10
    assert [name for name, data in made.items() if (FOLDER / name).read_bytes() != data] == [], HOW


def test_every_file_is_in_the_list() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert [
        path.name for path in FOLDER.iterdir() if f"`{path.name}" not in page and path.name != "README.md"
    ] == []
