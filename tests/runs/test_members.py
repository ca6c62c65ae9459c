"""``jobs``, ``logs`` and ``stop`` on run directories that somebody else has written."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.processes import procfs
from hccl_tools.runs import files, index, lock_holder, own_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.strangers import Stranger

#: Each test starts processes.
pytestmark = pytest.mark.slow

LAUNCH = ("launch", "--no-table", "-n", "1", "--start", "table", "--no-python")


def tools(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools", *args],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **variables},
    )  # fmt: skip


@pytest.fixture
def sound() -> Path:
    """A run that has ended, and lies in ``log/``."""
    assert tools(*LAUNCH, "echo", "sound").returncode == 0
    return Path("log/latest").resolve()


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with any run."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def copy(sound: Path, name: str, **changes: Any) -> Path:
    """A run directory like the sound one, with other values in its plan."""
    made = sound.parent / name
    shutil.copytree(sound, made)
    plan = json.loads((made / "plan.json").read_text())
    (made / "plan.json").write_text(json.dumps({**plan, **changes}))
    return made


def process(**changes: Any) -> dict[str, Any]:
    whole = {"rank": 0, "host": "a", "here": True, "log": "rank_0.log", "argv": ["true"]}
    return {key: value for key, value in {**whole, **changes}.items() if value is not ...}


PROCESSES: list[Any] = [
    5, [5], [{}], [process(rank="0")], [process(rank=True)], [process(argv="x")], [process(argv=[1])],
    [process(log="a\0b")], [process(log=...)], [process(host=3)], [process(here=1)],
]  # fmt: skip
REPORTS: list[dict[str, Any]] = [
    {"reason": None}, {"duration": "3"}, {"duration": -1}, {"hung": {}}, {"hung": [{}]},
    {"ranks": [{"rank": 0, "plog": 5}]}, {"ranks": [{"rank": 1 << 31}]},
    {"first_failure": {"rank": 0, "killed_by_oom": 1}},
]  # fmt: skip
MALFORMED: list[tuple[str, str]] = [
    *(("plan.json", text) for text in ("{", "[]", "[" * 100_000, "\udcff\udcfe")),
    ("plan.json", '{"processes": [], "hosts": 4}'),
    *(("plan.json", json.dumps({"processes": value})) for value in PROCESSES),
    ("report.json", '{"exit_code": "no"}'),
    ("report.json", '{"exit_code": 1, "first_failure": [1]}'),
    ("report.json", '{"exit_code": 256}'),
    *(("report.json", json.dumps({"exit_code": 1, **fields})) for fields in REPORTS),
    *(("launcher", text) for text in ("x\ny\nz\n", "-1\nhost\n1\nlaunch\n", "5\nhost\ninf\nlaunch\n")),
]


@pytest.mark.parametrize(("name", "text"), MALFORMED, ids=lambda value: value[:40])
def test_a_file_that_is_not_what_a_launcher_writes(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"processes": [process()]}))
    assert index.read(str(tmp_path)).command == ("true",)
    (tmp_path / name).write_text(text, errors="surrogateescape")

    with pytest.raises(files.MalformedRunError, match=name):
        index.read(str(tmp_path))


def test_a_malformed_run_is_left_out_and_named(sound: Path) -> None:
    bad = copy(sound, "bad\x1b[31m", processes=[{}])

    jobs = tools("jobs", "-f", "json")
    stop = tools("stop", sound.name[:-3])
    asked = tools("logs", str(bad))

    here = [one for one in json.loads(jobs.stdout)["runs"] if one["path"].startswith(str(sound.parent))]
    assert [one["name"] for one in here] == [sound.name], jobs.stderr
    # A command with a name looks only at the runs whose names begin with it.
    for done, times in ((jobs, 1), (stop, 0)):
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("bad\\u001b[31m is skipped: ") == times
    assert asked.returncode == 2
    assert "Traceback" not in asked.stderr
    assert "\x1b" not in jobs.stderr + stop.stderr + asked.stderr


def test_a_newline_in_the_name_of_a_run_begins_no_line(sound: Path) -> None:
    bad = copy(sound, "a\nerror: forged")

    done = tools("stop", str(bad)), tools("logs", "--rank", "7", str(bad)), tools("jobs")

    lines = [line for one in done for line in (one.stdout + one.stderr).splitlines()]
    assert not any(line.startswith("error: forged") for line in lines)
    assert any("a\\u000aerror: forged" in line for line in lines)


@pytest.mark.parametrize("name", ["plan.json", "report.json", "launcher", "rank_0.log", "run_dirs.json"])
def test_a_pipe_in_a_run_directory_holds_up_nobody(sound: Path, name: str) -> None:
    bad = copy(sound, "bad")
    (bad / name).unlink(missing_ok=True)
    os.mkfifo(bad / name)

    assert tools("jobs").returncode == 0
    assert tools("logs", str(bad)).returncode in {0, 2}
    assert tools("stop", str(bad)).returncode in {0, 2}


def running(run: Path, pid: int, *, start: int | None, ago: float = 3600) -> int:
    """Let a run look as if a process were its launcher; return what holds its lock."""
    (run / "report.json").unlink()
    noted = f"{pid}\n{os.uname().nodename}\n{time.time() - ago}\nlaunch\n"
    (run / "launcher").write_text(noted + ("" if start is None else f"{start}\n"))
    descriptor = os.open(run / "launcher", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


@pytest.mark.parametrize("form", ["now", "before"])
def test_stop_signals_no_process_that_has_the_number_of_a_launcher(
    sound: Path, victim: subprocess.Popen[bytes], form: str
) -> None:
    bad = copy(sound, "bad")
    lock = running(bad, victim.pid, start=1 if form == "now" else None)

    done = tools("stop", str(bad), "--now", "--wait", "0.1")

    os.close(lock)
    assert done.returncode == 2
    assert f"process {victim.pid} is not the launcher of bad" in done.stderr
    assert victim.poll() is None


@pytest.mark.parametrize("has_start", [True, False])
def test_stop_signals_no_process_that_only_the_files_of_an_unpacked_run_name(
    sound: Path, victim: subprocess.Popen[bytes], *, has_start: bool
) -> None:
    bad, status = copy(sound, "bad"), procfs.status(victim.pid)
    assert status is not None
    lock = running(bad, victim.pid, start=status.start if has_start else None, ago=-3600)

    done = tools("stop", str(bad), "--now", "--wait", "0.1")

    os.close(lock)
    assert done.returncode == 2
    assert f"process {victim.pid} is not the launcher of bad" in done.stderr
    assert victim.poll() is None


def test_stop_does_not_take_a_reader_for_the_launcher(sound: Path) -> None:
    bad = copy(sound, "bad")
    os.close(running(bad, 0, start=None))
    with (
        (bad / "launcher").open("rb") as opened,
        subprocess.Popen(["sleep", "60"], stdin=opened) as reader,
        (bad / "launcher").open("r+b") as written,
        subprocess.Popen(["sleep", "60"], stdin=written) as writer,
    ):
        for one in (reader, writer):
            noted = f"{one.pid}\n{os.uname().nodename}\n{time.time()}\nlaunch\n0\n"
            (bad / "launcher").write_text(noted)
            assert lock_holder.is_launcher(str(bad), one.pid) == (one is writer)
            one.kill()


@pytest.mark.bed
def test_a_lock_of_another_user_does_not_make_a_run_running(
    sound: Path, stranger: Stranger, victim: subprocess.Popen[bytes]
) -> None:
    bad = stranger.folder / "bad"
    shutil.copytree(sound, bad)
    os.close(running(bad, victim.pid, start=None, ago=-3600))
    bad.chmod(0o755)
    (bad / "launcher").chmod(0o644)
    lock = (
        "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX); "
        "print(flush=True); input()"
    )
    with subprocess.Popen(
        [stranger.interpreter, "-I", "-c", lock, str(bad / "launcher")], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, user=stranger.user, group=stranger.user, extra_groups=[],
    ) as other:  # fmt: skip
        assert other.stdout is not None
        other.stdout.readline()
        state = index.read(str(bad)).state
        done = tools("stop", str(bad), "--wait", "0.1")
        other.kill()

    assert state == "killed"
    assert "no process of the run is left on this host" in done.stderr
    assert victim.poll() is None


@pytest.mark.parametrize("is_known", [True, False])
def test_a_lock_of_no_visible_process_is_believed_for_own_launches_only(
    sound: Path, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    """Such as the lock of a launcher in another container."""
    run = sound if is_known else copy(sound, "bad")
    lock = running(run, 0, start=None)
    monkeypatch.setattr(lock_holder, "_holders", lambda _: [])
    if is_known:
        own_runs.note_report(str(run), os.environ)

    assert index.is_held(str(run)) == is_known
    os.close(lock)


@pytest.mark.parametrize("is_reported", [True, False])
def test_a_run_that_has_ended_is_not_running_because_its_lock_is_held(
    sound: Path, victim: subprocess.Popen[bytes], *, is_reported: bool
) -> None:
    report = (sound / "report.json").read_bytes()
    lock = running(sound, victim.pid, start=1)
    if is_reported:
        (sound / "report.json").write_bytes(report)
    else:
        with (sound / "launcher").open("a") as file:
            file.write("ended 0 ended\n")

    listed, stopped = tools("jobs", "-f", "json"), tools("stop", str(sound))

    os.close(lock)
    (own,) = [one for one in json.loads(listed.stdout)["runs"] if one["path"] == str(sound)]
    assert own["state"] == "ended"
    assert stopped.returncode == 0
    assert "already ended: exit code 0" in stopped.stdout + stopped.stderr


@pytest.mark.parametrize("pid", [0, 1])
def test_stop_signals_no_group_and_no_init(sound: Path, pid: int) -> None:
    bad = copy(sound, "bad")
    lock = running(bad, pid, start=None)

    done = tools("stop", str(bad), "--wait", "0.1")

    os.close(lock)
    assert (done.returncode, "is not the launcher" in done.stderr) == (2, True)


def test_runs_of_the_version_before_are_read_and_stopped() -> None:
    command = [sys.executable, "-m", "hccl_tools", *LAUNCH, "sh", "-c", "echo up; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        job.stdout.readline()
        noted = Path("log/latest/launcher")
        lines = noted.read_text().splitlines()
        assert int(lines[4]) == getattr(procfs.status(job.pid), "start", 0)
        noted.write_text("".join(f"{line}\n" for line in lines[:4]))
        plan = Path("log/latest/plan.json")
        plan.write_text(json.dumps({**json.loads(plan.read_text()), "launcher_python": "/bin/false"}))

        assert tools("logs").stdout == "up\n"
        assert "running" in tools("jobs").stdout
        done = tools("stop")

        assert done.returncode == 0, done.stderr
        assert job.wait(10) == 143


STRANGE_HOSTS = ["-oProxyCommand=touch made", "a;touch made", "$(touch made)"]


@pytest.mark.parametrize("host", [*STRANGE_HOSTS, "elsewhere"])
def test_logs_of_another_host_run_what_the_caller_has(sound: Path, host: str) -> None:
    """Nothing of plan.json is run, and a host is a host."""
    mine = Path("mine")
    mine.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > asked\n')
    mine.chmod(0o755)
    planned = [process(host=host, here=False)]
    changes = {"hosts": [host, "b"], "launcher_python": "/tmp/evil", "engine": "mpirun"}
    bad = copy(sound, "bad", processes=planned, **changes)
    (bad / "rank_0.log").unlink()
    own_runs.note(str(bad.resolve()), os.environ)

    done = tools("logs", str(bad), "--ssh", str(mine.resolve()))

    assert not Path("made").exists()
    if host == "elsewhere":
        asked = Path("asked").read_text().splitlines()
        assert asked[asked.index("--") + 1] == host
        assert " hccl_tools logs " in asked[-1]
        assert "evil" not in "".join(asked)
    else:
        assert done.returncode == 2
        assert "is not a host name" in done.stderr
        assert not Path("asked").exists()


@pytest.mark.bed
def test_a_run_of_another_user_is_only_read(stranger: Stranger) -> None:
    """The stranger's run names our process, a host to come to and a program to run."""
    log_dir = stranger.folder / "log"
    done = stranger.tools(*LAUNCH[:-1], "--log-dir", str(log_dir), LAUNCH[-1], "printf", r"\033[31mred\n")
    assert done.returncode == 0, done.stderr
    (run,) = (path for path in log_dir.iterdir() if path.name != "latest")
    with subprocess.Popen(["sleep", "60"]) as ours:
        stranger.python(
            "import json, os, sys, time; run, pid = sys.argv[1:]; os.chmod(run, 0o777)\n"
            "plan = json.load(open(run + '/plan.json'))\n"
            "plan['processes'].append({**plan['processes'][0], 'rank': 1, 'host': 'away', 'here': False})\n"
            "plan['processes'][1]['log'] = 'rank_1.log'\n"
            "plan.update(launcher_python='/tmp/evil', hosts=['a', 'away'])\n"
            "json.dump(plan, open(run + '/plan.json', 'w')); os.unlink(run + '/report.json')\n"
            "lines = (pid, os.uname().nodename, time.time(), 'launch')\n"
            "open(run + '/launcher', 'w').write(''.join(f'{line}\\n' for line in lines))\n",
            str(run), str(ours.pid),
        )  # fmt: skip
        shown, away = tools("logs", str(run)), tools("logs", str(run), "--rank", "1", "--ssh", "/bin/false")
        stopped = tools("stop", str(run), "--now", "--wait", "0.1")

        assert ours.poll() is None
        ours.kill()
    assert shown.stdout == "\x1b[31mred\n"  # No terminal is there to be steered.
    assert away.returncode == 2
    assert "belongs to nobody: only the run's files on this host are read" in away.stderr
    assert "its launcher was killed" in stopped.stderr or "no process of the run is left" in stopped.stderr


@pytest.mark.bed
def test_a_process_of_another_user_is_not_part_of_our_run(sound: Path, stranger: Stranger) -> None:
    """Root's `stop` kills what claims to be of a run: only processes of the run's user may."""
    (sound / "report.json").unlink()
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen(
        [stranger.interpreter, "-c", program], user=65534, group=65534, extra_groups=[], text=True,
        stdout=subprocess.PIPE, env={"HCCL_TOOLS_RUN_DIR": str(sound)}, cwd="/",
    ) as other:  # fmt: skip
        assert other.stdout is not None
        other.stdout.readline()

        runs = json.loads(tools("jobs", "-f", "json").stdout)["runs"]
        assert [one["left"] for one in runs if one["path"] == str(sound)] == [0]
        assert "no process of the run is left" in tools("stop", str(sound)).stderr
        assert other.poll() is None
        other.kill()


def test_launch_is_not_held_up_by_what_the_last_run_left(sound: Path) -> None:
    (sound / "report.json").unlink()
    (sound / "launcher").write_text("x\n")

    done = tools(*LAUNCH, "true")

    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


def test_a_command_in_a_hint_quotes_what_comes_from_a_table() -> None:
    devices = [{"device_id": "0", "device_ip": "192.168.0.1", "rank_id": "0"}]
    server = {"server_id": "a$(touch made)", "device": devices, "host_nic_ip": "reserve"}
    table = {"version": "1.0", "server_count": "1", "server_list": [server], "status": "completed"}
    Path("table.json").write_text(json.dumps(table))

    done = tools("launch", "--rank-table", "table.json", "--cpu", "--start", "table", "--no-python", "true")

    assert done.returncode == 125
    assert "`--server 'a$(touch made)'`" in done.stderr


def test_a_list_of_runs_reads_the_beginning_of_a_plan(sound: Path) -> None:
    text = (sound / "plan.json").read_text()
    head, _, _ = text.partition("\n  ]\n}\n")
    huge = sound.parent / "huge"
    shutil.copytree(sound, huge)
    (huge / "plan.json").write_text(head + ",\n    not JSON\n" * 50_000)

    assert index.read(str(huge)).command == index.read(str(sound)).command == ("echo", "sound")
    assert index.read(str(sound)).ranks == len(files.plan(str(sound)).ranks) == 1
    with pytest.raises(files.MalformedRunError, match=r"plan\.json cannot be read: this is not JSON"):
        files.plan(str(huge))


@pytest.mark.parametrize("pid", [str(10**20), "-1", "1e3"])
def test_a_launcher_with_an_impossible_process_id_is_malformed(tmp_path: Path, pid: str) -> None:
    (tmp_path / "launcher").write_text(f"{pid}\nnode1\n0\nlaunch\n0\n")

    with pytest.raises(files.MalformedRunError, match="does not name a launcher"):
        files.holder(str(tmp_path))
