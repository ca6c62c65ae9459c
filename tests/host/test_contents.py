"""The summaries by which hosts compare programs and data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hccl_tools.host import contents
from tests.support.deep_folders import LEVELS, deep_folders

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code" / "models").mkdir(parents=True)
    (tmp_path / "code" / "train.py").write_text("import models\n")
    (tmp_path / "code" / "models" / "net.py").write_text("layers = 12\n")
    return tmp_path / "code"


def test_a_change_of_any_file_or_name_is_seen(folder: Path) -> None:
    before = contents.code(str(folder))
    (folder / "models" / "net.py").write_text("layers = 13\n")
    changed = contents.code(str(folder))
    (folder / "models" / "net.py").write_text("layers = 12\n")
    again = contents.code(str(folder))
    (folder / "models" / "net.py").rename(folder / "models" / "other.py")
    renamed = contents.code(str(folder))

    assert before == again
    assert len({before, changed, renamed}) == 3


@pytest.mark.slow
def test_a_change_in_very_deep_folders_is_seen(tmp_path: Path) -> None:
    with deep_folders(tmp_path / "deep") as top:
        lowest = top / "/".join("d" * (LEVELS - 1)) / "net.py"
        before = contents.code(str(top))
        lowest.write_text("layers = 12\n")
        after = contents.code(str(top))

    assert before != after


def test_what_a_run_makes_does_not_count(folder: Path) -> None:
    before = contents.code(str(folder))
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "train.pyc").write_bytes(b"\0")

    assert contents.code(str(folder)) == before


def test_what_cannot_be_read_is_said(folder: Path) -> None:
    assert contents.code(str(folder / "none.py")) == "absent"
    assert contents.data(str(folder / "none")) == "absent"
    assert contents.data(str(folder / "train.py")) == "not a folder"


def test_a_pipe_does_not_block(folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    assert contents.code(str(folder))
    assert contents.data(str(folder)).startswith("3 files")


def test_more_than_a_program_has_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without data on the disk can have a size of terabytes, and a file of /proc has none at all."""
    monkeypatch.setattr(contents, "_CODE_BYTES", 1 << 20)
    (folder / "pagemap").symlink_to("/proc/self/pagemap")
    (folder / "huge").touch()
    os.truncate(folder / "huge", 4 << 40)
    before = contents.code(str(folder))
    os.truncate(folder / "huge", 3 << 40)

    assert contents.code(str(folder)) not in {before, "absent"}


def test_beginnings_are_compared_after_the_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_CODE_BYTES", 1 << 20)
    (folder / "a").write_bytes(bytes(1 << 20))
    (folder / "z").write_bytes(b"1" * (1 << 17))
    before = contents.code(str(folder))
    (folder / "z").write_bytes(b"1" * (1 << 16) + b"2" * (1 << 16))
    behind = contents.code(str(folder))
    (folder / "z").write_bytes(b"2" + b"1" * ((1 << 17) - 1))

    assert behind == before
    assert contents.code(str(folder)) != before


def test_a_link_that_leads_nowhere_is_a_part_of_the_program(folder: Path) -> None:
    before = contents.code(str(folder))
    (folder / "model.py").symlink_to("none")

    assert contents.code(str(folder)) not in {before, "absent"}
    assert contents.code(str(folder / "model.py"))


def test_data_by_number_size_and_samples(folder: Path) -> None:
    for number in range(40):
        (folder / f"part-{number:02}").write_bytes(bytes([number]) * 1000)
    before = contents.data(str(folder))
    (folder / "part-00").write_bytes(b"\xff" * 1000)
    sampled = contents.data(str(folder))
    (folder / "part-07").write_bytes(b"x" * 1001)
    larger = contents.data(str(folder))

    assert before.startswith("42 files of 40,026 bytes, ")
    assert sampled.startswith("42 files of 40,026 bytes, ")
    assert larger.startswith("42 files of 40,027 bytes, ")
    assert len({before, sampled, larger}) == 3
