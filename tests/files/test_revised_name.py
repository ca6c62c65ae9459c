"""The file names of changed tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import TableError, UsageError
from hccl_tools.files import revised_name

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.files.revised_name import Change


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("job.json", "r", "job.r1.json"),
        ("job.json", "s", "job.s1.json"),
        ("job.r1.json", "r", "job.r2.json"),
        ("job.s1.json", "s", "job.s2.json"),
        ("job.r1.json", "s", "job.r1.s1.json"),
        ("job.s1.r1.json", "r", "job.s1.r2.json"),
        ("tables/job.r9.json", "r", "job.r10.json"),
        ("job.v1.json", "r", "job.v1.r1.json"),
        (".r1.json", "r", ".r1.r1.json"),
    ],
)
def test_names(name: str, change: Change, expected: str) -> None:
    assert revised_name.next_name(name, change) == expected


def test_the_first_that_is_free(tmp_path: Path) -> None:
    (tmp_path / "job.r1.json").touch()
    (tmp_path / "job.r2.json").symlink_to("nowhere")

    assert revised_name.target(str(tmp_path / "job.json"), None, "r") == str(tmp_path / "job.r3.json")


def test_another_folder(tmp_path: Path) -> None:
    assert revised_name.target("job.json", str(tmp_path), "s") == str(tmp_path / "job.s1.json")


def test_never_over_a_table(tmp_path: Path) -> None:
    (tmp_path / "job.json").touch()

    with pytest.raises(TableError, match="exists; a table"):
        revised_name.target("x.json", str(tmp_path / "job.json"), "r")


def test_a_name_that_hccl_does_not_open() -> None:
    with pytest.raises(UsageError, match=r"ends in \.json"):
        revised_name.target("x.json", "job.txt", "s")
