"""The first failure decides, one grace time holds for all, signals are passed on, the exit code is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hccl_tools.processes import procfs
from hccl_tools.processes.timing import TIMING_VARIABLE
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
HEAR = (
    "import os, signal, sys\n"
    "numbers = [getattr(signal, 'SIG' + name) for name in ('TERM', 'INT', 'HUP', 'QUIT', 'USR1', 'USR2')]\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, numbers)\n"
    "print(os.getpid(), 'up', flush=True)\n"
    "while True:\n"
    "    number = signal.sigwait(numbers)\n"
    "    print('got', signal.Signals(number).name, flush=True)\n"
)
#: Says which signals it gets.
HEARER = python(HEAR)
#: Ends with 3 on SIGTERM, too.
LISTENER = python(HEAR + "    if number == signal.SIGTERM: sys.exit(3)\n")
#: Saves its work after SIGTERM, for as long as it takes until SIGUSR1.
SAVER = python(HEAR + "    if number == signal.SIGUSR1: print('saved', flush=True); sys.exit(0)\n")


def once_up(*ranks: int, then: str) -> list[str]:
    """A program that goes on when these ranks of the first job have written to their logs."""
    logs = " && ".join(f"[ -s run_0/rank_{rank}.log ]" for rank in ranks)
    return sh(f"until {logs}; do sleep 0.02; done; {then}")


def state(pid: int) -> str:
    """Return the state of a process in /proc, such as R, S or Z; "" if it does not exist."""
    status = procfs.status(pid)
    return status.state if status else ""


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
    ended, job = jobs.run(SLEEP, SLEEP, once_up(0, 1, 3, then=script), SLEEP)
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
    assert "  ended: rank 0: not started" in job.err


def test_a_log_that_cannot_be_written_is_refused(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "run_0").mkdir()
    (tmp_path / "run_0" / "rank_1.log").mkdir()
    code, job = jobs.run(SLEEP, SLEEP)
    assert code == 125
    assert "rank_1.log: Is a directory" in job.err
    assert not job.living()


def test_the_first_failure_in_time_decides_not_in_rank_order(jobs: Jobs) -> None:
    """Rank 0 fails after rank 3. A search in the order of ranks would find rank 0 first."""
    job = jobs.start(*[SLEEP] * 4)
    assert job.says("up", *range(4))
    first, second = job.pid(3), job.pid(0)
    found = procfs.status(first)
    assert found is not None
    keeper = found.parent
    os.kill(keeper, signal.SIGSTOP)  # It finds both at once.
    for pid, number in ((first, signal.SIGSEGV), (second, signal.SIGABRT)):
        os.kill(pid, number)
        assert eventually(lambda pid=pid: state(pid) == "Z")  # type: ignore[misc]
    os.kill(keeper, signal.SIGCONT)
    assert job.end() == 139
    assert job.report["first_failure"]["rank"] == 3
    assert [end["asked_to_end"] for end in job.report["consequences"]] == [False, True, True]


def test_ranks_that_ignore_sigterm_are_killed_after_the_grace(jobs: Jobs) -> None:
    job = jobs.start(*[STUBBORN] * 4, once_up(0, 1, 2, 3, then="exit 4"), grace=0.5)
    assert job.end() == 4
    assert job.report["duration"] > 0.5
    assert [end["signal"] for end in job.report["consequences"]] == ["SIGKILL"] * 4
    assert not job.living()


def test_no_grace_kills_at_once(jobs: Jobs) -> None:
    code, job = jobs.run(HEARER, once_up(0, then="exit 4"), grace=0.0)
    assert code == 4
    assert job.report["consequences"][0]["signal"] == "SIGKILL"
    assert "got" not in job.log(0)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)],
)
def test_a_signal_to_the_launcher_is_passed_on_and_ends_the_job(
    jobs: Jobs, number: signal.Signals, code: int
) -> None:
    job = jobs.start(*[LISTENER] * 3, grace=10 * LONG)
    assert job.says("up", 0, 1, 2)
    job.launcher.send_signal(number)
    assert job.says(f"got {number.name}\n", 0, 1, 2)
    if number != signal.SIGTERM:  # It would follow after a third of the grace time.
        for rank in range(3):
            os.kill(job.pid(rank), signal.SIGTERM)
    assert job.end() == code
    heard = [f"got {name}" for name in dict.fromkeys([number.name, "SIGTERM"])]
    assert [job.log(rank).splitlines()[1:] for rank in range(3)] == [heard] * 3
    assert f"the launcher received {number.name}" in job.err.splitlines()[-1]
    assert not job.living()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (signal.SIGINT, signal.SIGINT),
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGINT, signal.SIGTERM),
    ],
)
def test_a_second_signal_kills_at_once(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, first: signal.Signals, second: signal.Signals
) -> None:
    monkeypatch.setenv(TIMING_VARIABLE, "supervisor.repeat_sigint=0,supervisor.repeat_sigterm=0")
    job = jobs.start(*[HEARER] * 2, grace=10 * LONG)
    assert job.says("up", 0, 1)
    job.launcher.send_signal(first)
    assert job.says(f"got {first.name}\n", 0, 1)
    job.launcher.send_signal(second)
    assert job.end() == 128 + first
    assert [end["signal"] for end in job.report["ranks"]] == ["SIGKILL"] * 2
    assert not job.living()


def test_a_signal_is_in_the_report_before_the_ranks_have_ended(jobs: Jobs) -> None:
    """A batch system may kill the launcher soon after it has asked it to end."""
    job = jobs.start(STUBBORN, grace=10 * LONG)
    assert job.says("up", 0)
    job.launcher.terminate()
    assert eventually((job.run_dir / "report.json").exists)
    job.launcher.kill()
    assert job.end() == -signal.SIGKILL
    assert (job.report["reason"], job.report["exit_code"]) == ("signal", 128 + signal.SIGTERM)
    assert job.is_gone()


def test_a_sigterm_after_a_failure_leaves_the_ranks_their_grace(jobs: Jobs) -> None:
    job = jobs.start(SAVER, once_up(0, then="exit 5"), grace=10 * LONG)
    assert job.says("got SIGTERM\n", 0)
    job.launcher.send_signal(signal.SIGTERM)
    assert eventually(lambda: not is_pending(job.launcher.pid, signal.SIGTERM))
    job.launcher.send_signal(signal.SIGUSR1)  # Whatever follows from SIGTERM is done before.
    assert job.end() == 5
    assert "saved" in job.log(0)
    assert "saved" in job.out


def is_pending(pid: int, number: signal.Signals) -> bool:
    """Whether a process has yet to take a signal."""
    fields = procfs.read(f"/proc/{pid}/status").splitlines()
    (pending,) = [int(field.split()[1], 16) for field in fields if field.startswith("ShdPnd:")]
    return bool(pending >> (number - 1) & 1)


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
    job.launcher.send_signal(signal.SIGUSR1)  # The kernel delivers it after SIGHUP.
    assert job.says("got SIGUSR1", 0)
    assert "SIGHUP" not in job.log(0)
    job.launcher.send_signal(signal.SIGTERM)
    assert job.end() == 143


def background(jobs: Jobs) -> Job:
    """A job as a script's shell starts it with ``&``: SIGINT and SIGQUIT ignored."""
    prefix = ("/bin/sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh")
    return jobs.start(LISTENER, prefix=prefix, grace=0.6)


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
    code, _ = jobs.run(sh("sleep 0.2; exit 3"), timeout=1.0, max_restarts=1_000_000)
    assert code == 124


def test_stopping_the_launcher_stops_the_ranks_and_both_go_on(jobs: Jobs) -> None:
    counting = sh("echo $$; while :; do echo on; sleep 0.02; done")
    job = jobs.start(counting)
    assert job.says("on", 0)
    job.launcher.send_signal(signal.SIGTSTP)
    _, status = os.waitpid(job.launcher.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert eventually(lambda: state(job.pid(0)) == "T")
    job.launcher.send_signal(signal.SIGCONT)
    so_far = len(job.log(0))
    assert eventually(lambda: len(job.log(0)) > so_far)
    job.launcher.send_signal(signal.SIGTERM)
    assert job.end() == 143


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
    code, job = jobs.run(SLEEP, SLEEP, scheduler=once_up(0, 1, then="exit 6"))
    assert code == 6
    assert job.err.startswith("hccl-tools: scheduler failed first: exit code 6")
    assert "device" not in job.err.splitlines()[0]


def test_a_scheduler_that_stays_is_ended_without_harm(jobs: Jobs) -> None:
    code, job = jobs.run(sh("true"), sh("true"), scheduler=SLEEP, scheduler_wait=0.3)
    assert code == 0
    assert job.report["consequences"][0]["name"] == "scheduler"
    assert not job.living()


def test_a_scheduler_that_ends_after_the_ranks_is_waited_for(jobs: Jobs) -> None:
    rank = "/proc/$(cat run_0/rank_0.log)"
    late = once_up(0, then=f"while [ -d {rank} ]; do sleep 0.02; done; echo bye; exit 1")
    code, job = jobs.run(sh("echo $$"), scheduler=late, scheduler_wait=10 * LONG)
    assert code == 0
    assert (job.run_dir / "scheduler.log").read_text() == "bye\n"


def test_all_ranks_start_again_after_a_failure(jobs: Jobs) -> None:
    """Rank 1 fails twice, as soon as rank 0 has started; each start has its own logs."""
    flaky = sh(
        "echo start; echo x >> count; n=$(wc -l < count)\n"
        "until [ -e started ] && [ $(wc -l < started) -eq $n ]; do sleep 0.02; done\n"
        "[ $n -gt 2 ] || exit 3"
    )
    code, job = jobs.run(sh("echo start; echo x >> started"), flaky, max_restarts=5)
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
    code, job = jobs.run(SLEEP, sh("exit 3"), max_restarts=1)
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
