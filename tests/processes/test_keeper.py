"""No process of a job outlives it, whoever is killed."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.processes import keeper, keeper_protocol, procfs
from hccl_tools.processes.timing import TIMING_VARIABLE
from tests.support.jobs import LONG, eventually, python, sh
from tests.support.processes import kill_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.processes.keeper_protocol import Event
    from tests.support.jobs import Job, Jobs

#: A rank with everything that has been seen to outlive launchers: a child, one that ignores signals, one in
#: its own session, a daemon (forked twice).
BREEDER = sh(
    "echo $$; sleep 300 & (trap '' TERM INT HUP; sleep 301) & setsid sleep 302 & (setsid sleep 303 &) & wait"
)
BRED = [f"sleep {seconds}" for seconds in (300, 301, 302, 303)]


def have_bred(job: Job, ranks: int) -> bool:
    """Whether all processes of so many breeders come to run."""

    def are_there() -> bool:
        found = [line.strip() for line in job.living().values()]
        return all(found.count(line) == ranks for line in BRED)

    return eventually(are_there)


#: A part of a rank's script that waits for a file.
UNTIL_GO = "while ! [ -e go ]; do sleep 0.02; done"


def keeper_of(job: Job) -> int:
    """The keeper's process id."""
    return process_of(job, "hccl-keeper")


def process_of(job: Job, name: str) -> int:
    """The process of a job's launcher that has this name, which it gives itself when it has begun."""
    named: list[int] = []

    def has_begun() -> bool:
        found = [process.pid for process in procfs.descendants(job.launcher.pid)]
        named.extend(pid for pid in found if procfs.read(f"/proc/{pid}/comm").strip() == name)
        return bool(named)

    assert eventually(has_begun)
    return named[0]


def test_nothing_survives_when_the_launcher_is_killed(jobs: Jobs) -> None:
    job = jobs.start(*[BREEDER] * 4)
    assert have_bred(job, 4)
    job.launcher.kill()
    assert job.is_gone()


def test_nothing_survives_when_the_keeper_is_killed(jobs: Jobs) -> None:
    job = jobs.start(*[BREEDER] * 2)
    assert have_bred(job, 2)
    os.kill(keeper_of(job), signal.SIGKILL)
    assert job.end() == 128 + signal.SIGKILL
    assert "keeper" in job.err.splitlines()[-1]
    assert job.is_gone()
    assert [end["signal"] for end in job.report["ranks"]] == ["SIGKILL"] * 2
    assert "still running" not in job.err


def test_a_stopped_keeper_goes_on_when_the_job_is_to_end(jobs: Jobs) -> None:
    job = jobs.start(*[BREEDER] * 2, grace=1.0)
    assert have_bred(job, 2)
    os.kill(keeper_of(job), signal.SIGSTOP)
    job.launcher.terminate()
    assert job.end() == 128 + signal.SIGTERM
    assert job.is_gone()
    assert [end["signal"] for end in job.report["ranks"]] == ["SIGTERM"] * 2


def test_a_keeper_that_fails_says_why(jobs: Jobs) -> None:
    """By a bug: here a command that it cannot read, written into its pipe from outside."""
    job = jobs.start(BREEDER)
    assert have_bred(job, 1)
    read_by_keeper = {entry.readlink() for entry in Path(f"/proc/{keeper_of(job)}/fd").iterdir()}
    files = Path(f"/proc/{job.launcher.pid}/fd").iterdir()
    shared = [file for file in files if file.readlink() in read_by_keeper]
    (commands,) = [file for file in shared if file.lstat().st_mode & 0o700 == 0o300]  # l-wx: for writing
    commands.write_bytes(keeper_protocol.COMMAND_HEAD.pack(keeper_protocol.START, 1) + b"?")

    assert job.end() == 128 + signal.SIGKILL
    assert "the launcher's keeper process failed; this is a bug in hccl-tools" in job.err
    assert "  ValueError: bad marshal data" in job.err
    assert "the launcher's keeper process failed" in job.err.splitlines()[-1]
    assert any("Traceback" in note for note in job.report["warnings"])
    assert job.is_gone()


@pytest.mark.slow
def test_a_job_ends_without_a_keeper_that_is_held(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a debugger, as here, or the cgroup's freezer: SIGCONT does not help, SIGKILL does."""
    monkeypatch.setenv(TIMING_VARIABLE, "supervisor.give_up=0.5")
    job = jobs.start(*[BREEDER] * 2, grace=0.2)
    assert have_bred(job, 2)
    held = keeper_of(job)
    if ctypes.CDLL(None).ptrace(16, held, 0, 0) != 0:  # PTRACE_ATTACH
        pytest.skip("no process may be traced here")
    os.waitpid(held, 0)
    job.launcher.terminate()
    assert os.waitpid(held, 0)[0] == held
    assert job.end() == 128 + signal.SIGTERM
    assert job.is_gone()
    assert f"the keeper (pid {held}) does not respond" in job.err
    assert [end["signal"] for end in job.report["ranks"]] == ["SIGKILL"] * 2
    assert not job.report["stuck"]


@pytest.mark.parametrize("order", [("keeper", "launcher"), ("launcher", "keeper")])
def test_nothing_survives_when_launcher_and_keeper_are_killed_together(
    jobs: Jobs, order: tuple[str, str]
) -> None:
    job = jobs.start(*[BREEDER] * 4)
    assert have_bred(job, 4)
    pids = {"launcher": job.launcher.pid, "keeper": keeper_of(job)}
    for pid in pids.values():  # neither sees the end of the other
        os.kill(pid, signal.SIGSTOP)
    for name in order:
        os.kill(pids[name], signal.SIGKILL)
    assert job.is_gone()


def test_nothing_survives_when_the_keeper_is_stopped_and_the_launcher_killed(jobs: Jobs) -> None:
    job = jobs.start(*[BREEDER] * 2)
    assert have_bred(job, 2)
    os.kill(keeper_of(job), signal.SIGSTOP)
    job.launcher.kill()
    assert job.is_gone()


def test_a_job_goes_on_without_its_watcher(jobs: Jobs) -> None:
    job = jobs.start(sh(f"echo up; {UNTIL_GO}; echo over"))
    assert job.says("up", 0)
    os.kill(process_of(job, "hccl-watcher"), signal.SIGKILL)
    (jobs.folder / "go").touch()
    assert job.end() == 0
    assert job.log(0) == "up\nover\n"
    assert job.is_gone()


def test_nothing_survives_when_watcher_and_keeper_are_killed(jobs: Jobs) -> None:
    job = jobs.start(*[BREEDER] * 2)
    assert have_bred(job, 2)
    killed = [process_of(job, "hccl-watcher"), keeper_of(job)]
    kill_all(killed)
    assert job.end() == 128 + signal.SIGKILL
    assert job.is_gone()
    assert [end["signal"] for end in job.report["ranks"]] == ["SIGKILL"] * 2


def test_ranks_cannot_be_made_to_outlive_a_stopped_launcher_that_is_killed(jobs: Jobs) -> None:
    job = jobs.start(*[BREEDER] * 2)
    assert have_bred(job, 2)
    job.launcher.send_signal(signal.SIGSTOP)
    job.launcher.kill()
    assert job.is_gone()


def test_the_failed_ranks_own_children_are_ended_too(jobs: Jobs) -> None:
    failing = sh("sleep 300 & setsid sleep 301 & exit 7")
    code, job = jobs.run(sh("sleep 300"), failing)
    assert code == 7
    assert not job.living()


def test_what_a_good_job_leaves_behind_is_ended_and_named(jobs: Jobs) -> None:
    code, job = jobs.run(
        sh("setsid sleep 300 & until grep -q ^sleep /proc/$!/cmdline; do sleep 0.02; done"), sh("true")
    )
    assert code == 0
    assert "(sleep 300) of rank 0" in job.err
    assert not job.living()


def test_of_many_that_a_job_leaves_behind_some_are_named(jobs: Jobs) -> None:
    code, job = jobs.run(*[sh("for n in 1 2 3 4 5; do setsid sleep 300 & done")] * 4)
    assert code == 0
    first, *rest = job.err.splitlines()
    assert first == "hccl-tools: ending 20 processes that the job left behind:"
    assert len(rest) == 9
    assert rest[-1] == "  and 12 more"


def test_the_keeper_ignores_signals_meant_for_others(jobs: Jobs) -> None:
    job = jobs.start(sh(f"echo $$; {UNTIL_GO}"))
    assert job.says("\n", 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(keeper_of(job), number)
    (jobs.folder / "go").touch()
    assert job.end() == 0


def test_the_keeper_holds_no_file_of_the_caller(jobs: Jobs) -> None:
    job = jobs.start(sh("echo $$; sleep 300"))
    assert job.says("\n", 0)
    files = {str(entry.readlink()) for entry in Path(f"/proc/{keeper_of(job)}/fd").iterdir()}
    assert {file for file in files if file.startswith("/")} <= {"/dev/null", str(job.run_dir)}
    assert str(Path(f"/proc/{job.launcher.pid}/fd/1").readlink()) not in files


def test_the_watcher_holds_no_file_at_all(jobs: Jobs) -> None:
    job = jobs.start(sh("echo $$; sleep 300"), popen={"stdin": subprocess.PIPE})
    assert job.says("\n", 0)
    folder = Path(f"/proc/{process_of(job, 'hccl-watcher')}/fd")
    assert eventually(lambda: {str(entry.readlink()) for entry in folder.iterdir()} == {"/dev/null"})


RANK_STATE = """
import os, signal
fields = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
for name in ("SigBlk", "SigIgn", "SigCgt"):
    print(name, int(fields[name], 16))
print("fds", sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n)))
print("session", os.getsid(0) == os.getpid(), "group", os.getpgrp() == os.getpid())
print("stdin", os.readlink("/proc/self/fd/0"))
print("same", os.path.sameopenfile(1, 2), bool(__import__("fcntl").fcntl(1, 3) & os.O_APPEND))
"""


def test_a_rank_starts_with_a_clean_state(jobs: Jobs) -> None:
    """Even under nohup and with a file that the caller left open."""
    pipe = os.pipe()
    popen = {"pass_fds": pipe}
    program = [sys.executable, "-I", "-S", "-X", "utf8", "-c", RANK_STATE]
    shell = ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *program]
    code, job = jobs.run(shell, prefix=("nohup",), popen=popen)
    for end in pipe:
        os.close(end)
    assert code == 0
    said = dict(line.split(" ", 1) for line in job.log(0).splitlines())
    assert said["SigBlk"] == "0"
    # Python itself ignores SIGPIPE and SIGXFSZ and catches SIGINT: nothing else may be left from us.
    # (32 and 33 are glibc's own, which its posix_spawn leaves ignored until a thread is started.)
    ignored = int(said["SigIgn"]) & ~(0b11 << 31)
    assert ignored == 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    assert int(said["SigCgt"]) == 1 << (signal.SIGINT - 1)
    assert said["fds"] == "[0, 1, 2]"
    assert said["session"] == "True group True"
    assert said["stdin"] == "/dev/null"
    assert said["same"] == "True True"


@pytest.fixture(params=["forked", "fresh"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[keeper.Keeper]:
    """A keeper without a supervisor, forked or with an interpreter of its own."""
    with monkeypatch.context() as patch:
        if request.param == "forked":
            patch.setattr(sys, "executable", "/nowhere/python")
        started = keeper.start(subreaper=False)
    yield started
    started.close()


def test_ctrl_c_while_the_keeper_starts_is_not_for_the_keeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    spawn = os.posix_spawn

    def interrupted(*args: Any, **options: Any) -> int:
        pid = spawn(*args, **options)
        os.kill(pid, signal.SIGINT)
        return pid

    monkeypatch.setattr(os, "posix_spawn", interrupted)
    started = keeper.start(subreaper=False)
    started.start_tasks([task(tmp_path, 0, "/bin/true")], {}, str(tmp_path))
    seen = events(started)
    started.close()

    assert [event.kind for event in seen][:2] == [keeper_protocol.STARTED, keeper_protocol.ENDED]
    assert capfd.readouterr().err == ""


def state(pid: int) -> str:
    """R, S, Z ...; "" when there is no such process."""
    status = procfs.status(pid)
    return status.state if status else ""


def some_events(kept: keeper.Keeper, count: int) -> list[Event]:
    """The next events, exactly so many."""
    seen: list[Event] = []
    assert eventually(lambda: len(seen) >= count or seen.extend(kept.events()))  # type: ignore[func-returns-value]
    assert len(seen) == count
    return seen


def events(kept: keeper.Keeper) -> list[Event]:
    """All events until no process is left."""
    seen: list[Event] = []
    deadline = time.monotonic() + LONG
    while not any(event.kind == keeper_protocol.EMPTY for event in seen):
        assert time.monotonic() < deadline
        assert not kept.has_ended
        seen += kept.events()
        time.sleep(0.001)
    return seen


def task(folder: Path, number: int, *argv: str) -> keeper_protocol.Task:
    return keeper_protocol.Task(
        argv[0], argv, {"RANK_ID": str(number)}, str(folder / f"rank_{number}.log"), ()
    )


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="neither kernel nor Python has process descriptors")
def test_deaths_are_told_in_the_order_in_which_they_happened(kept: keeper.Keeper, tmp_path: Path) -> None:
    """Though the keeper could not look in between and one SIGCHLD stands for them all."""
    tasks = [task(tmp_path, n, "/bin/sleep", "300") for n in range(8)]
    kept.start_tasks(tasks, dict(os.environ), str(tmp_path))
    pids = [event.pid for event in some_events(kept, 8)]
    order = [5, 2, 7, 0, 1, 6, 3, 4]
    os.kill(kept.pid, signal.SIGSTOP)
    for number in order:
        os.kill(pids[number], signal.SIGKILL)
        assert eventually(lambda pid=pids[number]: state(pid) == "Z")  # type: ignore[misc]
    os.kill(kept.pid, signal.SIGCONT)
    assert [event.task for event in events(kept) if event.kind == keeper_protocol.ENDED] == order


def test_a_failure_that_takes_long_to_complete_is_told_before_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank with much memory: its partner sees it go, fails and has ended while it is still being freed."""
    exiting = tmp_path / "exiting"  # Names the process that the kernel says is exiting.
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")  # The keeper is forked, with this function.
        patch.setattr(procfs, "ends_with", lambda pid: 11 if procfs.read(str(exiting)) == str(pid) else 0)
        kept = keeper.start(subreaper=False)
    kept.start_tasks([task(tmp_path, n, "/bin/sleep", "300") for n in range(3)], {}, str(tmp_path))
    pids = [event.pid for event in some_events(kept, 3)]
    exiting.write_text(str(pids[2]))
    os.kill(pids[0], signal.SIGKILL)
    told = [(event.kind, event.task, event.value) for event in some_events(kept, 2)]
    os.kill(pids[2], signal.SIGSEGV)
    told += [(event.kind, event.task, event.value) for event in some_events(kept, 1)]
    kept.close()
    assert told == [
        (keeper_protocol.ENDING, 2, 11),
        (keeper_protocol.ENDED, 0, 9),
        (keeper_protocol.ENDED, 2, 11),
    ]


def test_the_kernel_says_which_process_is_exiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends_with(state: str, flags: int, code: int) -> int:
        fields = [state, *["0"] * 5, str(flags), *["0"] * 42, str(code)]
        monkeypatch.setattr(procfs, "read", lambda _: f"7 (a) b) {' '.join(fields)}\n")
        return procfs.ends_with(7)

    exiting, forked = 0x4, 0x40
    assert ends_with("R", exiting | forked, 11) == 11
    assert ends_with("D", exiting, 3 << 8) == 3 << 8
    assert ends_with("R", forked, 11) == 0
    assert ends_with("Z", exiting, 11) == 0
    assert ends_with("X", exiting, 11) == 0


def test_a_program_that_cannot_run_is_told_with_its_reason(kept: keeper.Keeper, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("echo hello\n")
    kept.start_tasks(
        [task(tmp_path, 0, "/nowhere/program"), task(tmp_path, 1, str(plain))],
        dict(os.environ),
        str(tmp_path),
    )
    seen = events(kept)
    cannot = {event.task: event.value for event in seen if event.kind == keeper_protocol.CANNOT_RUN}
    codes = {
        event.task: os.waitstatus_to_exitcode(event.value)
        for event in seen
        if event.kind == keeper_protocol.ENDED
    }
    assert cannot == {0: 2, 1: 13}
    assert codes == {0: 127, 1: 126}


def test_a_log_that_cannot_be_written_starts_nothing(kept: keeper.Keeper, tmp_path: Path) -> None:
    kept.start_tasks([task(tmp_path / "nowhere", 0, "/bin/true")], dict(os.environ), str(tmp_path))
    seen = events(kept)
    assert [(event.kind, event.extra) for event in seen] == [
        (keeper_protocol.CANNOT_RUN, keeper_protocol.LOG),
        (keeper_protocol.EMPTY, 0),
    ]


def test_standard_error_goes_to_its_own_file_and_through_no_link(kept: keeper.Keeper, tmp_path: Path) -> None:
    both, errors, victim = (tmp_path / name for name in ("rank_0.log", "errors.log", "victim"))
    errors.write_text("of the last start")
    apart = task(tmp_path, 0, "/bin/sh", "-c", "echo out; echo err >&2")._replace(errors=str(errors))
    kept.start_tasks([apart], dict(os.environ), str(tmp_path))
    events(kept)
    assert (both.read_text(), errors.read_text()) == ("out\n", "err\n")

    victim.write_text("precious")
    errors.unlink()
    errors.symlink_to(victim)
    kept.start_tasks([apart], dict(os.environ), str(tmp_path))
    assert [(event.kind, event.extra) for event in events(kept)] == [
        (keeper_protocol.CANNOT_RUN, keeper_protocol.LOG),
        (keeper_protocol.EMPTY, 0),
    ]
    assert victim.read_text() == "precious"


def test_closing_the_pipe_ends_everyone(tmp_path: Path) -> None:
    started = keeper.start(subreaper=False)
    started.start_tasks([task(tmp_path, 0, *python("import time; time.sleep(300)"))], dict(os.environ), "/")
    (begun,) = some_events(started, 1)
    started.close()
    assert procfs.status(begun.pid) is None


def test_a_caller_that_is_no_subreaper_keeps_nothing_of_a_killed_keeper(
    kept: keeper.Keeper, tmp_path: Path
) -> None:
    """As in ``spawn``: the caller's process is left as it is."""
    tasks = [task(tmp_path, 0, *sh("setsid sleep 300 & echo $!; wait"))]
    kept.start_tasks(tasks, dict(os.environ), str(tmp_path))
    log = tmp_path / "rank_0.log"
    assert eventually(lambda: log.exists() and log.read_text().endswith("\n"))
    some_events(kept, 1)
    os.kill(kept.pid, signal.SIGKILL)
    assert eventually(lambda: state(int(log.read_text())) in ("", "Z"))


def test_a_process_forked_by_the_launcher_does_not_keep_the_job_alive(jobs: Jobs, tmp_path: Path) -> None:
    """It holds the launcher's end of the pipe open: the end of the launcher itself is what counts."""
    script = (
        "import os, time\n"
        "from hccl_tools.processes import keeper, keeper_protocol\n"
        "kept = keeper.start()\n"
        "forked = os.fork()\n"
        "if forked == 0: os.setsid(); time.sleep(600); os._exit(0)\n"
        f"task = keeper_protocol.Task('/bin/sleep', ('sleep', '300'), {{}}, {str(tmp_path / 'log')!r}, ())\n"
        "kept.start_tasks([task], {}, '/')\n"
        "while not (seen := kept.events()): time.sleep(0.001)\n"
        "print(forked, seen[0].pid, flush=True); time.sleep(300)\n"
    )
    if not hasattr(os, "pidfd_open"):
        pytest.skip("the kernel or Python has no process descriptors")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        forked, pid = map(int, launcher.stdout.readline().split())
        launcher.kill()
        has_ended = eventually(lambda: procfs.status(pid) is None)
        os.kill(forked, signal.SIGKILL)
    assert has_ended
