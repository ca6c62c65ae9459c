"""The first failure decides, one grace time holds for all, signals are passed on, the exit code is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.jobs import LONG, eventually, python, sh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.jobs import Job, Jobs

SLEEP = sh("echo $$ up; exec sleep 300")
#: Ignores everything that can be ignored.
STUBBORN = python(
    "import os, signal, time\n"
    "for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):\n"
    "    signal.signal(n, signal.SIG_IGN)\n"
    "print(os.getpid(), 'up', flush=True); time.sleep(300)"
)
#: Says which signals it gets; ends with 3 on SIGTERM.
LISTENER = python(
    "import os, signal, sys, time\n"
    "def hear(n, f):\n"
    "    print('got', signal.Signals(n).name, flush=True)\n"
    "    if n == signal.SIGTERM: sys.exit(3)\n"
    "for name in ('TERM', 'INT', 'HUP', 'QUIT', 'USR1', 'USR2'):\n"
    "    signal.signal(getattr(signal, 'SIG' + name), hear)\n"
    "print(os.getpid(), 'up', flush=True)\n"
    "while True: time.sleep(0.02)"
)


def test_all_ranks_start_and_a_good_job_ends_with_0(jobs: Jobs) -> None:
    code, job = jobs.run(*[sh("echo I am $RANK_ID")] * 4)
    assert code == 0
    assert [job.log(rank) for rank in range(4)] == [f"I am {rank}\n" for rank in range(4)]
    assert job.out == "I am 0\n"
    assert job.err == ""
    assert job.report["reason"] == "ended"
    assert [rank["exit_code"] for rank in job.report["ranks"]] == [0] * 4


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -SEGV $$", 139),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
        ("kill -ABRT $$", 134),
    ],
)
def test_the_exit_code_is_the_failed_ranks_own(jobs: Jobs, script: str, code: int) -> None:
    ended, job = jobs.run(SLEEP, SLEEP, sh(f"sleep 0.1; {script}"), SLEEP)
    assert ended == code
    assert not job.living()
    assert job.report["first_failure"]["rank"] == 2
    assert job.report["first_failure"]["exit_code"] == code
    assert job.err.splitlines()[-1].startswith(f"hccl-tools: exit code {code}, from rank 2")
    assert [end["rank"] for end in job.report["consequences"]] == [0, 1, 3]


def test_a_program_that_is_not_there_is_127(jobs: Jobs) -> None:
    code, job = jobs.run(["/nowhere/train"], SLEEP)
    assert code == 127
    assert 'there is no program "/nowhere/train"' in job.err
    code, job = jobs.run(["no-such-program-anywhere"], SLEEP)
    assert code == 127
    assert 'there is no program "no-such-program-anywhere" on the PATH' in job.err


def test_a_program_that_may_not_run_is_126(jobs: Jobs, tmp_path: Path) -> None:
    plain = tmp_path / "train.py"
    plain.write_text("print('hello')\n")
    code, job = jobs.run([str(plain)], SLEEP)
    assert code == 126
    assert "is not executable" in job.err
    plain.chmod(0o755)
    code, job = jobs.run([str(plain)], SLEEP)
    assert code == 126
    assert "is not a program" in job.err


def test_a_script_without_its_interpreter_says_so(jobs: Jobs, tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    code, job = jobs.run([str(script)])
    assert code == 126
    assert "names a missing interpreter in its first line" in job.err


def test_a_working_directory_that_is_not_there_is_refused(jobs: Jobs) -> None:
    code, job = jobs.run(SLEEP, working_dir="/nowhere")
    assert code == 125
    assert "cannot enter the working directory: No such file or directory" in job.err
    assert "  ended: rank 0 not started" in job.err


def test_a_log_that_cannot_be_written_is_refused(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "run_0").mkdir()
    (tmp_path / "run_0" / "rank_1.log").mkdir()
    code, job = jobs.run(SLEEP, SLEEP)
    assert code == 125
    assert "rank_1.log: Is a directory" in job.err
    assert not job.living()


def test_the_first_failure_in_time_decides_not_in_rank_order(jobs: Jobs) -> None:
    """Rank 0 fails because rank 3 has, and would be found first by whoever asks in rank order."""
    victim = sh("while [ ! -e failed ]; do sleep 0.01; done; sleep 0.2; exit 5")
    code, job = jobs.run(victim, SLEEP, victim, sh("sleep 0.2; touch failed; exit 9"), SLEEP)
    assert code == 9
    assert job.report["first_failure"]["rank"] == 3
    assert [end["asked_to_end"] for end in job.report["consequences"]] == [True] * 4


def test_a_failure_that_takes_long_to_complete_is_still_the_first(jobs: Jobs) -> None:
    """A rank with much memory: its partner sees it go, fails and has ended while it is still being freed."""
    large = (
        "pages = bytearray(1 << 29)\n"
        "for n in range(0, 1 << 29, 4096): pages[n] = 1\n"
        "open('ready', 'w')\n"
        "while not os.path.exists('go'): pass\n"
        "os.kill(os.getpid(), 11)"
    )
    partner = (
        "import os, time\n"
        "while not os.path.exists('ready'): time.sleep(0.01)\n"
        "pid = int(open('run/rank_1.log').read()); open('go', 'w')\n"
        "while not int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[6]) & 4: pass\n"
        "os._exit(1)"
    )
    program = python("import os; print(os.getpid(), flush=True)\n" + large)
    for attempt in range(5):
        # On a busy machine the partner may come too late to be the first that has ended.
        folder = jobs.folder / f"attempt_{attempt}"
        folder.mkdir()
        code, job = jobs.run(python(partner), program, working_dir=str(folder), run_dir=folder / "run")
        assert (code, job.report["first_failure"]["rank"]) in {(139, 1), (1, 0)}
        if code == 139 and not job.report["consequences"][0]["asked_to_end"]:
            assert job.report["consequences"][0]["exit_code"] == 1
            return
    pytest.fail("the failure that began first was never told as the first")


def test_ranks_that_ignore_sigterm_are_killed_after_one_grace_for_all(jobs: Jobs) -> None:
    failing = sh("sleep 1; exit 4")
    job = jobs.start(*[STUBBORN] * 4, failing, grace=1.0)
    assert job.says("up", 0, 1, 2, 3)
    assert job.end() == 4
    assert 1.9 < job.report["duration"] < 1.0 + 1.0 + 2.0
    assert [end["signal"] for end in job.report["consequences"]] == ["SIGKILL"] * 4
    assert not job.living()


def test_a_rank_has_the_grace_time_to_save_its_work(jobs: Jobs) -> None:
    saver = python(
        "import signal, sys, time\n"
        "def save(n, f): time.sleep(0.5); print('saved', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save); print('up', flush=True)\n"
        "while True: time.sleep(0.02)"
    )
    job = jobs.start(saver, sh("sleep 1; exit 1"), grace=LONG)
    assert job.end() == 1
    assert job.log(0) == "up\nsaved\n"
    assert "saved" in job.out


def test_no_grace_kills_at_once(jobs: Jobs) -> None:
    code, job = jobs.run(STUBBORN, sh("sleep 0.3; exit 4"), grace=0.0)
    assert code == 4
    assert job.report["consequences"][0]["signal"] == "SIGKILL"


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)],
)
def test_a_signal_to_the_launcher_is_passed_on_and_ends_the_job(
    jobs: Jobs, number: signal.Signals, code: int
) -> None:
    job = jobs.start(*[LISTENER] * 3, grace=1.5)
    assert job.says("up", 0, 1, 2)
    job.launcher.send_signal(number)
    assert job.end() == code
    for rank in range(3):
        heard = [line for line in job.log(rank).splitlines() if line.startswith("got")]
        assert heard[0] == f"got {number.name}"
        assert heard[-1] == "got SIGTERM"
    assert f"it received {number.name}" in job.err.splitlines()[-1]
    assert not job.living()


def test_a_second_ctrl_c_kills_at_once(jobs: Jobs) -> None:
    job = jobs.start(*[STUBBORN] * 2, grace=LONG)
    assert job.says("up", 0, 1)
    job.launcher.send_signal(signal.SIGINT)
    time.sleep(0.5)
    job.launcher.send_signal(signal.SIGINT)
    assert job.end() == 130
    assert not job.living()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_a_sigterm_after_the_first_signal_kills_at_once(jobs: Jobs, first: signal.Signals) -> None:
    job = jobs.start(*[STUBBORN] * 2, grace=10 * LONG)
    assert job.says("up", 0, 1)
    job.launcher.send_signal(first)
    time.sleep(1.2)
    job.launcher.send_signal(signal.SIGTERM)
    assert job.end() == 128 + first
    assert not job.living()


def test_a_sigterm_after_a_failure_leaves_the_ranks_their_grace(jobs: Jobs) -> None:
    saver = python(
        "import signal, sys, time\n"
        "def save(n, f): print('asked', flush=True); time.sleep(2); print('saved', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save); print('up', flush=True)\n"
        "while True: time.sleep(0.02)"
    )
    job = jobs.start(saver, sh("while ! grep -q up run_0/rank_0.log; do sleep 0.05; done; exit 5"))
    assert job.says("asked", 0)
    job.launcher.send_signal(signal.SIGTERM)
    assert job.end() == 5
    assert "saved" in job.log(0)


def test_user_signals_reach_the_ranks_and_end_nothing(jobs: Jobs) -> None:
    job = jobs.start(LISTENER, LISTENER)
    assert job.says("up", 0, 1)
    job.launcher.send_signal(signal.SIGUSR1)
    assert job.says("got SIGUSR1", 0, 1)
    job.launcher.send_signal(signal.SIGUSR2)
    assert job.says("got SIGUSR2", 0, 1)
    assert job.launcher.poll() is None
    job.launcher.send_signal(signal.SIGTERM)
    assert job.end() == 143


def test_nohup_is_respected(jobs: Jobs) -> None:
    job = jobs.start(LISTENER, prefix=("nohup",))
    assert job.says("up", 0)
    job.launcher.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert job.launcher.poll() is None
    assert "SIGHUP" not in job.log(0)
    job.launcher.send_signal(signal.SIGTERM)
    assert job.end() == 143


def background(jobs: Jobs) -> Job:
    """A job as a script's shell starts it with ``&``: SIGINT and SIGQUIT ignored."""
    prefix = ("/bin/sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh")
    return jobs.start(LISTENER, prefix=prefix, grace=1.5)


def test_kill_int_is_obeyed_by_a_scripts_background_job(jobs: Jobs) -> None:
    job = background(jobs)
    assert job.says("up", 0)
    job.launcher.send_signal(signal.SIGINT)
    assert job.end() == 130


def test_the_time_limit_ends_the_job_with_124(jobs: Jobs) -> None:
    code, job = jobs.run(SLEEP, SLEEP, timeout=0.5)
    assert code == 124
    assert job.report["reason"] == "timeout"
    assert "--timeout" in job.err.splitlines()[-1]
    assert not job.living()


def test_the_time_limit_is_that_of_all_restarts_together(jobs: Jobs) -> None:
    code, job = jobs.run(sh("sleep 0.7; exit 3"), timeout=1.5, max_restarts=50)
    assert code == 124
    assert 1 <= job.report["restarts"] <= 2


def test_stopping_the_launcher_stops_the_ranks_and_both_go_on(jobs: Jobs) -> None:
    counting = sh("i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done")
    job = jobs.start(counting)
    assert eventually(lambda: len(job.log(0)) > 20)
    job.launcher.send_signal(signal.SIGTSTP)
    _, status = os.waitpid(job.launcher.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert eventually(lambda: still(job))
    job.launcher.send_signal(signal.SIGCONT)
    so_far = len(job.log(0))
    assert eventually(lambda: len(job.log(0)) > so_far)
    job.launcher.send_signal(signal.SIGTERM)
    assert job.end() == 143


def still(job: Job) -> bool:
    """Whether rank 0 writes nothing for a while."""
    before = job.log(0)
    time.sleep(0.3)
    return job.log(0) == before


def test_only_the_chosen_rank_reads_stdin(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("one\ntwo\n")
    with (tmp_path / "input").open() as file:
        code, job = jobs.run(*[sh("cat")] * 3, popen={"stdin": file}, stdin_rank=1)
    assert code == 0
    assert [job.log(rank) for rank in range(3)] == ["", "one\ntwo\n", ""]


def test_ranks_can_be_bound_to_cores(jobs: Jobs) -> None:
    """By the library's way in; JSON has no integer keys."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from hccl_tools.launch.model.plan import RankProcess\n"
        "from hccl_tools.launch.supervise.supervisor import Supervision, supervise\n"
        "core = min(os.sched_getaffinity(0))\n"
        "argv = ('/bin/sh', '-c', 'grep Cpus_allowed_list /proc/self/status')\n"
        "rank = RankProcess(0, 'h', 0, 0, 0, {}, argv, 'rank_0.log')\n"
        "options = Supervision(cpus={0: (core,)})\n"
        "supervise([rank], run_dir=Path(sys.argv[1]), environment={}, working_dir='/', options=options)\n"
        "print(core)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(jobs.folder)], capture_output=True, text=True, check=True
    )
    allowed, core = done.stdout.splitlines()
    assert allowed == f"Cpus_allowed_list:\t{core}"


def test_a_scheduler_that_fails_fails_the_job(jobs: Jobs) -> None:
    code, job = jobs.run(SLEEP, SLEEP, scheduler=sh("sleep 0.2; exit 6"))
    assert code == 6
    assert job.err.startswith("hccl-tools: scheduler failed first: exit code 6")
    assert "device" not in job.err.splitlines()[0]


def test_a_scheduler_that_stays_is_ended_without_harm(jobs: Jobs) -> None:
    code, job = jobs.run(sh("true"), sh("true"), scheduler=SLEEP, scheduler_wait=0.3)
    assert code == 0
    assert job.report["consequences"][0]["name"] == "scheduler"
    assert not job.living()


def test_a_scheduler_that_ends_after_the_ranks_is_waited_for(jobs: Jobs) -> None:
    code, job = jobs.run(sh("true"), scheduler=sh("sleep 0.5; echo bye; exit 1"), scheduler_wait=LONG)
    assert code == 0
    assert (job.run_dir / "scheduler.log").read_text() == "bye\n"


def test_all_ranks_start_again_after_a_failure(jobs: Jobs, tmp_path: Path) -> None:
    """Rank 1 fails twice; each start has its own logs."""
    flaky = sh(
        f"echo start; sleep 0.3; echo x >> {tmp_path}/count; [ $(wc -l < {tmp_path}/count) -gt 2 ] || exit 3"
    )
    code, job = jobs.run(sh("echo start; sleep 1"), flaky, max_restarts=5)
    assert code == 0
    assert job.report["restarts"] == 2
    for name in ("rank_0", "rank_1", "rank_0.restart_1", "rank_1.restart_2"):
        assert (job.run_dir / f"{name}.log").read_text() == "start\n"
    assert job.err.count("failed first") == 2
    assert "restart 2 of 5" in job.err
    attempts = job.report["attempts"]
    assert [(start["reason"], start["exit_code"]) for start in attempts] == [
        *[("failed", 3)] * 2,
        ("ended", 0),
    ]
    assert attempts[0]["first_failure"]["rank"] == 1
    assert attempts[1]["first_failure"]["log"].endswith("rank_1.restart_1.log")
    assert job.report["duration"] > sum(start["duration"] for start in attempts)
    assert not job.living()


def test_restarts_end_with_the_last_failure(jobs: Jobs) -> None:
    code, job = jobs.run(SLEEP, sh("sleep 0.1; exit 3"), max_restarts=1)
    assert code == 3
    assert job.report["restarts"] == 1
    assert len(job.report["attempts"]) == 2
    assert "rank_1.restart_1.log" in job.err


def test_an_interrupted_job_does_not_start_again(jobs: Jobs) -> None:
    job = jobs.start(SLEEP, max_restarts=3)
    assert job.says("up", 0)
    job.launcher.send_signal(signal.SIGTERM)
    assert job.end() == 143
    assert job.report["restarts"] == 0


def test_a_signal_during_the_start_of_many_ranks_ends_all(jobs: Jobs) -> None:
    job = jobs.start(*[SLEEP] * 64)
    assert job.says("up", 0)
    job.launcher.send_signal(signal.SIGTERM)
    assert job.end() == 143
    assert not job.living()
