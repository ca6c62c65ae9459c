"""Reading whole files: anything else is refused with one sentence, without waiting."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.document import reading
from hccl_tools.document.reading import read_file
from hccl_tools.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def refusal(path: str | Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_file(path)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    return caught.value


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_bytes(b"\xef\xbb\xbf{}\0" * 300_000)

    assert read_file(file) == file.read_bytes()
    assert read_file(str(file)) == file.read_bytes()


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("table.json")

    assert read_file(tmp_path / "link.json") == b"{}"


def test_a_file_without_a_size_is_read() -> None:
    assert read_file("/proc/self/status").startswith(b"Name:")


def test_absent(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.json").message == f"no such file: {tmp_path}/no.json"
    (tmp_path / "file").touch()
    assert "a part of its path is a file" in refusal(tmp_path / "file" / "x.json").message


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "t.json").symlink_to("gone.json")

    error = refusal(tmp_path / "t.json")

    assert error.message == f"{tmp_path}/t.json is a symbolic link to gone.json, which does not exist"


def test_a_directory(tmp_path: Path) -> None:
    error = refusal(tmp_path)

    assert error.message == f"{tmp_path} is a directory, not a file"
    assert "this directory has no .json file" in str(error.hint)


def test_a_pipe_is_refused_and_nobody_waits(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)

    error = refusal(pipe)

    assert error.message == f"{pipe} is a pipe, not a file"
    assert "-" in str(error.hint)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/full"])
def test_a_device(device: str) -> None:
    assert refusal(device).message == f"{device} is a device, not a file"


def test_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.json")

        assert refusal("s.json").message == "s.json is a socket, not a file"


def test_a_link_that_leads_back_to_itself(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")

    assert "leads back to itself" in refusal(tmp_path / "a.json").message


def test_no_permission(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_text("{}")
    file.chmod(0)
    if os.access(file, os.R_OK):  # root reads everything: read it as the user nobody
        tmp_path.chmod(0o755)
        code = (
            "import os, sys; sys.path[:0] = [sys.argv[1]]\n"
            "from hccl_tools.errors import InputError\n"
            "from hccl_tools.document.reading import read_file\n"
            "os.setgid(65534); os.setuid(65534)\n"
            "os.chdir(sys.argv[2])\n"
            "try: read_file('table.json')\n"
            "except InputError as error: print(error.message)\n"
        )
        handle = os.open(tmp_path, os.O_PATH)
        try:
            printed = subprocess.run(
                [sys.executable, "-c", code, str(Path(__file__).parents[2]), f"/proc/self/fd/{handle}"],
                capture_output=True, text=True, check=True, pass_fds=[handle],
            ).stdout  # fmt: skip
        finally:
            os.close(handle)
        assert printed == "no permission to read table.json\n"
    else:
        assert refusal(file).message == f"no permission to read {file}"


def test_above_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(1 << 30)  # no blocks are used

    assert refusal(file).message == f"{file} is larger than 256 MiB"


def test_the_limit_itself_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SIZE_LIMIT", 10)
    file = tmp_path / "table.json"
    file.write_bytes(b"x" * 10)
    assert read_file(file) == b"x" * 10

    file.write_bytes(b"x" * 11)
    assert "larger than" in refusal(file).message


def test_odd_names() -> None:
    assert refusal("a\0b").message == "the file name has a zero byte: a\\u0000b"
    assert refusal("x" * 5000).message.startswith("the file name is too long: xxx")
    assert refusal("a\x1b[31m\n").message == "no such file: a\\u001b[31m\\u000a"


def run(stdin: int | None, before: Callable[[], None] | None = None) -> str:
    code = (
        "from hccl_tools.document.reading import read_file\n"
        "from hccl_tools.errors import InputError\n"
        "try: print(len(read_file('-')))\n"
        "except InputError as error: print(error.message)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        stdin=stdin,
        preexec_fn=before,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_bytes(b"x" * 3_000_000)

    with file.open("rb") as stream:
        assert run(stream.fileno()) == "3000000\n"
    with Path("/dev/zero").open("rb") as stream:
        assert run(stream.fileno()) == "standard input is larger than 256 MiB\n"


def test_standard_input_that_is_a_directory_or_closed(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        # Python itself refuses to start on a directory.
        code = subprocess.run(
            [sys.executable, "-c", ""], stdin=handle, capture_output=True, check=False
        ).returncode
    finally:
        os.close(handle)
    assert code != 0
    assert run(None, lambda: os.close(0)) == "standard input (-) is closed\n"
