"""``jobs``, ``logs`` and ``stop`` on real runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools import own_python
from hccl_tools.processes import procfs
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

LAUNCH = ("launch", "--no-table", "-n", "2", "--start", "table", "--tail", "0", "--no-python", "sh", "-c")


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools", *args], capture_output=True, text=True, timeout=60, check=False
    )


def listed(*args: str) -> list[dict[str, object]]:
    runs: list[dict[str, object]] = json.loads(run("jobs", "-f", "json", *args).stdout)["runs"]
    here = str(Path.cwd())
    return [one for one in runs if str(one["path"]).startswith(here)]


@contextmanager
def running(program: str = "echo up $RANK_ID; exec sleep 60") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "hccl_tools", *LAUNCH, program], stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        job.stdout.readline()
        logs = [Path(f"log/latest/rank_{rank}.log") for rank in range(2)]
        assert eventually(lambda: all(log.exists() and log.stat().st_size for log in logs))
        try:
            yield job
        finally:
            job.terminate()
            job.stdout.read()


def test_runs_and_how_they_ended() -> None:
    assert run(*LAUNCH, "true").returncode == 0
    assert run(*LAUNCH, "exit 7").returncode == 7
    with running() as job:
        found = listed()
        text = run("jobs").stdout

        assert [(one["state"], one["exit_code"], one["ranks"]) for one in found] == [
            ("running", None, 2), ("ended", 7, 2), ("ended", 0, 2),
        ]  # fmt: skip
        assert found[0]["pid"] == job.pid
        assert [(one["state"], one["shown_state"]) for one in listed("--running")] == [("running", "running")]
    header, *rows = text.splitlines()
    columns = header.split()  # The users are shown while runs of other users are running on this host.
    assert set(columns) - {"hosts", "user"} == {"run", "state", "ranks", "age", "exit", "program"}
    by_name = {row.split()[0]: row for row in rows}
    states = [by_name[str(one["name"])[:20]] for one in found]
    state = columns.index("state")
    assert [row.split()[state : state + 2] for row in states] == [
        ["running", "2"],
        ["failed", "2"],
        ["ended", "2"],
    ]
    assert all(len(row) <= 80 and "sh -c" in row for row in states)
    assert listed("--running") == []


def test_run_elsewhere_on_this_host_is_found() -> None:
    Path("empty").mkdir()
    with running():
        assert [one["state"] for one in listed("--log-dir", "empty")] == ["running"]


def test_no_runs() -> None:
    assert listed() == []
    absent = run("jobs", "--log-dir", "absent")
    assert (absent.returncode, absent.stderr.splitlines()[0]) == (
        2,
        'error: --log-dir "absent" is not a directory',
    )


def test_stop_ends_a_run() -> None:
    with running() as job:
        done = run("stop")

        assert done.returncode == 0, done.stderr
        assert "stopped 2" in done.stderr
        assert "exit code 143" in done.stderr
        assert job.wait(LONG) == 143
    again = run("stop", "latest")
    assert (again.returncode, "has already ended: exit code 143" in again.stderr) == (0, True)


def test_stop_without_a_name_ends_the_one_that_is_running() -> None:
    with running() as job:
        assert run(*LAUNCH, "exit 7").returncode == 7
        older = str(listed()[1]["name"])[:20]

        done = run("stop")

        assert (done.returncode, f"stopped {older} within" in done.stderr) == (0, True), done.stderr
        assert job.wait(LONG) == 143
    again = run("stop")
    assert (again.returncode, "has already ended: exit code 7" in again.stderr) == (0, True)


def test_stop_and_stacks_without_a_name_stop_nothing_if_several_are_running() -> None:
    with running() as first, running() as second:
        newer, older = (str(one["name"])[:20] for one in listed())
        refused = [run("stop"), run("stacks")]

        for done, command in zip(refused, ("stop", "stacks"), strict=True):
            lines = done.stderr.splitlines()
            advice = " ".join(done.stderr.partition("help: ")[2].split())
            assert (done.returncode, done.stdout) == (2, "")
            assert lines[0] == "error: 2 runs are running in log"
            assert [older in line for line in lines].count(True) == 1
            assert advice.startswith(
                f"name the run, for example the last one: `hccl-tools {command} {newer}`"
            )
            assert ("`hccl-tools stop --all`" in advice) == (command == "stop")
        assert (first.poll(), second.poll()) == (None, None)

        named = run("stop", newer)
        assert f"stopped {newer} within" in named.stderr
        shown = run("stacks")
        assert shown.returncode == 0, shown.stderr
        last = run("stop")
        assert f"stopped {older} within" in last.stderr


def test_stop_wakes_a_stopped_launcher_and_can_be_impatient() -> None:
    with running("trap '' TERM; echo up; while :; do sleep 60; done") as job:
        job.send_signal(signal.SIGTSTP)
        impatient = run("stop", "--wait", "0.3")
        assert impatient.returncode == 1
        assert "has not ended within 0.3 s" in impatient.stderr
        assert "--now" in impatient.stderr

        assert run("stop", "--now").returncode == 0
        assert job.wait(LONG) == 143


def test_stop_ends_what_a_killed_launcher_has_left() -> None:
    with running() as job:
        path = str(Path("log/latest").resolve())
        job.send_signal(signal.SIGKILL)
        job.wait()
    # The keeper ends the ranks; a moment before, they are still counted as left.
    assert eventually(lambda: [(one["state"], one["left"]) for one in listed()] == [("killed", 0)])
    assert "launcher killed" in run("jobs").stdout
    assert "no process of the run is left on this host" in run("stop").stderr
    # As if the keeper had been killed at the same instant.
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "HCCL_TOOLS_RUN_DIR": path}) as left:
        done = run("stop")

        assert left.wait(10) == -signal.SIGKILL
    assert (done.returncode, "was killed; killed 1 remaining process" in done.stderr) == (
        0,
        True,
    )


def test_what_a_killed_launcher_has_left_is_named_by_every_command() -> None:
    """Its keeper and its watcher are stopped, so that neither ends the ranks."""
    with running() as job:
        path = str(Path("log/latest").resolve())
        own = {process.pid: process for process in procfs.descendants(job.pid)}
        guards = [pid for pid in own if procfs.read(f"/proc/{pid}/comm").startswith("hccl-")]
        for pid in guards:
            os.kill(pid, signal.SIGSTOP)
        job.send_signal(signal.SIGKILL)
        job.wait()
    text = run("jobs").stdout
    assert "  launcher killed  " in text
    text = " ".join(text.split())  # lines are wrapped
    name = Path(path).name[:20]
    assert f"{name}: 2 processes are left; `hccl-tools stop {name}` ends them" in text
    assert [one["left"] for one in listed()] == [2]
    said = run(*LAUNCH, "true").stderr
    assert f"the launcher of {path} was killed, and 2 processes of the run are left: `hccl-tools stop" in said

    if os.geteuid() == 0:  # A run of another user, who has made the link to it.
        os.chown(path, 65534, 65534)
        Path("log/latest").unlink()
        Path("log/latest").symlink_to(path)
        assert "was killed" not in run(*LAUNCH, "true").stderr
        os.chown(path, 0, 0)
    done = run("stop", path)

    assert "was killed; killed 2 remaining processes" in done.stderr
    assert eventually(lambda: not any(is_same(process) for process in own.values()))


def is_same(process: procfs.Status) -> bool:
    now = procfs.status(process.pid)
    return now is not None and now.state not in procfs.ENDED_STATES and now.start == process.start


def test_stop_of_a_spawn_leaves_its_caller_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # Other runs of the host make columns wider.
    Path("work.py").write_text("import time\ndef nap():\n    print('up', flush=True)\n    time.sleep(60)\n")
    Path("main.py").write_text(
        "import hccl_tools, work\nif __name__ == '__main__':\n    try:\n"
        "        hccl_tools.spawn(work.nap, nprocs=2, cpu=True, start='table')\n"
        "    except hccl_tools.RankFailedError as error:\n        print(error.signal, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "main.py"], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == "up\n"
        assert [(one["state"], one["kind"], one["ranks"]) for one in listed()] == [("running", "spawn", 2)]
        assert f"(spawned by pid {caller.pid})" in run("jobs").stdout
        done = run("stop")

        assert done.returncode == 0, done.stderr
        assert caller.stdout.read() == "SIGTERM\n"
        assert caller.wait(10) == 0


def test_run_on_another_host_is_not_touched() -> None:
    run(*LAUNCH, "true")
    directory = Path("log/latest").resolve()
    (directory / "report.json").unlink()
    (directory / "launcher").write_text(f"{os.getpid()}\nsome-host\n{time.time()}\nlaunch\n")
    done = run("stop")

    assert [one["state"] for one in listed()] == ["elsewhere"]
    assert "on some-host" in run("jobs").stdout
    assert done.returncode == 2
    command = f"help: `ssh -- some-host '{own_python.typed('stop', str(directory))}'`\n"
    assert command in done.stderr
    # A newer run of this host that has ended does not hide it.
    run(*LAUNCH, "true")
    assert command in run("stop").stderr


def test_logs_of_ranks() -> None:
    run(*LAUNCH, "echo one; echo two; echo rank $RANK_ID")

    assert run("logs").stdout == "one\ntwo\nrank 0\n"
    assert run("logs", "latest", "--rank", "1", "-n", "1").stdout == "rank 1\n"
    both = run("logs", "latest", "--rank", "0", "--rank", "1", "-n", "1").stdout
    assert sorted(both.splitlines()) == ["[rank 0] rank 0", "[rank 1] rank 1"]
    name = Path("log/latest").resolve().name
    assert run("logs", name[:15], "-n", "0").returncode == 0


def test_logs_follow_to_the_end() -> None:
    with running("echo up; until [ -e go ]; do sleep 0.02; done; echo over"):
        command = [sys.executable, "-m", "hccl_tools", "logs", "latest", "-f"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
            assert follower.stdout is not None
            assert follower.stdout.readline() == "up\n"
            Path("go").touch()
            assert follower.communicate(timeout=LONG)[0] == "over\n"


def test_logs_begin_with_the_rank_that_failed_first() -> None:
    run(*LAUNCH, "echo rank $RANK_ID; [ $RANK_ID = 1 ] && exit 3; sleep 60")
    done = run("logs")

    assert done.stdout == "rank 1\n"
    assert done.stderr == f"rank 1 of {Path('log/latest').resolve().name[:20]}:\n"


def test_logs_of_a_restarted_job() -> None:
    again = 'echo "try $RANK_ID"; mkdir $RANK_ID.once 2>/dev/null || { echo over; exit; }; '
    again += "until [ -e followed ]; do sleep 0.02; done; exit 1"
    launch = (*LAUNCH[:-3], "--max-restarts", "1", *LAUNCH[-3:])
    command = [sys.executable, "-m", "hccl_tools"]
    with subprocess.Popen([*command, *launch, again], stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        job.stdout.readline()
        with subprocess.Popen(
            [*command, "logs", "--rank", "0", "-f"], stdout=subprocess.PIPE, text=True
        ) as logs:
            assert logs.stdout is not None
            followed = logs.stdout.readline()
            Path("followed").touch()
            followed += logs.stdout.read()
        job.stdout.read()

    assert followed == "try 0\ntry 0\nover\n"
    assert run("logs", "--rank", "0").stdout == "try 0\nover\n"


def test_logs_with_names_of_their_own() -> None:
    run(*LAUNCH[:1], "--flat-logs", *LAUNCH[1:], "echo flat $RANK_ID")

    assert run("logs", "--rank", "1").stdout == "flat 1\n"


def test_wrong_uses_are_one_sentence() -> None:
    run(*LAUNCH, "true")

    assert "has no rank 5\n  help: its ranks are 0 to 1" in run("logs", "--rank", "5").stderr
    assert "has no scheduler" in run("logs", "--scheduler").stderr
    absent = " ".join(run("stop", "19990101").stderr.split())
    assert f'there is no run "19990101" in {Path.cwd()}/log help:' in absent
    nowhere = " ".join(run("stop", "--log-dir", "absent").stderr.split())
    assert f"there is no run: {Path.cwd()}/absent does not exist" in nowhere
    assert '--wait "-1" is not a time (such as' in run("stop", "--wait", "-1").stderr


@pytest.mark.parametrize("command", ["stop", "logs", "stacks"])
def test_an_empty_name_is_no_run(command: str) -> None:
    with running() as job:
        done = run(command, "")

        assert done.returncode == 2
        assert done.stderr.startswith("error: the name of the run is empty")
        assert job.poll() is None


def test_one_log_without_a_cause_names_its_run() -> None:
    assert run(*LAUNCH, "echo ready; exit 7").returncode == 7
    (folder,) = {Path(str(one["path"])) for one in listed()}

    done = run("explain", f"log/{folder.name}/rank_0.log")

    said = " ".join(done.stderr.split())
    assert f"is a log of a run: `hccl-tools explain log/{folder.name}` reads all of it" in said
    assert "note: " not in run("explain", f"log/{folder.name}").stderr
