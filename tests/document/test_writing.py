"""Atomic writing: readers see the old file or the new one, whatever happens in between."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import TableError, WriteError

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD = "the old text\n"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    file = tmp_path / "table.json"
    file.write_text(OLD)
    return file


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def refusal(path: Path, chunks: list[str] | None = None) -> WriteError:
    with pytest.raises(WriteError) as caught:
        write_atomically(path, chunks or ["new"])
    assert caught.value.message.startswith(f"{path} cannot be written: ") or path.is_symlink()
    assert "\n" not in caught.value.message
    return caught.value


def test_the_pieces_become_the_file(tmp_path: Path) -> None:
    written = write_atomically(tmp_path / "new.json", iter(["{", '"设备": 1', "}\n"]))

    assert written == str(tmp_path / "new.json")
    assert (tmp_path / "new.json").read_bytes() == '{"设备": 1}\n'.encode()
    assert names(tmp_path) == ["new.json"]


@pytest.mark.usefixtures("umask")
def test_modes(tmp_path: Path) -> None:
    new, old, given = tmp_path / "new.json", tmp_path / "old.json", tmp_path / "given.json"
    old.touch()
    old.chmod(0o604)

    write_atomically(new, ["x"])
    write_atomically(old, ["x"])
    write_atomically(given, ["x"], mode=0o666)
    assert [mode(file) for file in (new, old, given)] == [0o640, 0o604, 0o666]

    write_atomically(old, ["x"], mode=0o400)
    assert mode(old) == 0o400

    old.chmod(0o6755)
    write_atomically(old, ["x"])
    assert mode(old) == 0o755


@pytest.mark.bed
def test_an_existing_file_keeps_its_owner(target: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(target, 4321, 1234)
    target.chmod(0o640)

    write_atomically(target, ["new"])

    status = target.stat()
    assert (status.st_uid, status.st_gid, mode(target)) == (4321, 1234, 0o640)


def test_behind_a_link_the_file_is_replaced_and_the_link_stays(tmp_path: Path, target: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "link.json"
    link.symlink_to("../table.json")

    written = write_atomically(link, ["new"])

    assert written == str(target)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert names(tmp_path / "folder") == ["link.json"]


def test_behind_a_link_to_nothing_the_file_is_made(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("real.json")

    assert write_atomically(link, ["new"]) == str(tmp_path / "real.json")
    assert (tmp_path / "real.json").read_text() == "new"


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert "leads back to itself" in refusal(tmp_path / "a").message
    assert names(tmp_path) == ["a", "b"]


def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert "it is a directory" in refusal(tmp_path).message
    assert "a device or a pipe" in refusal(tmp_path / "pipe").message
    assert "a device or a pipe" in refusal(Path("/dev/null")).message
    assert Path("/dev/null").is_char_device()


def test_folders_that_are_not_there(tmp_path: Path, target: Path) -> None:
    assert "its folder does not exist" in refusal(tmp_path / "no" / "table.json").message
    assert "its folder is a file" in refusal(target / "table.json").message
    assert "its name is too long" in refusal(tmp_path / ("x" * 256)).message


def test_a_read_only_folder(tmp_path: Path, target: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("root writes into every folder")
        assert "no permission" in refusal(target).message
        assert names(tmp_path) == ["table.json"]
    finally:
        tmp_path.chmod(0o755)
    assert target.read_text() == OLD


def test_pieces_that_fail_leave_the_old_file(tmp_path: Path, target: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "x" * 100_000
        raise TableError("no more")

    with pytest.raises(TableError, match="no more"):
        write_atomically(target, pieces())
    assert "lone surrogate" in refusal(target, ["\ud800"]).message

    assert target.read_text() == OLD
    assert names(tmp_path) == ["table.json"]


def test_a_file_size_limit_leaves_the_old_file(tmp_path: Path, target: Path) -> None:
    code = (
        "import sys\n"
        "from hccl_tools.document.writing import write_atomically\n"
        "from hccl_tools.errors import WriteError\n"
        "try: write_atomically(sys.argv[1], ['x' * 10_000] * 100)\n"
        "except WriteError as error: print(error.message)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code, str(target)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip

    assert printed == f"{target} cannot be written: it would exceed the file size limit\n"
    assert target.read_text() == OLD
    assert names(tmp_path) == ["table.json"]


def test_a_kill_in_the_middle_leaves_the_old_file(tmp_path: Path, target: Path) -> None:
    code = (
        "import sys\n"
        "from hccl_tools.document.writing import write_atomically\n"
        "def half():\n"
        "    for _ in range(1000):\n"
        "        yield 'x' * 4096\n"
        "    print('half', flush=True)\n"
        "    sys.stdin.read()\n"
        "write_atomically(sys.argv[1], half())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline()
        sizes = [file.stat().st_size for file in tmp_path.glob(".hccl-tools-*.tmp")]
        child.kill()

    assert said == "half\n"
    assert max(sizes) > 100_000

    assert target.read_text() == OLD


def in_own_mounts(commands: str, *arguments: str) -> str:
    """Run a program in mount name space of its own, so that nothing stays mounted."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    program = (
        "import sys\n"
        "from hccl_tools.document.writing import write_atomically\n"
        "from hccl_tools.errors import WriteError\n"
        "try: write_atomically(sys.argv[1], ['x' * 10_000] * 100)\n"
        "except WriteError as error: print(error.message)\n"
    )
    script = f'{commands}\n"$PYTHON" -c "$PROGRAM" "$1"\nls -A "$2"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script, "sh", *arguments],
        env={**os.environ, "PYTHON": sys.executable, "PROGRAM": program},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.bed
def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()

    printed = in_own_mounts(
        'mount -t tmpfs -o size=64k tmpfs "$2"; echo old > "$1"', f"{disk}/t.json", str(disk)
    )

    assert printed == f"{disk}/t.json cannot be written: the disk is full\nt.json\n"


@pytest.mark.bed
def test_a_read_only_file_system(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    commands = 'mount -t tmpfs tmpfs "$2"; echo old > "$1"; mount -o remount,ro "$2"'

    printed = in_own_mounts(commands, f"{disk}/t.json", str(disk))

    assert printed == f"{disk}/t.json cannot be written: the file system is read-only\nt.json\n"


@pytest.mark.bed
def test_a_mounted_file_is_refused_with_the_reason(tmp_path: Path, target: Path) -> None:
    other = tmp_path / "other.json"
    other.touch()

    printed = in_own_mounts(f'mount --bind "$1" "{other}"; set -- "{other}" "$2"', str(target), str(tmp_path))

    assert printed.startswith(f"{other} cannot be written: it is a mount point")
    assert names(tmp_path) == ["other.json", "table.json"]
    assert target.read_text() == OLD


#: Replaces a huge file; argv has the file. The memory of the process is limited.
HUGE = """\
import resource, sys
from hccl_tools.document.writing import write_atomically, write_together
from hccl_tools.errors import WriteError
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
for write in (lambda: write_atomically(sys.argv[1], ["new"], read=b"old"),
              lambda: write_together({sys.argv[1]: "new", sys.argv[1] + ".other": "new"})):
    try:
        write()
    except WriteError as error:
        print(error.message)
"""


def test_a_huge_file_that_is_compared_or_kept_costs_no_memory(tmp_path: Path) -> None:
    """Another user can put one in the place of the file that was read."""
    huge = tmp_path / "table.json"
    with huge.open("wb") as file:
        file.truncate(6 << 30)

    done = subprocess.run(
        [sys.executable, "-c", HUGE, str(huge)], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{huge} has changed since it was read",
        f"{huge} cannot be replaced: it has more than 256 MiB; no file is changed",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["table.json"]
