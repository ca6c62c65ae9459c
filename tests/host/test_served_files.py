"""A start does not wait for a file system that another user serves: real ones (FUSE), by ordinary users."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import served_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.strangers import Stranger

pytestmark = [
    pytest.mark.bed,
    pytest.mark.skipif(os.geteuid() != 0, reason="root sees the descriptors of other users"),
]
_HOLDERS = """\
import sys
from hccl_tools.host import device_holders
from hccl_tools.host.site_defaults import Site
print(device_holders.holders([0], Site({"HCCL_TOOLS_ROOT": sys.argv[1]})))
"""


def ended(*argv: str, folder: Path | None = None) -> subprocess.CompletedProcess[str] | None:
    """Return what a program has printed, None if it does not end, even by SIGKILL."""
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    ) as started:
        try:
            out, err = started.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            started.kill()
            serving.abort()
            return None
    return subprocess.CompletedProcess(argv, started.returncode, out, err)


class Serving:
    """The programs that serve: with their end, the kernel answers in their place."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[str]] = []

    def abort(self) -> None:
        """End them."""
        for one in self.started:
            one.kill()
        self.started.clear()


serving = Serving()


@contextmanager
def served(stranger: Stranger, what: str) -> Iterator[None]:
    """A file system that the stranger serves in a mount namespace of its own."""
    fuse, program = stranger.folder / "fuse", stranger.folder / "served_files.py"
    os.mknod(fuse, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
    fuse.chmod(0o666)
    shutil.copy(served_files.__file__, program)
    own = stranger.folder / "of_user"
    own.mkdir()
    os.chown(own, stranger.user, stranger.user)
    argv = ["unshare", "-Urm", stranger.interpreter, "-I", str(program), what, str(fuse), str(own)]
    with subprocess.Popen(
        argv, user=stranger.user, group=stranger.user, extra_groups=[], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdout is not None
        assert started.stderr is not None
        serving.started.append(started)
        if started.stdout.readline() != "up\n":
            pytest.skip(f"a user cannot serve a file system here: {started.stderr.read()[-200:]}")
        try:
            yield
        finally:
            serving.abort()


@pytest.mark.parametrize("what", ["plain", "forge", "exchange"])
def test_no_descriptor_of_a_user_keeps_a_start_waiting(stranger: Stranger, tmp_path: Path, what: str) -> None:
    """Neither a forged line in the list of mounts nor an exchange of descriptors makes it ask."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "davinci0").touch()
    with served(stranger, what):
        for _ in range(8 if what == "exchange" else 1):
            done = ended(sys.executable, "-c", _HOLDERS, str(tmp_path))
            assert done is not None, "it waits for the file system"
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith("([], "), done.stdout


@pytest.mark.parametrize("place", ["run", "a\rrun", "a\u2028run", "run/plan.json"])
def test_a_list_of_runs_does_not_wait_for_a_file_system_of_a_user(stranger: Stranger, place: str) -> None:
    """With user_allow_other, fusermount mounts what a user serves so that root can look at it."""
    fuse, program = stranger.folder / "fuse", stranger.folder / "served_files.py"
    os.mknod(fuse, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
    shutil.copy(served_files.__file__, program)
    point = stranger.folder / place
    run = point.parent if place.endswith(".json") else point / "20261129-032903-x"
    stranger.python("import os, sys; os.makedirs(sys.argv[1])", str(run))
    if run == point.parent:  # One file of the run is mounted.
        stranger.python("import sys; open(sys.argv[1], 'w').write('{}')", str(point))
    kind = "0100666" if run == point.parent else "040000"
    script = f"""\
import os, subprocess, sys
sys.path.insert(0, {str(Path(served_files.__file__).parent)!r})
import served_files
fd = os.open({str(fuse)!r}, os.O_RDWR)
served_files.mount("x", {str(point)!r}, "fuse", 6,
    f"fd={{fd}},rootmode={kind},user_id={stranger.user},group_id={stranger.user},allow_other")
user = dict(user={stranger.user}, group={stranger.user}, extra_groups=[])
server = subprocess.Popen(
    [{stranger.interpreter!r}, "-I", {str(program)!r}, "answer", str(fd), ""], pass_fds=[fd],
    stdout=subprocess.PIPE, **user)
os.close(fd)
server.stdout.readline()
claim = subprocess.Popen(["sleep", "60"], env={{"HCCL_TOOLS_RUN_DIR": {str(run)!r}}}, **user)
jobs = subprocess.Popen([sys.executable, "-m", "hccl_tools", "jobs", "--log-dir", "/proc"],
    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
try:
    out, err = jobs.communicate(timeout=20)
    print("ended", jobs.returncode, out, err, sep="|")
except subprocess.TimeoutExpired:
    print("waits")
claim.kill()
server.kill()
jobs.kill()
"""
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", script],
        capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ),
    )  # fmt: skip
    if "served_files.mount" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip(done.stderr[-200:])

    assert done.stdout.startswith("ended|0|"), done.stdout + done.stderr
    assert "20261129-032903" not in done.stdout
