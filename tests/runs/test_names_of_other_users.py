"""Another user gives a run the name of one of ours: commands find ours, or say that it is ambiguous."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runs.test_runs_of_other_users import OTHER, RUN, rank, tools

if TYPE_CHECKING:
    from tests.support.strangers import Stranger

pytestmark = pytest.mark.bed
SHORT = "20261127-202853-aca8"
FULL = f"{SHORT}81376f3f5b6c7d8e9fa0b1c2d3e4"
#: Commands that take the name of a run.
COMMANDS = (["logs"], ["stop"], ["stacks"], ["explain"])


def make(stranger: Stranger, uid: int, path: Path, line: str) -> Path:
    """Make a run of a user whose launcher was killed, with a line in its log."""
    made = stranger.folder / "made"
    stranger.as_user(uid).python(RUN, str(made), "rank_0.log", "0")
    (made / "rank_0.log").write_text(f"RuntimeError: {line}\n")
    made.rename(path)
    return path


@pytest.fixture
def log(stranger: Stranger) -> Path:
    """A log directory in which all users have their runs."""
    folder = stranger.folder / "log"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def test_the_name_of_a_run_of_ones_own_is_that_run(stranger: Stranger, log: Path) -> None:
    make(stranger, OTHER, log / FULL, "ours")
    theirs = make(stranger, stranger.user, log / SHORT, "theirs")

    assert tools(stranger, OTHER, "logs", SHORT).stdout == "RuntimeError: ours\n"
    assert "ours" in tools(stranger, OTHER, "explain", SHORT).stdout
    assert f"the launcher of {SHORT} was killed" in tools(stranger, OTHER, "stop", SHORT).stderr
    assert "has ended" in tools(stranger, OTHER, "stacks", SHORT).stderr
    assert tools(stranger, OTHER, "logs", str(theirs)).stdout == "RuntimeError: theirs\n"


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: str(words[0]))
def test_a_name_of_runs_of_two_users_is_ambiguous(stranger: Stranger, log: Path, words: list[str]) -> None:
    make(stranger, OTHER, log / FULL, "ours")
    make(stranger, stranger.user, log / SHORT, "theirs")

    done = tools(stranger, 0, *words, SHORT)

    text = " ".join(done.stderr.split())
    assert (done.returncode, done.stdout) == (2, ""), text
    assert f'"{SHORT}" is ambiguous: ' in text
    assert f"{SHORT} of nobody ({log}/{SHORT})" in text
    assert f"{SHORT} of user {OTHER} ({log}/{FULL})" in text
    assert "type the path of the run" in text
    chosen = tools(stranger, 0, "stop", f"{log}/{SHORT}").stderr
    assert f"the launcher of {SHORT} of nobody ({log}/{SHORT}) was killed" in chosen


def test_a_name_in_the_current_folder_is_ambiguous_as_well(stranger: Stranger, log: Path) -> None:
    """A bare name is a path, too: the folder can be a log directory of all users."""
    for name in (SHORT, FULL):
        make(stranger, stranger.user, stranger.folder / name, "theirs")
    make(stranger, OTHER, log / FULL, "ours")

    assert tools(stranger, OTHER, "logs", FULL).stdout == "RuntimeError: ours\n"
    assert "ambiguous" in tools(stranger, 0, "logs", FULL).stderr
    assert tools(stranger, 0, "logs", f"./{FULL}").stdout == "RuntimeError: theirs\n"
    shutil.rmtree(log / FULL)
    assert tools(stranger, OTHER, "logs", FULL).stdout == "RuntimeError: theirs\n"


def test_a_claimed_run_elsewhere_does_not_take_a_name_over(stranger: Stranger) -> None:
    own = stranger.folder / "own"
    own.mkdir(mode=0o755)
    make(stranger, 0, own / FULL, "ours")
    elsewhere = stranger.folder / "attack"
    stranger.python("import os; os.mkdir('attack')")
    for name in (SHORT, FULL):
        theirs = make(stranger, stranger.user, elsewhere / name, "theirs")
        with rank(stranger.user, theirs, "0") as pid:
            done = tools(stranger, 0, "logs", "--log-dir", "own", SHORT)
            assert done.stdout == "RuntimeError: ours\n", done.stderr
            stopped = tools(stranger, 0, "stop", "--log-dir", "own", SHORT)
            assert "no process of the run is left" in stopped.stderr
            assert Path(f"/proc/{pid}").exists()
        shutil.rmtree(theirs)


#: Holds the lock of a run as its launcher does; argv has the run directory.
LAUNCHER = """\
import fcntl, os, sys
file = open(sys.argv[1] + "/launcher", "r+")
fcntl.flock(file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""


def test_commands_without_a_name_mean_runs_of_ones_own(stranger: Stranger, log: Path) -> None:
    ours = make(stranger, OTHER, log / FULL, "ours")
    theirs = make(stranger, stranger.user, log / SHORT, "theirs")
    with subprocess.Popen(
        [stranger.interpreter, "-I", "-c", LAUNCHER, str(theirs)], user=stranger.user, group=stranger.user,
        extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as launcher:  # fmt: skip
        assert launcher.stdout is not None
        launcher.stdout.readline()
        for words in (["stop"], ["stop", "--all"]):
            with rank(OTHER, ours, "0"):
                done = tools(stranger, OTHER, *words)

            assert (done.returncode, done.stderr.count("killed 1 remaining process")) == (0, 1), done.stderr
        assert launcher.poll() is None
        launcher.communicate()


def test_a_list_gives_no_command_to_stop_a_run_of_another_user(stranger: Stranger) -> None:
    own = stranger.folder / "own"
    own.mkdir(mode=0o755)
    ours = make(stranger, 0, own / FULL, "ours")
    stranger.python("import os; os.mkdir('attack')")
    theirs = make(stranger, stranger.user, stranger.folder / "attack" / FULL, "theirs")
    with rank(stranger.user, theirs, "0"):
        text = " ".join(tools(stranger, 0, "jobs", "--log-dir", "own").stdout.split())
        assert "hccl-tools stop" not in text
        assert f"{SHORT} of nobody: 1 process is left" in text
        assert f"{SHORT} nobody launcher killed" in text
        assert f"{SHORT} - launcher killed" in text
        with rank(0, ours, "0"):
            text = " ".join(tools(stranger, 0, "jobs", "--log-dir", "own").stdout.split())
            assert f"`hccl-tools stop {SHORT}` ends them" in text


def test_a_list_names_a_run_elsewhere_by_its_path(stranger: Stranger) -> None:
    for name in ("own", "more"):
        (stranger.folder / name).mkdir()
        make(stranger, 0, stranger.folder / name / FULL, name)
    there = stranger.folder / "more" / FULL
    with rank(0, there, "0") as pid:
        text = " ".join(tools(stranger, 0, "jobs", "--log-dir", "own").stdout.split())
        assert f"`hccl-tools stop {there}` ends them" in text
        tools(stranger, 0, "stop", "--log-dir", "own", str(there))
        assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_root_stops_the_run_of_another_user_by_its_name_alone(stranger: Stranger, log: Path) -> None:
    theirs = make(stranger, stranger.user, log / SHORT, "theirs")
    with rank(stranger.user, theirs, "0") as pid:
        refused = tools(stranger, 0, "stop")
        is_left = Path(f"/proc/{pid}").exists()
        named = tools(stranger, 0, "stop", str(theirs))

    assert (refused.returncode, is_left) == (2, True), refused.stderr
    assert "the run that is running in log is one of nobody" in refused.stderr
    assert f"name it to stop it: `hccl-tools stop {theirs}`" in refused.stderr
    assert named.returncode == 0, named.stderr
