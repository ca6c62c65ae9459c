"""The record of own launches: it is only where no other user can exchange a folder, and keeps other files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hccl_tools.runs import own_runs

_NOBODY = 65534
_PLACE = (".local", "state", "hccl-tools", "runs")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    run = tmp_path / "log" / "20261128-101530-abcdef01"
    run.mkdir(parents=True, mode=0o700)
    (run / "plan.json").write_text("{}")
    return run


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A home directory in a folder in which each user can make files, and a folder for locks."""
    for name, mode in (("home", 0o1777), ("locks", 0o700)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    return {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "locks")}


def fallback(environ: dict[str, str]) -> list[str]:
    """Return the names in the record in the folder for locks."""
    return names_in(Path(environ["TMPDIR"], f"hccl-tools-{os.geteuid()}", "runs"))


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_full_record_loses_its_oldest_entries_and_nothing_else(
    run_dir: Path, environ: dict[str, str]
) -> None:
    record = (run_dir.parents[1] / "home").joinpath(*_PLACE)
    record.mkdir(parents=True, mode=0o700)
    others = ["events.out.1", "20200101", "1-2", "20200101-101530-abcdef01-1.json", "a-b-x"]
    for name in [*others, *(f"20261127-101530-{number:08x}-{number}" for number in range(2048))]:
        (record / name).write_text("")
    (record / "20200101-101530-abcdef01-5").write_text("x" * 2000)
    (record / "20200101-101530-abcdef01-6").symlink_to("events.out.1")

    own_runs.note(str(run_dir), environ)
    own_runs.note_report(str(run_dir), environ)

    left = names_in(record)
    assert {*others, "20200101-101530-abcdef01-5", "20200101-101530-abcdef01-6"} <= set(left)
    assert len(left) == 2048 - 1022 + len(others) + 3
    assert own_runs.is_known(str(run_dir), environ)


def test_parts_without_a_report_do_not_fill_the_record(run_dir: Path, environ: dict[str, str]) -> None:
    own_runs.note(str(run_dir), environ, is_part=True)
    record = next(Path(environ["TMPDIR"]).glob("hccl-tools-*/runs"))
    for number in range(2048):
        (record / f"20261127-101530-{number:08x}-{number}").write_text("")

    own_runs.note(str(run_dir), environ, is_part=True)

    assert len(names_in(record)) == 2048 - 1024 + 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to another user")
@pytest.mark.parametrize("place", range(1, len(_PLACE) + 1))
@pytest.mark.parametrize("is_link", [False, True])
def test_the_folder_or_link_of_another_user_is_not_used(
    run_dir: Path, environ: dict[str, str], place: int, *, is_link: bool
) -> None:
    home, chosen = run_dir.parents[1] / "home", run_dir.parents[1] / "project"
    foreign = home.joinpath(*_PLACE[:place])
    foreign.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    chosen.joinpath(*_PLACE[place:]).mkdir(parents=True, mode=0o700)
    if is_link:
        foreign.symlink_to(chosen)
    else:
        foreign.mkdir(mode=0o1777)
        foreign.joinpath(*_PLACE[place:]).mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chown(foreign, _NOBODY, _NOBODY, follow_symlinks=False)

    own_runs.note(str(run_dir), environ)

    assert not [name for folder in (home, chosen) for *_, names in os.walk(folder) for name in names]
    assert len(fallback(environ)) == 1
    assert own_runs.is_known(str(run_dir), environ)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to another user")
def test_nothing_is_made_in_the_home_of_another_user(run_dir: Path, environ: dict[str, str]) -> None:
    home = run_dir.parents[1] / "home"
    home.chmod(0o755)
    os.chown(home, _NOBODY, _NOBODY)

    own_runs.note(str(run_dir), environ)

    assert not names_in(home)
    assert len(fallback(environ)) == 1


@pytest.mark.parametrize("place", range(1, len(_PLACE) + 1))
def test_a_folder_in_which_all_can_rename_is_not_used(
    run_dir: Path, environ: dict[str, str], place: int
) -> None:
    home = run_dir.parents[1] / "home"
    home.joinpath(*_PLACE).mkdir(parents=True, mode=0o700)
    home.joinpath(*_PLACE[:place]).chmod(0o777)

    own_runs.note(str(run_dir), environ)

    assert not names_in(home.joinpath(*_PLACE))
    assert len(fallback(environ)) == 1


def test_a_link_of_the_user_is_followed(run_dir: Path, environ: dict[str, str]) -> None:
    home, elsewhere = run_dir.parents[1] / "home", run_dir.parents[1] / "disk"
    elsewhere.mkdir(mode=0o700)
    (home / ".local").symlink_to(elsewhere)

    own_runs.note(str(run_dir), environ)

    assert len(names_in(elsewhere.joinpath(*_PLACE[1:]))) == 1
    assert own_runs.is_known(str(run_dir), environ)
