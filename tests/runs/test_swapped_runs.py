"""Attacks of a user who can rename files in a parent of a run directory, as real users of this host."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.runs import parents
from tests.support.jobs import LONG, eventually
from tests.support.mpiruns import every_mpirun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.mpiruns import Mpirun
    from tests.support.strangers import Stranger

pytestmark = pytest.mark.bed
#: An ordinary user with no group in common with the stranger.
VICTIM = 61001
LAUNCH = ("-m", "hccl_tools.launch", "--no-table", "-n", "1", "--start", "table", "--no-python")
#: The first start waits until the stranger is done, and fails.
TWICE = """\
if [ "$HCCL_TOOLS_RESTART" = 0 ]; then
    echo first; until [ -e "$0" ]; do sleep 0.02; done; exit 1
fi
echo second
"""
#: Arguments: how, the run, the victim's file and directory, and another run.
SWAP = """\
import ctypes, os, sys
how, run, victim, folder, other = sys.argv[1:]
own = run + ".own"
os.mkdir(own, 0o777)
os.chmod(own, 0o777)
for name in ("rank_0.restart_1.log", "report.json", "launcher", "hosts.jsonl", "hang_1.txt"):
    os.symlink(victim, f"{own}/{name}")
if how == "exchange":
    AT_FDCWD, RENAME_EXCHANGE = -100, 2
    names = run.encode(), own.encode()
    assert ctypes.CDLL(None).renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0
    os.rename(own, run + ".moved")
else:
    os.rename(run, run + ".moved")
    if how == "directory":
        os.rename(own, run)
    elif how == "link":
        os.symlink(folder, run)
    else:
        os.rename(other, run)
"""


@contextmanager
def job(victim: Stranger, *command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [victim.interpreter, *command], cwd="/", env=victim.environ(), user=victim.user, group=victim.user,
        extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as started:  # fmt: skip
        try:
            yield started
        finally:
            started.terminate()


def private_folder(parent: Path, user: int) -> Path:
    """A directory of the victim that the stranger cannot enter, with a file and a report."""
    folder = parent / "private"
    folder.mkdir(mode=0o700)
    for name in ("bashrc", "report.json"):
        (folder / name).write_text("precious")
        os.chown(folder / name, user, user)
    os.chown(folder, user, user)
    return folder


@pytest.fixture(params=[0, VICTIM], ids=["root", "user"])
def victim(request: pytest.FixtureRequest, stranger: Stranger) -> Stranger:
    found = stranger.as_user(request.param)
    if found.run(found.interpreter, "-c", "import hccl_tools, click").returncode:
        pytest.skip("no Python that a further user may run")
    return found


def the_run(log_dir: Path) -> Path:
    assert eventually(lambda: list(log_dir.glob("2*/rank_0.log")) != [])
    (found,) = log_dir.glob("2*/rank_0.log")
    assert eventually(lambda: found.read_text() != "")
    return found.parent


@pytest.mark.parametrize("how", ["directory", "exchange", "link", "own directory"])
def test_a_run_that_is_swapped_is_written_where_it_is(
    how: str, stranger: Stranger, victim: Stranger, tmp_path: Path
) -> None:
    log_dir, go = stranger.folder / "log", stranger.folder / "go"
    log_dir.mkdir()
    log_dir.chmod(0o777)
    private = private_folder(stranger.folder, victim.user)
    other = log_dir / "other"
    other.mkdir(mode=0o700)
    os.chown(other, victim.user, victim.user)
    options = ("--log-dir", str(log_dir), "--max-restarts", "1", "sh", "-c", TWICE, str(go))
    with job(victim, *LAUNCH, *options) as launched:
        run = the_run(log_dir)
        stranger.python(SWAP, how, str(run), str(private / "bashrc"), str(private), str(other))
        go.touch()
        said, _ = launched.communicate(timeout=LONG)

    moved = Path(f"{run}.moved")
    assert launched.returncode == 0, said
    assert (moved / "rank_0.restart_1.log").read_text() == "second\n"
    assert '"exit_code": 0' in (moved / "report.json").read_text()
    assert {path.read_text() for path in private.iterdir()} == {"precious"}
    if how == "own directory":
        assert list(run.iterdir()) == []


@pytest.mark.mpi
@every_mpirun
def test_ranks_of_mpirun_write_to_no_directory_that_took_the_place(
    mpirun: Mpirun, stranger: Stranger
) -> None:
    """The shims of a restart get the path, and the identity of the directory that the launcher holds."""
    log_dir, go = stranger.folder / "log", stranger.folder / "go"
    log_dir.mkdir()
    log_dir.chmod(0o777)
    private = private_folder(stranger.folder, 0)
    root = replace(stranger.as_user(0), interpreter=sys.executable)
    options = (*mpirun.for_launch, "-n", "2", "--start", "table", "--no-python", "--max-restarts", "1")
    at = ("--log-dir", str(log_dir), "sh", "-c", TWICE, str(go))
    with job(root, "-m", "hccl_tools.launch", *options, *at) as launched:
        run = the_run(log_dir)
        stranger.python(SWAP, "directory", str(run), str(private / "bashrc"), str(private), "")
        go.touch()
        said, _ = launched.communicate(timeout=LONG)

    assert launched.returncode == 0, said
    assert {path.read_text() for path in Path(f"{run}.moved").glob("rank_*.restart_1.log")} == {"second\n"}
    assert {path.read_text() for path in private.iterdir()} == {"precious"}
    assert '"exit_code": ' in Path(f"{run}.moved/report.json").read_text()


#: Arguments: the directory of logs, the victim's file. Swaps the first run as fast as it can.
SWAP_AT_ONCE = """\
import os, sys
log_dir, victim = sys.argv[1:]
own = log_dir + ".own"
os.mkdir(own)
os.chmod(own, 0o777)
for name in ("rank_0.log", "report.json", "plan.json", "launcher"):
    os.symlink(victim, f"{own}/{name}")
print("ready", flush=True)
while True:
    for name in os.listdir(log_dir):
        if name.startswith("2") and not name.endswith(".moved"):
            os.rename(f"{log_dir}/{name}", f"{log_dir}/{name}.moved")
            os.rename(own, f"{log_dir}/{name}")
            print("swapped", flush=True)
            sys.exit()
"""


def test_a_run_that_is_swapped_as_it_begins_harms_nobody(stranger: Stranger, victim: Stranger) -> None:
    """At which moment the swap comes differs: the job runs in its directory, or is refused."""
    private = private_folder(stranger.folder, victim.user)
    for number in range(3):
        log_dir = stranger.folder / f"log{number}"
        log_dir.mkdir()
        log_dir.chmod(0o777)
        with job(stranger, "-I", "-c", SWAP_AT_ONCE, str(log_dir), str(private / "bashrc")) as swapping:
            assert swapping.stdout is not None
            assert swapping.stdout.readline() == "ready\n"
            options = ("--log-dir", str(log_dir), "echo", "hello")
            with job(victim, *LAUNCH, *options) as launched:
                said, _ = launched.communicate(timeout=LONG)
            assert swapping.stdout.readline() == "swapped\n"

        assert "Traceback" not in said
        assert launched.returncode in {0, 125}, said
        assert {path.read_text() for path in private.iterdir()} == {"precious"}


REFUSED = {
    "all may write": (0, 0o777, "lets every user replace them"),
    "the stranger's": (65534, 0o755, "belongs to nobody, who could replace them"),
    "the stranger's, sticky": (65534, 0o1777, "belongs to nobody, who could replace them"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("below", ["", "a/b"], ids=["itself", "two levels up"])
def test_folder_in_which_others_may_rename_is_refused(
    case: str, below: str, stranger: Stranger, victim: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(parents.TRUSTED_VARIABLE)
    owner, mode, why = REFUSED[case]
    shared = stranger.folder / "shared"
    (shared / below).mkdir(parents=True)
    for folder in (shared / below, shared / below / ".."):
        os.chown(folder, victim.user, victim.user)
    os.chown(shared, owner, owner)
    shared.chmod(mode)
    stranger.folder.chmod(0o755)
    at = ("--log-dir", str(shared / below / "log"))

    done = victim.run(victim.interpreter, *LAUNCH, *at, "echo", "up")

    assert done.returncode == 125
    assert done.stderr.startswith(f"error: the logs are not safe from other users: {shared} {why}\n")
    assert f"export HCCL_TOOLS_TRUSTED_FOLDERS={shared}" in done.stderr
    assert not (shared / below / "log").exists()


def test_folder_that_is_trusted_or_sticky_is_taken_in_silence(
    stranger: Stranger, victim: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = stranger.folder / "shared"
    shared.mkdir()
    for mode, trusted in ((0o1777, ""), (0o777, f"/nowhere:{stranger.folder}")):
        stranger.folder.chmod(mode)
        shared.chmod(mode)
        monkeypatch.setenv(parents.TRUSTED_VARIABLE, trusted)
        done = victim.run(victim.interpreter, *LAUNCH, "--log-dir", str(shared / "log" / oct(mode)), "true")

        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr


def test_folder_of_a_project_gives_one_line_of_warning(
    stranger: Stranger, victim: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(parents.TRUSTED_VARIABLE)
    stranger.folder.chmod(0o755)
    project = stranger.folder / "project"
    project.mkdir()
    os.chown(project, 0, 4)
    project.chmod(0o2775)
    (project / "mine").mkdir()
    os.chown(project / "mine", victim.user, 4)
    (project / "mine").chmod(0o2755)

    done = victim.run(victim.interpreter, *LAUNCH, "--log-dir", str(project / "mine" / "log"), "true")

    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if "warning" in line]
    assert warnings == [
        f"hccl-tools: warning: the group adm can replace the logs, because it may write to {project}"
    ]
    assert stat.S_IMODE((project / "mine" / "log").stat().st_mode) == 0o2755


OUTSIDE = {
    "it is a symbolic link": "os.symlink(sys.argv[2], sys.argv[1])",
    "it has a second name (a hard link)": "os.link(sys.argv[2], sys.argv[1])",
    "it belongs to another user": "open(sys.argv[1], 'w').close(); os.chmod(sys.argv[1], 0o666)",
}


@pytest.mark.parametrize("why", OUTSIDE)
def test_log_outside_that_is_not_the_users_is_refused(why: str, stranger: Stranger, victim: Stranger) -> None:
    """Also in a sticky directory, such as /tmp, and for logs of restarts."""
    precious = stranger.folder / "precious"
    precious.write_text("precious")
    owner = stranger if "hard link" not in why else victim  # The kernel may let only the owner make one.
    os.chown(precious, victim.user, victim.user)
    stranger.folder.chmod(0o1777)
    at = ("--log-dir", str(stranger.folder / "log"))
    for name, restarts in (("train.log", "0"), ("other.restart_1.log", "1")):
        owner.python(f"import os, sys; {OUTSIDE[why]}", str(stranger.folder / name), str(precious))
        log = stranger.folder / name.replace(".restart_1", "")
        options = (*at, "--log-file", str(log), "--max-restarts", restarts)
        done = victim.run(victim.interpreter, *LAUNCH, *options, "sh", "-c", "echo hello; exit 1")

        assert done.returncode == 125, done.stderr
        # The kernel itself may refuse another user's links in a sticky directory.
        assert why in done.stderr or ("symbolic" in why and "Permission denied" in done.stderr)
    assert precious.read_text() == "precious"


SWAP_OUTSIDE = """\
import os, sys
folder, moved, victim, *names = sys.argv[1:]
os.rename(folder, moved)
os.mkdir(folder)
os.chmod(folder, 0o777)
for name in names:
    os.symlink(victim, f"{folder}/{name}")
"""


@pytest.mark.parametrize("option", ["--log-file", "--flat-logs"])
def test_log_outside_whose_folder_is_swapped_is_written_where_it_is(
    option: str, stranger: Stranger, victim: Stranger
) -> None:
    shared, go = stranger.folder / "shared", stranger.folder / "go"
    folder = shared / "log"
    folder.mkdir(parents=True)
    shared.chmod(0o777)
    os.chown(folder, victim.user, victim.user)
    private = private_folder(stranger.folder, victim.user)
    name = "train.log" if option == "--log-file" else "workerlog.0"
    options = ("--log-file", str(folder / name)) if option == "--log-file" else ("--flat-logs",)
    at = ("--log-dir", str(folder), "--max-restarts", "1")
    with job(victim, *LAUNCH, *options, *at, "sh", "-c", TWICE, str(go)) as launched:
        assert eventually(lambda: (folder / name).exists() and (folder / name).read_text() == "first\n")
        names = ("train.log", "train.restart_1.log", "workerlog.0", "workerlog.0.restart_1")
        stranger.python(SWAP_OUTSIDE, str(folder), str(shared / "moved"), str(private / "bashrc"), *names)
        go.touch()
        said, _ = launched.communicate(timeout=LONG)

    assert launched.returncode == 0, said
    written = "train.restart_1.log" if option == "--log-file" else "workerlog.0.restart_1"
    assert (shared / "moved" / written).read_text() == "second\n"
    assert (private / "bashrc").read_text() == "precious"


def test_no_file_of_the_reader_is_shown_as_a_log_of_another_users_run(stranger: Stranger) -> None:
    """The run names it in its plan, links to it, or has it as a hard link."""
    secret = Path.cwd() / "secret"
    secret.write_text("secret of root")
    log_dir = stranger.folder / "log"
    options = ("--log-dir", str(log_dir), "--log-mode", "755")
    done = stranger.run(stranger.interpreter, *LAUNCH, *options, "echo", "up")
    assert done.returncode == 0, done.stderr
    run = (log_dir / "latest").resolve()
    plan = (run / "plan.json").read_text()
    tools = (sys.executable, "-m", "hccl_tools")
    for make in ("plan", "link", "hard link"):
        (run / "rank_0.log").unlink(missing_ok=True)
        (run / "plan.json").write_text(plan)
        if make == "plan":
            (run / "plan.json").write_text(plan.replace('"rank_0.log"', f'"{secret}"'))
        elif make == "link":
            (run / "rank_0.log").symlink_to(secret)
        else:
            (run / "rank_0.log").hardlink_to(secret)
        for command in ("logs", "explain"):
            done = subprocess.run(
                [*tools, command, str(run)], capture_output=True, text=True, timeout=LONG, check=False
            )
            assert "secret of root" not in done.stdout + done.stderr
            assert "Traceback" not in done.stderr
        assert done.returncode != 0 or command == "explain"


@pytest.mark.parametrize("option", ["-U", "-Ur"])
def test_container_without_root_is_no_reason_to_refuse(option: str, stranger: Stranger) -> None:
    """In a user namespace the directories of root belong to the stand-in for unknown users."""
    mine = stranger.folder / "mine"
    stranger.python("import os, sys; os.mkdir(sys.argv[1])", str(mine))
    stranger.folder.chmod(0o1777)
    if stranger.run("unshare", option, "true").returncode:
        pytest.skip("no user namespaces here")
    inside = ("unshare", option, "env", "-u", parents.TRUSTED_VARIABLE, stranger.interpreter)
    done = stranger.run(*inside, *LAUNCH, "--log-dir", str(mine / "log"), "echo", "up")

    assert (done.returncode, done.stdout) == (0, "up\n"), done.stderr


def test_umask_that_opens_everything_opens_no_log(own_directory: Path) -> None:
    script = 'echo "$HCCL_TOOLS_RESTART"; exit $((1 - HCCL_TOOLS_RESTART))'
    before = os.umask(0)
    try:
        for more in ((), ("--log-file", "train.log"), ("--log-dir", "flat", "--flat-logs")):
            command = (*LAUNCH, "--max-restarts", "1", *more, "sh", "-c", script)
            done = subprocess.run(
                [sys.executable, *command], capture_output=True, text=True, timeout=LONG, check=False
            )
            assert done.returncode == 0, done.stderr
    finally:
        os.umask(before)

    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in own_directory.rglob("*")
        if not path.is_symlink() and not path.name.startswith("2") and "hccl-tools-" not in str(path)
    }
    assert modes.pop("log") == modes.pop("flat") == 0o755
    assert {"train.log", "train.restart_1.log", "workerlog.0", "workerlog.0.restart_1"} <= set(modes)
    assert {name: oct(mode) for name, mode in modes.items() if mode & ~0o640} == {}
    assert modes["rank_0.restart_1.log"] == 0o600


def test_a_log_that_became_a_pipe_or_a_link_blocks_nobody(own_directory: Path) -> None:
    """The next start's log is one, which the rank itself has made: no other user is needed for it."""
    (own_directory / "victim").write_text("precious")
    makes = {
        "it is not a regular file": 'mkfifo "$1"',
        "it is a symbolic link": f'ln -s {own_directory}/victim "$1"',
        "it has a second name (a hard link)": f'ln {own_directory}/victim "$1"',
    }
    for why, make in makes.items():
        script = f'set -- "" "$HCCL_TOOLS_RUN_DIR/rank_0.restart_1.log"; shift; {make}; exit 1'
        command = (*LAUNCH, "--max-restarts", "1", "sh", "-c", script)
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, timeout=LONG, check=False
        )
        assert done.returncode == 125, done.stderr
        assert f"rank_0.restart_1.log: {why}" in done.stderr

    assert (own_directory / "victim").read_text() == "precious"


def test_pipes_in_the_place_of_logs_block_no_reader(own_directory: Path) -> None:
    script = 'cd "$HCCL_TOOLS_RUN_DIR"; rm rank_0.log; mkfifo rank_0.log; exit 3'
    done = subprocess.run(
        [sys.executable, *LAUNCH, "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    run = (own_directory / "log" / "latest").resolve()
    for name in ("rank_table.json", "run_dirs.json", "hosts.jsonl", "engine_errors.log"):
        os.mkfifo(run / name)
    read_all(run)
    for name in ("plan.json", "report.json", "launcher"):
        (run / name).unlink()
        os.mkfifo(run / name)
    read_all(run)


def read_all(run: Path) -> None:
    for command in ("logs", "explain", "stacks", "stop", "jobs"):
        subject = ("--log-dir", str(run.parent)) if command == "jobs" else (str(run),)
        done = subprocess.run(
            [sys.executable, "-m", "hccl_tools", command, *subject],
            capture_output=True, text=True, timeout=LONG, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, (command, done.stderr)


@pytest.mark.parametrize("is_chain", [False, True], ids=["link", "link to a link"])
def test_a_link_of_another_user_on_the_way_is_refused(
    is_chain: bool, stranger: Stranger, victim: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(parents.TRUSTED_VARIABLE)
    stranger.folder.chmod(0o1777)
    home, theirs = stranger.folder / "home", stranger.folder / "theirs"
    (home / "logs").mkdir(parents=True)
    theirs.mkdir()
    theirs.joinpath("link").symlink_to(home / "logs")
    home.joinpath("chain").symlink_to(theirs / "link")
    for path in (home, home / "logs", home / "chain"):
        os.chown(path, victim.user, victim.user, follow_symlinks=False)
    os.chown(theirs / "link", stranger.user, stranger.user, follow_symlinks=False)

    typed = home / "chain" if is_chain else theirs / "link"
    done = victim.run(victim.interpreter, *LAUNCH, "--log-dir", str(typed), "echo", "up")

    assert done.returncode == 125
    why = f"{theirs / 'link'} belongs to nobody, who could replace them"
    assert done.stderr.startswith(f"error: the logs are not safe from other users: {why}\n")
    assert list((home / "logs").iterdir()) == []


@pytest.mark.parametrize("words", ["stop", "logs", "stacks", "explain"])
def test_a_link_of_a_third_user_leads_to_no_run(words: str, stranger: Stranger, victim: Stranger) -> None:
    home = stranger.folder / "home"
    home.mkdir()
    os.chown(home, victim.user, victim.user)
    home.chmod(0o755)
    done = victim.run(victim.interpreter, *LAUNCH, "--log-dir", str(home / "log"), "echo", "up")
    assert done.returncode == 0, done.stderr
    (run,) = (path for path in (home / "log").iterdir() if not path.is_symlink())
    link = stranger.folder / "20261126-mine"
    link.symlink_to(run)
    os.chown(link, stranger.user, stranger.user, follow_symlinks=False)

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", words, str(link)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {link}, a link of nobody, leads to a run of ")
    assert f"type its path: {run}" in done.stderr
