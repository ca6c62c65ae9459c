from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools.notation.hint import file_here, unused

if TYPE_CHECKING:
    import pytest


def test_a_command_of_a_hint_writes_to_a_file_that_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell replaces a file without a word, and what a link of an archive leads to."""
    monkeypatch.chdir(tmp_path)
    Path("t.new.json").symlink_to(".bashrc")
    Path("t.new.2.json").write_text("{}")

    assert unused("t.new.json") == "t.new.3.json"
    assert unused("u.new.json") == "u.new.json"
    assert unused("u.new.json", beside="u.new.json") == "u.new.2.json"
    assert file_here("t.new.json", "FILE") == "t.new.3.json"


def test_a_name_is_new_although_all_numbers_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive can have them all, and a link with the name of a placeholder."""
    monkeypatch.chdir(tmp_path)
    for name in ("NEW", "t.json", *(f"t.{number}.json" for number in range(2, 100))):
        Path(name).symlink_to("precious")

    name = unused("t.json")

    assert re.fullmatch(r"t\.[0-9a-f]{8}\.json", name)
