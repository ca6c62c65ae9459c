"""A job that hangs is ended with the ranks that stopped first, for four kinds of hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.model.outcome import hung_headline, odd_ones_first
from hccl_tools.launch.report.report import hang_lines
from hccl_tools.runs.job_report import HungRank
from tests.support import published
from tests.support.hanging import without_py_spy
from tests.support.mpiruns import every_mpirun
from tests.support.typed_jobs import Typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.jobs import Jobs
    from tests.support.mpiruns import Mpirun

#: Each test waits until a job hangs, for two seconds or more.
pytestmark = pytest.mark.slow

RANK = Path(__file__).parents[2] / "support" / "hanging_rank.py"


def launch(*argv: str, ranks: int = 3, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Launch ``hanging_rank.py`` in the working directory."""
    start = () if "--cpu" in options else ("--start", "table")
    here = ("--no-table", *start, "-n", str(ranks), "--python", sys.executable)
    return subprocess.run(
        [
            *(sys.executable, "-m", "hccl_tools", "launch", *here, "--hang-timeout", "2", "--grace", "2"),
            *(*options, str(RANK), *argv),
        ],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    """Launch one rank in the working directory."""
    here = ("--no-table", "--start", "table", "-n", "1", "--python", sys.executable, "--grace", "2")
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools", "launch", *here, *argv],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def report() -> dict[str, Any]:
    """Return the last report."""
    found: dict[str, Any] = published.read("report", Path("log/latest/report.json"))
    return found


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    without_py_spy(monkeypatch)


@pytest.mark.parametrize(
    ("kind", "beats", "first", "doing"),
    [
        ("deadlock", (), [0, 1, 2], "sleeping in recvfrom() on a socket"),
        ("loop", ("--beats",), [1], "computing, without a heartbeat"),
        ("stopped", (), [1], "stopped"),
        ("stopped", ("--beats",), [1], "stopped"),
        ("read", (), [1], "sleeping in read() on a pipe"),
    ],
)
def test_a_hang_is_the_cause_and_names_the_rank_that_stopped_first(
    kind: str, beats: tuple[str, ...], first: list[int], doing: str
) -> None:
    job = launch(kind, *beats)

    assert job.returncode == 124, job.stderr
    found = report()
    assert (found["reason"], found["exit_code"]) == ("hang", 124)
    assert [one["rank"] for one in found["hung"] if one["is_first"]] == first
    assert {one["rank"] for one in found["hung"]} == {0, 1, 2}
    assert {one["doing"] for one in found["hung"] if one["is_first"]} == {doing}
    assert found["hung"][0]["last_line"] == "step 5"
    names = "ranks 0-2 stopped at the same time" if len(first) > 1 else "rank 1 stopped first"
    assert job.stderr.splitlines()[-1] == f"hccl-tools: exit code 124: the job hung: {names}: {doing}"
    if len(first) == 1:
        assert "  ranks 0, 2: sleeping in recvfrom() on a socket\n" in job.stderr


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        (("deadlock",), "deadlock"),
        (("loop", "--beats"), "endless_loop"),
        (("stopped",), "hang"),
        (("read",), "endless_read"),
    ],
)
def test_the_stack_of_the_rank_that_stopped_first_is_in_its_log(kind: tuple[str, ...], function: str) -> None:
    job = launch(*kind, options=("--faulthandler",))

    assert job.returncode == 124, job.stderr
    assert f" in {function}\n" in Path("log/latest/rank_1.log").read_text()
    (stack,) = [one["stack"] for one in report()["hung"] if one["rank"] == 1]
    assert stack[0].endswith(f" in {function}")
    assert stack[-1].endswith(" in <module>")
    shown = stack[0].replace(str(RANK.parents[1]), "...")  # The screen shows the end of a path.
    assert f"    | {shown}\n" in job.stderr


def test_ranks_that_compute_without_output_go_on_and_the_reason_is_told_once() -> None:
    Path("train.py").write_text(
        "import time\nend = time.monotonic() + 6\nwhile time.monotonic() < end:\n    pass\n"
    )
    job = run("--hang-timeout", "2", "train.py")

    assert job.returncode == 0, job.stderr
    said = "but the job does not count as hung, because its processes use CPU time or files"
    assert job.stderr.count(said) == 1


def test_a_rank_that_is_no_python_gets_no_signal_and_its_report_says_why_it_has_no_stack() -> None:
    job = run("--hang-timeout", "1", "--faulthandler", "--no-python", "sleep", "300")

    assert job.returncode == 124
    assert report()["reason"] == "hang"
    assert report()["ranks"][0]["signal"] == "SIGTERM"
    problem = "it is not Python, or does not handle SIGUSR2, and py-spy is not installed"
    assert f"no Python stack of the rank that stopped first: {problem}" in job.stderr


def test_a_rank_that_polls_hangs_when_no_line_matches() -> None:
    program = "echo step 3; while :; do :; done"

    job = run("--hang-timeout", "1", "--progress", r"step \d+", "--no-python", "sh", "-c", program)

    assert job.returncode == 124, job.stderr
    assert ": running; no line that matches --progress for 1." in job.stderr
    assert "    its last line: step 3\n" in job.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--progress", "x"), "--progress says what counts for --hang-timeout, which is missing"),
        (
            ("--hang-timeout", "9", "--progress", "("),
            '--progress "(" is not a regular expression: missing ),',
        ),
        (("--hang-timeout", "9", "--progress", ""), '--progress "" matches every line'),
        (("--faulthandler", "--no-faulthandler"), "--faulthandler and --no-faulthandler exclude each other"),
    ],
)
def test_wrong_use_is_one_sentence(options: tuple[str, ...], words: str) -> None:
    job = run(*options, "--no-python", "true")

    assert job.returncode == 2
    assert words in job.stderr
    assert "Traceback" not in job.stderr


def test_the_user_s_own_sitecustomize_and_path_are_used(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('my sitecustomize')\n")
    (tmp_path / "show.py").write_text("import sitecustomize, sys; print(sitecustomize.__file__, sys.path)\n")

    job = run("--faulthandler", "--env", f"PYTHONPATH={tmp_path}/own", "show.py")

    said, shown = job.stdout.splitlines()
    assert said == "my sitecustomize"
    assert shown.startswith(f"{tmp_path}/own/sitecustomize.py ")
    assert "rank_site" not in shown


def test_a_python_without_a_sitecustomize_starts(tmp_path: Path) -> None:
    (tmp_path / "show.py").write_text("import sys; print('rank_site' in str(sys.path))\n")
    job = run("--faulthandler", "--env", "PYTHONPATH=", "show.py")
    assert (job.returncode, job.stdout) == (0, "False\n")


PY_SPY = {
    "dumps": (
        "sleep 1; echo Process 1: python; echo; echo 'Thread 0x7F12 (idle):'; echo '    recv (a.py:3)'\n",
        "",
    ),
    "is denied": (
        "echo 'Error: Permission Denied: Try running again'\nexit 1\n",
        "py-spy may not look at it: ptrace is denied here (Error: Permission Denied: Try running again)",
    ),
    "fails": (
        "echo 'Error: Failed to find python version'\nexit 1\n",
        "py-spy: Error: Failed to find python",
    ),
}


@pytest.mark.parametrize("case", PY_SPY)
def test_py_spy_is_used_where_it_is_installed(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, problem = PY_SPY[case]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "py-spy").write_text(f"#!/bin/sh\n{script}")
    (tmp_path / "bin" / "py-spy").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")

    job = run("--hang-timeout", "1", "--no-python", "sleep", "300")

    assert job.returncode == 124
    said = f"no Python stack of the rank that stopped first: {problem}"
    assert (said in job.stderr) == bool(problem)
    assert ("    recv (a.py:3)\n" in Path("log/latest/rank_0.log").read_text()) == (not problem)
    (rank,) = report()["hung"]
    assert rank["stack"] == ([] if problem else ["Thread (idle):", "    recv (a.py:3)"])
    assert (rank["idle"] > 1.5) == (not problem)


def test_the_option_sets_nothing_unless_it_is_used() -> None:
    plan = ("--dry-run=json", "--no-python", "true")
    plain, used = run(*plan), run("--faulthandler", *plan)
    assert "rank_site" not in plain.stdout
    assert "rank_site" in run("--hang-timeout", "9", *plan).stdout
    assert "rank_site" not in run("--hang-timeout", "9", "--no-faulthandler", *plan).stdout
    assert "PYTHONFAULTHANDLER" not in plain.stdout
    assert "rank_site" in used.stdout


def test_a_job_that_hangs_is_started_again() -> None:
    job = launch("read", options=("--max-restarts", "1"))

    assert job.returncode == 0, job.stderr
    assert [one["reason"] for one in report()["attempts"]] == ["hang", "ended"]
    assert "rank 1 stopped first" in job.stderr
    assert "done" in Path("log/latest/rank_1.restart_1.log").read_text()


def test_a_job_that_hangs_is_listed_as_hung() -> None:
    launch("read")

    jobs = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "jobs"], capture_output=True, text=True, check=True
    )

    assert "  hung  " in jobs.stdout


@pytest.mark.mpi
@every_mpirun
def test_ranks_that_mpirun_has_started_are_watched_as_well(mpirun: Mpirun) -> None:
    job = launch("loop", "--beats", options=("--cpu", "--faulthandler", *mpirun.for_launch))

    assert job.returncode == 124, job.stderr
    first = [one for one in report()["hung"] if one["is_first"]]
    assert [(one["rank"], one["doing"]) for one in first] == [(1, "computing, without a heartbeat")]
    assert first[0]["stack"][0].endswith(" in endless_loop")


def test_explain_names_the_rank_that_stopped_first() -> None:
    job = launch("read")

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "explain"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Rank 1 (device 1 of localhost): the job was ended because it hung")
    # The report of launch has said it.
    assert "rank 1 stopped first" in job.stderr
    assert "explain:" not in job.stderr


def test_without_the_option_no_rank_has_a_heartbeat_file(jobs: Jobs) -> None:
    plan = [sys.executable, "-m", "hccl_tools", "launch", "--no-table", "--start", "table", "-n", "2"]

    def shown(*options: str) -> str:
        command = [*plan, *options, "--dry-run=json", "--no-python", "true"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "HEARTBEAT" not in shown()
    assert "/heartbeat_1" in shown("--hang-timeout", "60")


@pytest.fixture
def typed() -> Iterator[list[Typed]]:
    jobs: list[Typed] = []
    yield jobs
    for job in jobs:
        job.kill()


STOPS = "[ $RANK = 1 ] && kill -STOP $$; echo waits; exec sleep 300"


def test_the_host_of_the_stopped_rank_ends_the_job_on_all_hosts(typed: list[Typed]) -> None:
    job = Typed(STOPS, "--hang-timeout", "2")
    typed.append(job)
    job.start(0)
    job.start(1)

    assert job.end() == [124, 124]
    for host in (0, 1):
        found = published.read("report", Path(f"log{host}/latest/report.json"))
        assert found["reason"] == "hang"
        assert [one["rank"] for one in found["hung"] if one["is_first"]] == [1]
        assert "rank 1 stopped first" in job.said[host]


def _hung(rank: int, doing: str, *stack: str) -> HungRank:
    return HungRank(
        rank, f"rank {rank}", "a", 7, True, 5.0, None, doing, f"rank_{rank}.log", stack=list(stack)
    )


def test_the_rank_that_does_not_wait_on_a_socket_is_first() -> None:
    waits = "sleeping in recvfrom() on a socket"
    job = [_hung(0, waits, "a"), _hung(1, "sleeping in clock_nanosleep()", "b"), _hung(2, waits, "c")]

    found = odd_ones_first(job)

    assert [one.rank for one in found if one.is_first] == [1]
    assert hung_headline(found) == "rank 1 stopped first: sleeping in clock_nanosleep()"
    assert "  ranks 0, 2: sleeping in recvfrom() on a socket" in hang_lines(found)
    computing = [one._replace(doing="sleeping in futex()") for one in job]
    assert odd_ones_first(computing) == computing


def test_ranks_with_one_stack_are_described_once() -> None:
    stack = '  File "train.py", line 20 in all_reduce'
    shown = hang_lines([_hung(rank, "running", stack if rank else "  other") for rank in range(16)])

    assert shown[0].startswith("  rank 0 stopped at the same time (host a, pid 7): running")
    assert any(line.startswith("  ranks 1-15 stopped at the same time: running") for line in shown)
    assert shown.count(f"    | {stack}") == 1
    assert len(shown) == 6
