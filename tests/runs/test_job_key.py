"""The job key: where it is found, which files are refused, and how its file is created."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import HcclToolsError, InputError, UsageError, WriteError
from hccl_tools.runs import job_key
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.strangers import Stranger

KEY = "0123456789abcdefABCDEF0123456789" * 2
OTHER = "f" * 64
#: What the stranger runs: where the key of a file is found, or the message.
ASK = """\
import sys
from hccl_tools.errors import InputError
from hccl_tools.runs import job_key
try:
    print(job_key.find({sys.argv[1]: sys.argv[2]}).source)
except InputError as error:
    print(error.message)
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def file(path: Path, text: str = KEY, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def default(home: Path) -> Path:
    return home / ".config" / "hccl-tools" / "job-key"


def refused(environ: dict[str, str]) -> HcclToolsError:
    with pytest.raises(UsageError) as caught:
        job_key.find(environ)
    assert caught.value.hint
    assert KEY not in f"{caught.value} {caught.value.hint}"
    return caught.value


def asked(stranger: Stranger, variable: str, value: Path) -> str:
    done = stranger.run(stranger.interpreter, "-c", ASK, variable, str(value))
    assert done.stderr == ""
    return done.stdout.strip()


def test_no_key(tmp_path: Path) -> None:
    assert job_key.find({"HOME": str(tmp_path)}) is None


@pytest.mark.parametrize("home", ["/dev/null", "/nonexistent", "relative"])
def test_a_service_without_a_home_directory_has_no_key(home: str) -> None:
    assert job_key.find({"HOME": home}) is None


def test_the_order_of_the_sources(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    file(default(tmp_path))
    in_home = job_key.find(environ)
    environ["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    nothing = job_key.find(environ)
    file(tmp_path / "config" / "hccl-tools" / "job-key", "a" * 64)
    in_config = job_key.find(environ)
    environ["HCCL_TOOLS_JOB_KEY_FILE"] = str(file(tmp_path / "mounted", "b" * 64))
    mounted = job_key.find(environ)
    environ["HCCL_TOOLS_JOB_KEY"] = "c" * 64
    named = job_key.find(environ)

    assert in_home == (bytes.fromhex(KEY), "~/.config/hccl-tools/job-key")
    assert nothing is None
    assert in_config == (b"\xaa" * 32, "~/config/hccl-tools/job-key")
    assert mounted == (b"\xbb" * 32, f"{tmp_path}/mounted (HCCL_TOOLS_JOB_KEY_FILE)")
    assert named == (b"\xcc" * 32, "HCCL_TOOLS_JOB_KEY")


@pytest.mark.parametrize("config", ["", "relative"])
def test_a_relative_config_home_is_ignored(tmp_path: Path, config: str) -> None:
    assert job_key.path({"HOME": str(tmp_path), "XDG_CONFIG_HOME": config}) == str(default(tmp_path))


def test_the_home_directory_of_the_user_database() -> None:
    home = pwd.getpwuid(os.geteuid()).pw_dir

    assert job_key.path({}) == f"{home}/.config/hccl-tools/job-key"


def test_no_home_directory() -> None:
    with pytest.raises(UsageError, match="no home directory"):
        job_key.path({"HOME": "relative"})


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_newline_at_the_end(tmp_path: Path, end: str) -> None:
    in_file = job_key.find({"HCCL_TOOLS_JOB_KEY_FILE": str(file(tmp_path / "key", KEY + end))})
    in_variable = job_key.find({"HCCL_TOOLS_JOB_KEY": KEY + end})

    assert in_file is not None
    assert in_variable is not None
    assert in_file.secret == in_variable.secret == bytes.fromhex(KEY)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        (KEY[:-1], "has 63 digits, not 64"),
        (KEY + "0", "has 65 digits, not 64"),
        (KEY[:-1] + "g", "has characters that are not hexadecimal digits"),
        (f" {KEY[1:]}", "has characters that are not hexadecimal digits"),
        (f"{KEY}\n\n", "has characters that are not hexadecimal digits"),
        (f"{KEY}\n{KEY}\n", "has characters that are not hexadecimal digits"),
        ("٣" * 64, "has characters that are not hexadecimal digits"),
    ],
)
def test_a_text_that_is_not_a_key(tmp_path: Path, text: str, problem: str) -> None:
    key = file(tmp_path / "key", text)

    in_variable = refused({"HCCL_TOOLS_JOB_KEY": text})
    in_file = refused({"HCCL_TOOLS_JOB_KEY_FILE": str(key)})

    assert in_variable.message == f"HCCL_TOOLS_JOB_KEY {problem}"
    assert in_file.message == f"the job key {key} {problem}"
    assert isinstance(in_file, InputError)


def test_a_wrong_source_is_not_skipped(tmp_path: Path) -> None:
    file(default(tmp_path))

    error = refused({"HOME": str(tmp_path), "HCCL_TOOLS_JOB_KEY_FILE": str(tmp_path / "absent")})
    empty = refused({"HOME": str(tmp_path), "HCCL_TOOLS_JOB_KEY_FILE": ""})

    assert error.message == f"the job key {tmp_path}/absent cannot be read: no such file or directory"
    assert empty.message == "HCCL_TOOLS_JOB_KEY_FILE is empty"


def fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def listener(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(path))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (fifo, "is not a regular file"),
        (Path.mkdir, "is not a regular file"),
        (listener, "cannot be read: no such device or address"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda path: path.symlink_to("absent"), "is a symbolic link to a file that does not exist"),
        (lambda path: path.symlink_to("job-key"), "cannot be read: too many levels of symbolic links"),
        (lambda path: file(path, "0" * 5000), "is larger than 4 KiB"),
    ],
)
def test_something_else_than_a_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    path = default(Path("home"))
    path.parent.mkdir(parents=True)
    make(path)

    for environ in ({"HOME": f"{tmp_path}/home"}, {"HCCL_TOOLS_JOB_KEY_FILE": f"{tmp_path}/{path}"}):
        assert refused(environ).message == f"the job key {tmp_path}/{path} {problem}"


@pytest.mark.parametrize(
    ("mode", "what"),
    [
        (0o640, "read"),
        (0o604, "read"),
        (0o644, "read"),
        (0o620, "change"),
        (0o666, "change"),
        (0o601, "read"),
    ],
)
def test_a_file_that_is_open_to_others(tmp_path: Path, mode: int, what: str) -> None:
    key = file(default(tmp_path), mode=mode)

    error = refused({"HOME": str(tmp_path)})

    assert error.message == f"other users can {what} the job key {key} (mode {mode:04o})"
    assert error.hint is not None
    assert error.hint.startswith(f"run `chmod 600 {key}`; ")


def test_a_link_to_an_own_file(tmp_path: Path) -> None:
    default(tmp_path).parent.mkdir(parents=True)
    default(tmp_path).symlink_to(file(tmp_path / "dotfiles" / "job-key"))

    found = job_key.find({"HOME": str(tmp_path)})

    assert found == (bytes.fromhex(KEY), "~/.config/hccl-tools/job-key")


@needs_root
@pytest.mark.parametrize("variable", ["HOME", "HCCL_TOOLS_JOB_KEY_FILE"])
@pytest.mark.parametrize("by_link", [False, True])
def test_a_file_of_another_user(tmp_path: Path, variable: str, by_link: bool) -> None:
    key = default(tmp_path)
    key.parent.mkdir(parents=True)
    planted = file(tmp_path / "planted") if by_link else file(key)
    os.chown(planted, 65534, 65534)
    if by_link:
        key.symlink_to(planted)

    error = refused({variable: str(tmp_path if variable == "HOME" else key)})

    assert error.message == f"the job key {key} belongs to nobody, not to root"


def test_a_directory_that_this_user_cannot_search(stranger: Stranger) -> None:
    folder = stranger.folder / "closed"
    key = file(default(folder))
    key.parent.chmod(0o700)

    assert asked(stranger, "HOME", folder) == f"the job key {key} cannot be read: permission denied"


@pytest.mark.parametrize(
    ("mode", "group", "answer"),
    [
        (0o640, 65534, "{key} (HCCL_TOOLS_JOB_KEY_FILE)"),
        (0o440, 65534, "{key} (HCCL_TOOLS_JOB_KEY_FILE)"),
        (0o640, 0, "the job key {key} cannot be read: permission denied"),
        (0o644, 0, "other users can read the job key {key} (mode 0644)"),
        (0o444, 0, "other users can read the job key {key} (mode 0444)"),
        (0o660, 65534, "other users can change the job key {key} (mode 0660)"),
    ],
)
def test_a_file_of_root_for_another_user(stranger: Stranger, mode: int, group: int, answer: str) -> None:
    key = file(stranger.folder / "key", mode=mode)
    os.chown(key, 0, group)

    assert asked(stranger, "HCCL_TOOLS_JOB_KEY_FILE", key) == answer.format(key=key)


def test_a_file_of_root_is_not_accepted_as_the_default_file(stranger: Stranger) -> None:
    key = file(default(stranger.folder), mode=0o640)
    os.chown(key, 0, 65534)
    key.parent.chmod(0o755)

    assert asked(stranger, "HOME", stranger.folder) == f"the job key {key} belongs to root, not to nobody"


#: What the kubelet and a container runtime do: a tmpfs with links to the current version, which is bound into
#: the container. $1 is the folder of both, $2 the option of the container's mount, the rest is the program.
MOUNT = """\
set -e
mount -t tmpfs -o mode=1777 tmpfs "$1/volume"
mkdir "$1/volume/..2026_11_23"
echo $KEY > "$1/volume/..2026_11_23/key"
chmod 0644 "$1/volume/..2026_11_23/key"
ln -s ..2026_11_23 "$1/volume/..data"
ln -s ..data/key "$1/volume/key"
mount --bind "$1/volume" "$1/mounted"
mount -o "remount,bind,$2" "$1/mounted"
shift 2
exec setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"
"""


@pytest.mark.parametrize(
    ("option", "answer"),
    [
        ("ro", "{key} (HCCL_TOOLS_JOB_KEY_FILE)"),
        ("rw", "other users can read the job key {key} (mode 0644)"),
    ],
)
def test_a_mounted_secret_of_kubernetes(stranger: Stranger, option: str, answer: str) -> None:
    folder = stranger.folder
    for name in ("volume", "mounted"):
        (folder / name).mkdir()
    key = folder / "mounted" / "key"
    program = [stranger.interpreter, "-c", ASK, "HCCL_TOOLS_JOB_KEY_FILE", str(key)]
    environ = {**stranger.environ(), "KEY": KEY}

    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", MOUNT, "sh", str(folder), option, *program],
        env=environ, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    if "unshare failed" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"mounts are not allowed here: {done.stderr.strip()}")

    assert (done.stdout.strip(), done.stderr) == (answer.format(key=key), "")


def test_a_key_is_not_printed() -> None:
    key = job_key.find({"HCCL_TOOLS_JOB_KEY": KEY})

    assert repr(key) == str(key) == "JobKey(source='HCCL_TOOLS_JOB_KEY')"


@pytest.mark.parametrize(("value", "required"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_whether_a_key_is_required(value: str | None, required: bool) -> None:
    environ = {} if value is None else {"HCCL_TOOLS_REQUIRE_KEY": value}

    assert job_key.is_required(environ) is required


@pytest.mark.parametrize("value", ["yes", "true", " 1", "2"])
def test_a_wrong_value_does_not_mean_that_no_key_is_required(value: str) -> None:
    with pytest.raises(UsageError, match="not 0 or 1"):
        job_key.is_required({"HCCL_TOOLS_REQUIRE_KEY": value})


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_key(tmp_path: Path, umask: int) -> None:
    home = tmp_path / "home"
    (home / ".config").mkdir(parents=True)
    old = os.umask(umask)
    try:
        job_key.create(str(default(home)), force=False)
    finally:
        os.umask(old)

    found = job_key.find({"HOME": str(home)})
    assert found is not None
    assert found.secret.hex() + "\n" == default(home).read_text()
    assert default(home).stat().st_mode & 0o777 == 0o600
    assert default(home).parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(default(home).parent) == ["job-key"]  # noqa: PTH208


def test_missing_directories_are_created_for_the_user_only(tmp_path: Path) -> None:
    job_key.create(str(default(tmp_path)), force=False)

    assert [path.stat().st_mode & 0o777 for path in default(tmp_path).parents][:2] == [0o700, 0o700]


def test_a_directory_that_is_open_to_others_is_closed(tmp_path: Path) -> None:
    default(tmp_path).parent.mkdir(parents=True)
    default(tmp_path).parent.chmod(0o777)

    job_key.create(str(default(tmp_path)), force=False)

    assert default(tmp_path).parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("make", [file, Path.mkdir, lambda path: path.symlink_to("absent")])
def test_what_exists_is_kept(tmp_path: Path, make: Callable[[Path], object]) -> None:
    default(tmp_path).parent.mkdir(parents=True)
    make(default(tmp_path))

    with pytest.raises(WriteError) as caught:
        job_key.create(str(default(tmp_path)), force=False)

    assert caught.value.message == f"no job key is created: {default(tmp_path)} exists"
    assert caught.value.hint == "--force replaces it; all other hosts then need the new key"
    assert not default(tmp_path).is_file() or default(tmp_path).read_text() == KEY
    assert os.listdir(default(tmp_path).parent) == ["job-key"]  # noqa: PTH208


def test_force_replaces_a_link_but_not_its_target(tmp_path: Path) -> None:
    default(tmp_path).parent.mkdir(parents=True)
    target = file(tmp_path / "target", mode=0o644)
    default(tmp_path).symlink_to(target)

    job_key.create(str(default(tmp_path)), force=True)

    assert (target.read_text(), target.stat().st_mode & 0o777) == (KEY, 0o644)
    assert not default(tmp_path).is_symlink()
    assert default(tmp_path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("/dev/null", "cannot be written: not a directory"),
        ("file", "cannot be written: not a directory"),
    ],
)
def test_a_place_that_cannot_be_written(tmp_path: Path, config: str, problem: str) -> None:
    if config == "file":
        (tmp_path / "config").mkdir()
        file(tmp_path / "config" / "hccl-tools")
        config = f"{tmp_path}/config"
    path = f"{config}/hccl-tools/job-key"

    with pytest.raises(WriteError) as caught:
        job_key.create(path, force=True)

    assert caught.value.message == f"no job key is created: {path} {problem}"


@needs_root
def test_the_directory_of_another_user(tmp_path: Path) -> None:
    default(tmp_path).parent.mkdir(parents=True)
    os.chown(default(tmp_path).parent, 65534, 65534)

    with pytest.raises(WriteError, match="belongs to nobody, not to root"):
        job_key.create(str(default(tmp_path)), force=True)


def attempt(path: str) -> bool:
    try:
        job_key.create(path, force=False)
    except WriteError:
        return False
    return True


@pytest.mark.slow
def test_one_of_many_processes_creates_the_key(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        for number in range(20):
            path = default(tmp_path / str(number))
            created = list(pool.map(attempt, [str(path)] * 16))

            assert created.count(True) == 1
            assert os.listdir(path.parent) == ["job-key"]  # noqa: PTH208
            assert job_key.find({"HCCL_TOOLS_JOB_KEY_FILE": str(path)}) is not None


@pytest.mark.slow
def test_a_reader_sees_a_complete_key_while_it_is_replaced(tmp_path: Path) -> None:
    path = default(tmp_path)
    job_key.create(str(path), force=False)
    replace = (
        "import sys; from hccl_tools.runs import job_key\nwhile True: job_key.create(sys.argv[1], force=True)"
    )
    with subprocess.Popen([sys.executable, "-c", replace, str(path)]) as writer:
        seen: set[bytes] = set()

        def has_seen_many() -> bool:
            found = job_key.find({"HOME": str(tmp_path)})
            assert found is not None
            seen.add(found.secret)
            return len(seen) >= 50

        are_many = eventually(has_seen_many)
        writer.kill()

    assert are_many


def test_the_module_is_cheap_to_import() -> None:
    code = "import sys; from hccl_tools.runs import job_key; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-Sc", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(job_key.__file__).parents[2])},
    )  # fmt: skip

    assert not {"click", "hashlib", "ssl", "typing", "re", "pwd", "pathlib"} & set(done.stdout.split())
