"""``launch`` where streams are closed or full, names are no text, and the folder or the disk is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import published

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

HELLO = "import os, sys; print(sys.argv[1:], os.environ.get('A')); sys.exit(int(os.environ.get('CODE', 0)))\n"
LAUNCH = (sys.executable, "-m", "hccl_tools", "launch", "--no-table", "-n", "2", "--start", "table")


@pytest.fixture(autouse=True)
def hello(own_directory: Path) -> Path:
    script = own_directory / "hello.py"
    script.write_text(HELLO)
    return script


def launch(*args: str | bytes, redirection: str = "", **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *LAUNCH, "--python", sys.executable, *args]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)


def log_of(rank: int, log_dir: str = "log") -> bytes:
    return Path(log_dir, "latest", f"rank_{rank}.log").read_bytes()


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(stream: str) -> None:
    done = launch("hello.py", "1", redirection=stream)

    assert done.returncode == 0, done.stderr
    assert log_of(1) == b"['1'] None\n"


@pytest.mark.parametrize("code", [0, 5])
def test_stderr_that_takes_nothing_changes_no_exit_code(code: int) -> None:
    environ = {**os.environ, "CODE": str(code)}

    full = launch("hello.py", redirection="2> /dev/full", env=environ)
    command = '{ "$@" 2>&1 >&3; echo $? > code; } 3> out | true'
    subprocess.run(["bash", "-c", command, "bash", *LAUNCH, "hello.py"], timeout=60, check=True, env=environ)

    assert full.returncode == code
    assert Path("code").read_text() == f"{code}\n"


def test_bytes_that_are_no_text_pass_through(own_directory: Path) -> None:
    folder = os.fsencode(own_directory) + b"/d\xff"
    os.mkdir(folder)  # noqa: PTH102  (its name is bytes)
    environ = {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}

    done = launch(
        "--env", b"A=\xfe", b"../hello.py", b"\xff", cwd=folder, env={**environ, b"HCCL_X": b"\xfd"}
    )

    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    latest = Path(os.fsdecode(folder), "log", "latest")
    assert (latest / "rank_1.log").read_bytes().startswith(b"['\\udcff']")
    process = published.read("plan", latest / "plan.json")["processes"][1]
    assert os.fsencode(process["argv"][-1]) == b"\xff"
    assert os.fsencode(process["environment"]["A"]) == b"\xfe"


@pytest.mark.parametrize("form", ["--dry-run", "--dry-run=json", "--emit=rank_loop"])
def test_bytes_that_are_no_text_are_shown(form: str) -> None:
    done = launch(form, b"hello.py", b"\xff")

    assert done.returncode == 0, done.stderr
    assert (b"\xff" if "emit" in form else b"udcff") in done.stdout


@pytest.mark.parametrize("command", [(*LAUNCH[3:], "hello.py"), ("jobs",), ("stop", "x"), ("logs", "x")])
def test_folder_that_has_been_removed(command: tuple[str, ...], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = " ".join([sys.executable, "-m", "hccl_tools", *command])

    done = subprocess.run(
        ["sh", "-c", f"cd {gone} && rmdir {gone} && {words} 2>&1"],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip

    assert done.returncode == 2, done.stdout
    assert done.stdout.startswith("error: the current folder has been removed\n")


@pytest.mark.parametrize("pages_left", [0, 1])
def test_disk_that_is_full_before_the_start_leaves_nothing(full_disk: Path, pages_left: int) -> None:
    fill(full_disk, pages_left=pages_left)

    done = launch("--log-dir", str(full_disk / "log"), "hello.py")

    assert done.returncode == 125, done.stderr
    assert b"cannot be written: No space left on device" in done.stderr
    assert list((full_disk / "log").iterdir()) == []


def test_log_file_that_cannot_be_leaves_no_run() -> None:
    assert launch("hello.py").returncode == 0
    before = sorted(Path("log").iterdir())

    done = launch("--log-file", "nowhere/x.log", "hello.py")

    assert done.returncode == 125
    assert sorted(Path("log").iterdir()) == before
    assert (Path("log") / "latest").exists()


def test_one_endless_line_is_shown_from_its_end() -> None:
    Path("hello.py").write_text("import sys; sys.stdout.write('x' * 3_000_000 + 'the end'); sys.exit(4)\n")

    done = launch("--tail", "none", "hello.py")

    assert done.returncode == 4
    assert b"xxthe end\n" in done.stderr
    assert b"written nothing" not in done.stderr


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can only be mounted by root")
    (folder / "log").mkdir()
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, *, pages_left: int) -> None:
    """Leave so many pages of 4096 bytes of a small disk."""
    free = os.statvfs(folder)
    (folder / "fill").write_bytes(bytes(free.f_bsize * (free.f_bavail - pages_left)))
