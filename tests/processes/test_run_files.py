"""The files of a run directory, in whose place another user may put something else at any time."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from hccl_tools.processes import run_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MUST_BE_FILES: dict[str, Callable[[Path, Path], object]] = {
    "it is a symbolic link": lambda path, victim: path.symlink_to(victim),
    "it is not a regular file": lambda path, _: os.mkfifo(path),
    "it has a second name": lambda path, victim: path.hardlink_to(victim),
}


@pytest.fixture
def held(own_directory: Path) -> Iterator[run_files.Folder]:
    run = own_directory / "run"
    run.mkdir(mode=0o700)
    yield run_files.hold(str(run))
    run_files.release(str(run))


@pytest.mark.parametrize("why", MUST_BE_FILES)
def test_what_is_not_a_file_of_the_run_is_not_written(
    why: str, held: run_files.Folder, own_directory: Path
) -> None:
    (own_directory / "victim").write_text("precious")
    MUST_BE_FILES[why](own_directory / "run" / "rank_0.log", own_directory / "victim")

    for function in (held.open_append, held.open_lock):
        with pytest.raises(OSError) as refused:  # noqa: PT011  (the reason is compared)
            function("rank_0.log")
        assert run_files.reason(refused.value).startswith(why)

    assert (own_directory / "victim").read_text() == "precious"


def test_links_and_pipes_are_not_read(held: run_files.Folder, own_directory: Path) -> None:
    (own_directory / "victim").write_text("precious")
    for why, make in list(MUST_BE_FILES.items())[:2]:
        make(own_directory / "run" / "plan.json", own_directory / "victim")
        with pytest.raises(OSError) as refused:  # noqa: PT011
            held.read("plan.json", 100)
        assert run_files.reason(refused.value) == why
        assert run_files.status(str(own_directory / "run" / "plan.json")) is None
        held.unlink("plan.json")


def test_no_name_leads_out(held: run_files.Folder, own_directory: Path) -> None:
    (own_directory / "victim").write_text("precious")
    (own_directory / "run" / "plog").symlink_to(own_directory)

    for name in ("../victim", "/etc/hostname", "plog/../../victim", "plog/victim", ".", ""):
        with pytest.raises(OSError):  # noqa: PT011
            held.read(name, 100)
    with pytest.raises(OSError):  # noqa: PT011
        held.names("plog")


def test_a_folder_below_is_read_without_links(held: run_files.Folder, own_directory: Path) -> None:
    (own_directory / "run" / "plog" / "debug").mkdir(parents=True)
    (own_directory / "run" / "plog" / "debug" / "a.log").write_text("own")

    assert held.read("plog/debug/a.log", 100) == b"own"
    assert held.names("plog/debug") == ["a.log"]
    assert run_files.status(str(own_directory / "run" / "plog" / "debug" / "a.log")) is not None


def test_writing_replaces_a_link(held: run_files.Folder, own_directory: Path) -> None:
    (own_directory / "victim").write_text("precious")
    (own_directory / "run" / "report.json").symlink_to(own_directory / "victim")

    held.write("report.json", b"{}")

    assert (own_directory / "victim").read_text() == "precious"
    assert held.read("report.json", 9) == b"{}"


def test_the_path_of_a_held_directory_means_that_directory(
    held: run_files.Folder, own_directory: Path
) -> None:
    """Also if a directory of the same owner takes its place."""
    run, moved = own_directory / "run", own_directory / "moved"
    run.rename(moved)
    run.mkdir()

    os.write(descriptor := run_files.open_append(str(run / "rank_0.log")), b"own\n")
    run_files.write(str(run), "report.json", b"{}")

    assert list(run.iterdir()) == []
    assert sorted(path.name for path in moved.iterdir()) == ["rank_0.log", "report.json"]
    os.close(descriptor)


def test_another_process_refuses_a_directory_that_took_the_place(
    held: run_files.Folder, own_directory: Path
) -> None:
    identity = held.identity
    run_files.release(held.path)
    (own_directory / "run").rename(own_directory / "moved")
    (own_directory / "run").mkdir()

    with pytest.raises(OSError) as refused:  # noqa: PT011
        run_files.adopt(identity)
    assert run_files.reason(refused.value) == "another directory is in the place of its directory"
    (own_directory / "run").rmdir()
    (own_directory / "moved").rename(own_directory / "run")
    assert run_files.adopt(identity).identity == identity


@pytest.mark.parametrize("umask", [0o000, 0o077])
@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755])
def test_new_files_have_the_mode_of_the_directory(mode: int, umask: int, own_directory: Path) -> None:
    run = own_directory / "run"
    run.mkdir()
    run.chmod(mode)
    before = os.umask(umask)
    try:
        with run_files.opened(str(run)) as folder:
            os.close(folder.open_append("rank_0.log"))
            folder.write("plan.json", b"{}")
            folder.touch("heartbeat_0")
    finally:
        os.umask(before)

    assert {stat.S_IMODE(path.stat().st_mode) for path in run.iterdir()} == {mode & 0o666}
