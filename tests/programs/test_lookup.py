from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.programs.lookup import find_program, on_path

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A search path of two folders and the current one; ``tool`` is executable in the second only."""
    for folder, name, mode in [
        ("first", "tool", 0o644),
        ("second", "tool", 0o755),
        ("first", "locked", 0o644),
        (".", "local", 0o755),
    ]:
        file = tmp_path / folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
        file.chmod(mode)
    (tmp_path / "first" / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return f"{tmp_path}/first:{tmp_path}/second:"


@pytest.mark.parametrize(
    ("name", "found", "runnable"),
    [
        ("tool", "second/tool", True),
        ("locked", "first/locked", False),
        ("folder", None, False),
        ("missing", None, False),
        ("local", "./local", True),
        ("first/tool", "first/tool", False),
        ("second/tool", "second/tool", True),
    ],
)
def test_programs_are_found_as_by_a_shell(
    name: str, found: str | None, runnable: bool, path: str, tmp_path: Path
) -> None:
    expected = "" if found is None else found if found.startswith((".", name)) else f"{tmp_path}/{found}"

    assert find_program(name, path) == expected
    assert on_path(name, {"PATH": path}) == (
        f"{tmp_path}/{str(found).removeprefix('./')}" if runnable else None
    )
