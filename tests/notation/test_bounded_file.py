"""Small files that users name: regular ones up to a size, and pipes that the shell has opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools.notation import bounded_file
from tests.support.jobs import LONG


def test_a_file_of_the_largest_size_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)

    assert bounded_file.read(str(file), 100) == b"x" * 100
    with pytest.raises(OSError, match="it is larger than 99 bytes"):
        bounded_file.read(str(file), 99)


def test_a_file_without_a_size_is_read() -> None:
    assert bounded_file.read("/proc/self/status", 1 << 16).startswith(b"Name:")


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match="it is a pipe, not a file"):
        bounded_file.read(str(tmp_path / "pipe"), 100)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        bounded_file.read(str(tmp_path), 100)


def test_a_device_is_refused() -> None:
    with pytest.raises(OSError, match="it is a device, not a file"):
        bounded_file.read("/dev/zero", 100)


def test_a_pipe_that_the_shell_has_opened_is_read_up_to_the_limit() -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"NAME=VALUE\n")
    os.close(theirs)
    with os.fdopen(ours):
        assert bounded_file.read(f"/dev/fd/{ours}", 100) == b"NAME=VALUE\n"


OPTIONS = {
    "--knowledge": ("explain", "x.log", "--knowledge"),
    "--env-file": ("launch", "-n", "1", "--cpu", "--dry-run", "--no-python", "true"),
    "--hostfile": ("gen", "--hostfile"),
    "--hccn-conf": ("gen", "--device_num", "[0,1)", "--hccn-conf"),
    "--rootinfo": ("gen", "--product", "a5", "--device_num", "[0,1)", "--rootinfo"),
}


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("path", ["pipe", "/dev/zero", "huge"])
def test_no_option_waits_for_a_pipe_or_reads_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("x.log").touch()
    with Path("huge").open("wb") as file:
        file.truncate(1 << 30)
    words = list(OPTIONS[option])
    words[1:1] = ["--env-file", path] if option == "--env-file" else []
    words += [] if option == "--env-file" else [path]
    # In another process: a command that waits without end must not stop the tests.
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )

    assert done.returncode in {1, 2}, done.stderr
    assert "error: " in done.stderr
    assert path in done.stderr
    assert "not a file" in done.stderr or "larger than" in done.stderr, done.stderr
