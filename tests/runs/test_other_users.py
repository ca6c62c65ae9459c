"""What another user of the host can do to a job who may write to the directory of its logs."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.processes import run_files
from hccl_tools.runs import directory, index, private_files, table_lock
from tests.support import two_by_two
from tests.support.jobs import eventually
from tests.support.mpiruns import MPIRUNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.beds.two_hosts import TwoHosts
    from tests.support.strangers import Stranger

MODULE = (sys.executable, "-m", "hccl_tools.launch")
LAUNCH = (*MODULE, "--no-table", "-n", "1", "--start", "table", "--no-python")
#: Puts a directory of the stranger's own in the place of a run, with files that run code when loaded.
SWAP = """\
import marshal, os, pickle, shutil, sys
run, made = sys.argv[1:]
os.rename(run, run + ".moved")
os.mkdir(run, 0o777)
class Code:
    def __reduce__(self):
        return os.system, (f"touch {made}",)
for name in ("result_0.pickle", "failure_0.pickle", "spawn.pickle"):
    with open(os.path.join(run, name), "wb") as file:
        pickle.dump(Code(), file)
facts = (os.uname().nodename, 2, run, None, {}, (), 0)
settled = (("touch", made), (), (), {}, {0: (0, {}), 1: (1, {})})
for name in ("mpi_ranks", f"mpi_ranks-{os.uname().nodename}"):
    with open(os.path.join(run, name), "wb") as file:
        marshal.dump((sys.argv[0], None, settled), file, 2)
"""


def run(*argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **variables}
    )


def the_run(log_dir: Path) -> Path:
    """The only run in a directory of logs, once it is there."""
    assert eventually((log_dir / "latest").exists)
    return (log_dir / "latest").resolve()


@contextmanager
def started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A job that is running, its streams in one."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as job:
        try:
            yield job
        finally:
            job.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_run_is_its_users_alone_unless_asked_otherwise(umask: int) -> None:
    before = os.umask(umask)
    try:
        assert run(*LAUNCH, "true").returncode == 0
        assert run(*LAUNCH[:-1], "--log-mode", "750", "--log-dir", "open", LAUNCH[-1], "true").returncode == 0
    finally:
        os.umask(before)

    for log_dir, mode in (("log", 0o700), ("open", 0o750)):
        found = the_run(Path(log_dir))
        assert stat.S_IMODE(found.stat().st_mode) == mode
        for name in ("plan.json", "launcher", "report.json"):
            assert stat.S_IMODE((found / name).stat().st_mode) == mode & 0o666, name
        assert len(found.name) == len("20261121-101530-") + 32
    assert stat.S_IMODE(Path("open/latest/rank_0.log").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", ["75", "abc", "0", "655", "77777"])
def test_a_mode_that_cannot_be_is_refused(mode: str) -> None:
    done = run(*LAUNCH[:-1], "--log-mode", mode, LAUNCH[-1], "true")

    assert done.returncode == 2
    assert f'--log-mode "{mode}" is not a mode that gives you access' in done.stderr


WORK = """\
import os, sys, time, hccl_tools
def wait(path):
    print("up", flush=True)
    while not os.path.exists(path):
        time.sleep(0.02)
    return "ours"
"""
MAIN = """\
import hccl_tools, sys, work
if __name__ == "__main__":
    log_dir, go = sys.argv[1:]
    job = hccl_tools.spawn(work.wait, (go,), nprocs=1, cpu=True, start="table", log_dir=log_dir, join=False)
    print("started", flush=True)
    job.join()
    print(job.results, job.return_queues[0].get(), job.error_queues[0].get())
"""


@pytest.mark.bed
def test_results_of_spawn_are_not_loaded_from_a_run_that_was_swapped(stranger: Stranger) -> None:
    Path("work.py").write_text(WORK)
    Path("main.py").write_text(MAIN)
    go, made = Path.cwd() / "go", stranger.folder / "made"
    command = [sys.executable, "main.py", str(stranger.folder / "log"), str(go)]
    (stranger.folder / "log").mkdir()
    (stranger.folder / "log").chmod(0o777)
    with started(command) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "started\n"
        stranger.python(SWAP, str(the_run(stranger.folder / "log")), str(made))
        go.touch()

        assert job.stdout.read().splitlines()[-1] == "['ours'] ours "
    assert job.returncode == 0
    assert not made.exists()
    assert not [path for path in Path.cwd().glob("hccl-tools-0/*") if path.name.startswith("job-")]


@pytest.mark.bed
@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
def test_ranks_take_nothing_from_a_run_that_was_swapped(stranger: Stranger) -> None:
    """The second rank of mpirun typed by hand comes when the stranger's directory is in its place."""
    late = '[ $OMPI_COMM_WORLD_LOCAL_RANK = 0 ] || until [ -e "$0" ]; do sleep 0.02; done; exec "$@"'
    go, made, log_dir = Path.cwd() / "go", stranger.folder / "made", stranger.folder / "log"
    log_dir.mkdir()
    log_dir.chmod(0o777)
    shim = [sys.executable, "-m", "hccl_tools.launch.rank", "--log-dir", str(log_dir), "--start", "table"]
    program = ["--no-python", "sh", "-c", "echo rank $RANK_ID; sleep 2"]
    command = MPIRUNS[0].ranks(2, "sh", "-c", late, str(go), *shim, *program)
    with started(command) as job:
        found = the_run(log_dir)
        log = found / "rank_0.log"
        assert eventually(lambda: log.exists() and "rank 0" in log.read_text())
        stranger.python(SWAP, str(found), str(made))
        go.touch()
        said, _ = job.communicate(timeout=60)

    assert not made.exists()
    assert job.returncode == 0, said
    assert not (found / "rank_1.log").exists()
    assert Path(f"{found}.moved/rank_1.log").read_text() == "rank 1\n"


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
@pytest.mark.parametrize("by_hand", [True, False], ids=["by hand", "launch"])
def test_nothing_that_is_loaded_lies_in_the_run_directory(by_hand: bool) -> None:
    rank = ("sh", "-c", "echo $RANK_ID")
    if by_hand:
        shim = (sys.executable, "-m", "hccl_tools.launch.rank", "--start", "table", "--no-python", *rank)
        done = run(*MPIRUNS[0].ranks(2, *shim))
    else:
        launch = (sys.executable, "-m", "hccl_tools.launch", *MPIRUNS[0].for_launch, "-n", "2")
        done = run(*launch, "--no-python", *rank)

    assert done.returncode == 0, done.stderr
    text = {".log", ".json", ".jsonl"}
    names = {path.name for path in the_run(Path("log")).iterdir() if path.suffix not in text}
    assert names <= {"launcher", "port"}
    assert [(Path("log/latest") / f"rank_{number}.log").read_text() for number in range(2)] == ["0\n", "1\n"]
    assert not list(Path("hccl-tools-0").glob("job-*"))


@pytest.mark.bed
def test_a_run_directory_of_another_user_is_refused(stranger: Stranger) -> None:
    place = stranger.folder / "run"
    stranger.python("import os, sys; os.mkdir(sys.argv[1]); os.chmod(sys.argv[1], 0o777)", str(place))

    with pytest.raises(LaunchError, match=f"the run directory {place} belongs to another user"):
        directory.create(str(place), shared=True)
    assert not list(place.iterdir())
    place.rmdir()
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(LaunchError, match="other users may write to the run directory"):
        directory.create(str(place), shared=True)
    directory.create(str(place), shared=True, mode=0o777)


@pytest.mark.bed
def test_latest_of_a_shared_directory_is_the_users_own_newest_run(stranger: Stranger) -> None:
    stranger.folder.chmod(0o1777)
    log = stranger.folder / "log"
    log.mkdir()
    log.chmod(0o1777)
    user, launch = stranger.as_user(65533), ("launch", "-n", "1", "--cpu", "--no-python", "--log-mode", "755")
    for one, says in ((stranger, "error code[EI0006]"), (user, "mine")):
        one.tools(*launch, "--log-dir", str(log), "sh", "-c", f"echo '{says}'; exit 3")
    assert (log / "latest").lstat().st_uid == 65534  # The sticky bit keeps the first user's link.

    logs = user.tools("logs", "--log-dir", str(log))
    named = [user.tools(command, "latest", "--log-dir", str(log)) for command in ("logs", "explain")]
    folder = user.tools("explain", str(log))
    other = user.tools("logs", str((log / "latest").resolve()))

    assert logs.stdout == named[0].stdout == "mine\n"
    assert all("EI0006" not in one.stdout for one in (named[1], folder))
    assert (other.stdout, " of nobody (" in other.stderr) == ("error code[EI0006]\n", True)


@pytest.mark.bed
@pytest.mark.parametrize("target", ["/proc/1/root/tmp/run", "../elsewhere/run", "."])
def test_latest_of_another_user_is_not_followed_out_of_its_directory(stranger: Stranger, target: str) -> None:
    stranger.folder.chmod(0o1777)
    log = stranger.folder / "log"
    log.mkdir()
    log.chmod(0o1777)
    stranger.python("import os, sys; os.symlink(sys.argv[1], sys.argv[2])", target, str(log / "latest"))

    assert directory.leads_elsewhere(str(log / "latest"))
    with pytest.raises(index.NoSuchRunError):
        index.newest(str(log))


@pytest.mark.bed
def test_latest_of_another_user_leads_to_a_run_beside_it(stranger: Stranger) -> None:
    stranger.folder.chmod(0o1777)
    link = stranger.folder / "latest"
    stranger.python("import os, sys; os.symlink(sys.argv[1], sys.argv[2])", "20261129-x", str(link))

    assert not directory.leads_elsewhere(str(link))


@pytest.mark.bed
def test_private_directory_of_another_user_is_not_used(stranger: Stranger) -> None:
    stranger.folder.chmod(0o1777)
    taken = stranger.folder / "hccl-tools-0"
    stranger.python("import os, sys; os.mkdir(sys.argv[1], 0o777)", str(taken))
    own = Path.cwd() / "runtime"
    own.mkdir()

    place = private_files.place({"TMPDIR": str(stranger.folder), "XDG_RUNTIME_DIR": str(own)})

    assert place in {"/dev/shm/hccl-tools-0", str(own / "hccl-tools-0")}
    with pytest.raises(LaunchError, match="belongs to another user"):
        private_files.ensure(str(taken))


@pytest.mark.bed
def test_user_whose_directories_are_all_taken_by_another_has_one_at_home(stranger: Stranger) -> None:
    stranger.folder.chmod(0o1777)
    user = stranger.as_user(65533)
    taken = [stranger.folder / "hccl-tools-65533", Path("/dev/shm/hccl-tools-65533")]
    home = stranger.folder / "home"
    user.python("import os, sys; os.mkdir(sys.argv[1], 0o700)", str(home))
    stranger.python("import os, sys; [os.mkdir(path, 0o777) for path in sys.argv[1:]]", *map(str, taken))
    try:
        place = user.run(
            "env", f"HOME={home}", "XDG_RUNTIME_DIR=", stranger.interpreter, "-c",
            "import os; from hccl_tools.runs import private_files as p; print(p.place(os.environ))",
        )  # fmt: skip
    finally:
        taken[1].rmdir()

    assert place.stdout == f"{home}/.hccl-tools-{os.uname().nodename}\n", place.stderr


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o2770])
def test_directory_in_which_others_may_rename_is_not_private(own_directory: Path, mode: int) -> None:
    if os.geteuid() == 0:
        os.chown(own_directory, 0, 65533)
    elif mode != 0o777:
        pytest.skip("only root can give a directory to another group")
    own_directory.chmod(mode)

    assert private_files.place({"TMPDIR": str(own_directory)}) != str(own_directory / "hccl-tools-0")


@pytest.mark.parametrize("mode", [0o1777, 0o3770, 0o700])
def test_directory_in_which_others_may_not_rename_is_private(own_directory: Path, mode: int) -> None:
    own_directory.chmod(mode)

    assert private_files.place({"TMPDIR": str(own_directory)}) == str(
        own_directory / f"hccl-tools-{os.geteuid()}"
    )


@pytest.mark.bed
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_directory_in_that_of_another_user_is_not_private(own_directory: Path, mode: int) -> None:
    """The owner can rename what is in it, also with the sticky bit."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to another user")
    os.chown(own_directory, 65533, 65533)
    own_directory.chmod(mode)

    assert private_files.place({"TMPDIR": str(own_directory)}) != str(own_directory / "hccl-tools-0")


@pytest.mark.bed
def test_file_of_another_user_is_not_loaded(stranger: Stranger) -> None:
    path = stranger.folder / "facts"
    stranger.python("import sys; open(sys.argv[1], 'w').write('x')", str(path))
    link = stranger.folder / "link"
    stranger.python("import os, sys; os.symlink('/etc/hostname', sys.argv[1])", str(link))

    for each in (path, link):
        with pytest.raises(OSError, match=r"only this user can write|symbolic links"):
            private_files.open_own(str(each))


def test_what_killed_processes_left_is_removed(own_directory: Path) -> None:
    environ = {"TMPDIR": str(own_directory)}
    kept, left = private_files.new_path(environ), private_files.new_path(environ)
    descriptor = private_files.make(kept)
    os.close(private_files.make(left))
    run_files.write(left, "spawn.pickle", b"")
    for path in (kept, left):
        os.utime(path, (0, 0))

    os.close(private_files.make(private_files.new_path(environ)))

    assert (Path(kept).exists(), Path(left).exists()) == (True, False)
    os.close(descriptor)


def lock_of(data: bytes, environ: dict[str, str]) -> Path:
    os.close(table_lock.take(data, "/run", environ))
    (found,) = Path(private_files.place(environ)).glob("table-*.lock")
    return found


def test_lock_that_is_a_pipe_or_a_link_holds_up_nobody(own_directory: Path) -> None:
    environ = {"TMPDIR": str(own_directory)}
    lock, victim = lock_of(b"table", environ), own_directory / "victim"
    victim.write_text("precious")
    for make in (os.mkfifo, partial(os.link, victim), partial(os.symlink, victim)):
        lock.unlink()
        make(lock)
        assert table_lock.take(b"table", "/run", environ) == -1
    assert victim.read_text() == "precious"


@pytest.mark.bed
def test_colleagues_see_a_run_when_they_may(stranger: Stranger) -> None:
    log_dir = stranger.folder / "log"
    assert run(*LAUNCH[:-1], "--log-dir", str(log_dir), LAUNCH[-1], "sh", "-c", "echo mine").returncode == 0
    hidden = stranger.tools("logs", str(the_run(log_dir)))
    options = ("--log-dir", str(log_dir), "--log-mode", "755")
    assert run(*LAUNCH[:-1], *options, LAUNCH[-1], "sh", "-c", "echo ours").returncode == 0

    shown = stranger.tools("logs", str(the_run(log_dir)))

    assert (hidden.returncode, hidden.stdout) == (2, "")
    assert (shown.returncode, shown.stdout) == (0, "ours\n"), shown.stderr
    listed = stranger.tools("jobs", "--log-dir", str(log_dir), "-f", "json")
    runs = json.loads(listed.stdout)["runs"]
    assert [one["path"] for one in runs] == [str(the_run(log_dir))]


def test_a_directory_whose_server_calls_this_user_otherwise_is_own(
    own_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS with root squashing: what root makes there belongs to nobody."""
    monkeypatch.setattr(os, "geteuid", lambda: own_directory.stat().st_uid + 1)

    assert directory.is_own(str(own_directory))
    assert not list(own_directory.iterdir())


@pytest.mark.bed
@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
def test_run_directories_of_all_hosts_have_the_mode(two_hosts: TwoHosts, own_directory: Path) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    log_dir = two_hosts.first.disk / own_directory.name
    options = ("--start", "torch", "--log-mode", "750", "--log-dir", str(log_dir), "--no-python", "true")

    done = two_hosts.first.run(
        [*two_by_two.command(hosts, *MPIRUNS[0].for_launch), *options], env=two_by_two.environ(two_hosts)
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for host in (two_hosts.first, two_hosts.second):
        (found,) = (host.folder / "disk" / own_directory.name).glob("2*")
        assert stat.S_IMODE(found.stat().st_mode) == 0o750
