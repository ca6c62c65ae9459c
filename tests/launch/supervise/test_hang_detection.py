"""When a job counts as hanging, and how often it may start again: on a clock that the test moves."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.model.outcome import Outcome, RankEnd
from hccl_tools.launch.model.plan import RankProcess
from hccl_tools.launch.model.request import Watch
from hccl_tools.launch.supervise.hangs import HangWatch
from hccl_tools.launch.supervise.options import Supervision
from hccl_tools.launch.supervise.supervisor import Restarts
from hccl_tools.processes import procfs
from hccl_tools.processes.procfs import CLOCK_TICKS, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Nothing has these process ids.
PIDS = (1 << 30, (1 << 30) + 1)
LIMIT = 80.0
#: What ``hccl-tools stacks`` lets a rank write.
DUMP = """\
Thread 0x00007f3b6c7f8640 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  ...

Current thread 0x00007f3b70a2b740 (most recent call first):
  File "train.py", line 3 in <module>
"""


class Job:
    """Two ranks as the launcher sees them; ``watch`` is asked in its own interval."""

    def __init__(
        self, folder: Path, report_quiet: Callable[[float], None] | None = None, **watch: float | str
    ) -> None:
        self.folder, self.now = folder, 1000.0
        self.cpu = dict.fromkeys(PIDS, 0)
        self.said, self.ended = list[str](), list[str]()
        self._due: tuple[float, Callable[[], None]] | None = None
        ends = [
            RankEnd(RankProcess(rank, "a", 0, rank, rank, {}, ("x",), "x.log"), str(self.log(rank)), pid=pid)
            for rank, pid in enumerate(PIDS)
        ]
        self.running = list(ends)
        attempt: Any = SimpleNamespace(
            state=SimpleNamespace(ends=ends, running=self.running, is_ending=False, longest_end=1.0),
            stacks={},
            keeper=SimpleNamespace(
                descendants=lambda: [Status(pid, 1, "S", cpu, 0) for pid, cpu in self.cpu.items()]
            ),
            call_later=self._call_later,
            say=self.said.append,
            end=lambda reason, _detail: self.ended.append(reason),
            on_ending=[],
            helpers=[],
            report_quiet=report_quiet,
        )
        options = Supervision(watch=Watch(**watch))  # type: ignore[arg-type]
        HangWatch(attempt, options, str(folder), clock=lambda: self.now)

    def log(self, rank: int) -> Path:
        return self.folder / f"rank_{rank}.log"

    def _call_later(self, _name: str, seconds: float, act: Callable[[], None]) -> None:
        self._due = (self.now + seconds, act)

    def run(self, seconds: float, work: Callable[[], object] = lambda: None) -> None:
        """Let time pass; the ranks work before each sample."""
        until = self.now + seconds
        while self._due is not None and self._due[0] <= until and not self.ended:
            (due, act), self._due = self._due, None
            self.now = max(self.now, due)
            work()
            act()
        self.now = until

    def compute(self) -> None:
        self.cpu[PIDS[0]] += 10 * CLOCK_TICKS

    def write(self) -> None:
        with self.log(0).open("a") as file:
            file.write("step\n")

    def dump_stack(self) -> None:
        with self.log(0).open("a") as file:
            file.write(DUMP)

    def beat(self) -> None:
        file = self.folder / "heartbeat_0"
        file.touch()
        os.utime(file, ns=(0, int(self.now * 1e9)))


@pytest.mark.parametrize("work", ["compute", "write", "beat"])
def test_a_job_in_which_one_rank_works_does_not_hang(tmp_path: Path, work: str) -> None:
    job = Job(tmp_path, hang_warn=LIMIT, hang_timeout=LIMIT)

    job.run(10 * LIMIT, getattr(job, work))

    assert job.ended == []
    # A job without output gets one line with the reason why it continues.
    assert ["does not count as hung" in line for line in job.said] == [True] * (work == "compute")


def test_a_job_in_which_nothing_happens_is_warned_of_once_and_again_after_work(tmp_path: Path) -> None:
    job = Job(tmp_path, hang_warn=LIMIT)

    job.run(0.8 * LIMIT)
    assert job.said == []
    job.run(10 * LIMIT)
    assert len(job.said) == 1
    assert job.said[0].startswith("no rank has written or computed anything for 1 min 20 s:\n")
    job.run(LIMIT / 2, job.write)
    job.run(10 * LIMIT)
    assert len(job.said) == 2
    assert job.ended == []


def test_a_job_does_not_hang_before_its_first_rank_runs(tmp_path: Path) -> None:
    job = Job(tmp_path, hang_timeout=LIMIT)
    ranks, job.running[:] = list(job.running), []

    job.run(3 * LIMIT)
    job.running[:] = ranks
    job.run(0.8 * LIMIT)
    assert job.ended == []
    job.run(LIMIT)
    assert job.ended == ["hang"]


def test_a_job_in_which_nothing_happens_is_ended_after_the_limit(tmp_path: Path) -> None:
    job = Job(tmp_path, hang_timeout=LIMIT)

    job.run(2 * LIMIT, job.write)
    job.run(0.8 * LIMIT)
    assert job.ended == []
    job.run(LIMIT)
    assert job.ended == ["hang"]


def test_a_rank_that_computes_but_sends_no_heartbeat_any_more_hangs(tmp_path: Path) -> None:
    job = Job(tmp_path, hang_timeout=LIMIT)

    job.run(2 * LIMIT, job.beat)
    job.run(0.8 * LIMIT, job.compute)
    assert job.ended == []
    job.run(LIMIT, job.compute)
    assert job.ended == ["hang"]


def test_a_heartbeat_of_an_earlier_start_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "heartbeat_0").touch()
    job = Job(tmp_path, hang_timeout=LIMIT)

    job.run(10 * LIMIT, job.compute)

    assert job.ended == []


@pytest.mark.parametrize("before", [0, 1 << 20], ids=["of a short log", "of a long log"])
def test_a_stack_dump_is_no_output_of_a_rank(tmp_path: Path, before: int) -> None:
    job = Job(tmp_path, hang_timeout=LIMIT)
    job.log(0).write_text("x" * before + "\n")
    job.run(2 * LIMIT, job.write)

    job.run(1.2 * LIMIT, job.dump_stack)

    assert job.ended == ["hang"]


def test_a_rank_that_only_reads_or_writes_files_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(tmp_path, hang_timeout=LIMIT)
    monkeypatch.setattr(procfs, "disk_bytes", lambda pid: int(job.now) if pid == PIDS[1] else 0)

    job.run(4 * LIMIT)

    assert job.ended == []


def test_with_a_pattern_only_lines_that_match_are_progress(tmp_path: Path) -> None:
    job = Job(tmp_path, hang_timeout=LIMIT, progress=r"^step( \d+)?$")
    job.run(2 * LIMIT, job.write)
    assert job.ended == []

    def poll() -> None:
        job.compute()
        with job.log(0).open("a") as file:
            file.write("still waiting\n")

    job.run(0.8 * LIMIT, poll)
    assert job.ended == []
    job.run(0.4 * LIMIT, poll)
    assert job.ended == ["hang"]


def test_a_line_that_is_written_in_two_parts_is_progress(tmp_path: Path) -> None:
    job = Job(tmp_path, hang_timeout=LIMIT, progress=r"^step \d+ of \d+$")
    parts = ["step 7 o", "f 9\n"]

    def write() -> None:
        with job.log(0).open("a") as file:
            file.write(parts[0])
        parts.reverse()

    job.run(4 * LIMIT, write)

    assert job.ended == []


def test_a_host_of_several_reports_that_its_ranks_are_quiet_and_that_they_go_on(tmp_path: Path) -> None:
    reported = list[float]()
    job = Job(tmp_path, reported.append, hang_timeout=LIMIT)

    job.run(LIMIT - 1)
    assert reported == []
    job.run(0.5 * LIMIT)
    assert min(reported) >= LIMIT
    job.run(0.3 * LIMIT, job.write)

    assert reported[-1] == 0.0
    assert reported.count(0.0) == 1
    assert job.ended == []


def test_the_time_in_which_the_launcher_was_stopped_does_not_count(tmp_path: Path) -> None:
    job = Job(tmp_path, hang_timeout=LIMIT)
    job.run(LIMIT / 2)

    job.now += 100 * LIMIT  # Ctrl-Z, and fg.
    job.run(0.3 * LIMIT)
    assert job.ended == []
    job.run(LIMIT)
    assert job.ended == ["hang"]


def test_restarts_of_more_than_an_hour_ago_do_not_count() -> None:
    clock = SimpleNamespace(now=0.0)
    restarts = Restarts(Watch(max_restarts=9, restarts_per_hour=2), clock=lambda: clock.now)
    for clock.now in (0.0, 1800.0):
        assert restarts.refusal() == ""
        restarts.count(Outcome("failed", [], 1.0))

    clock.now = 3599.0
    assert restarts.refusal() == "--max-restarts-per-hour 2: 2 in the last 59 min 59 s"
    clock.now = 3601.0
    assert restarts.refusal() == ""
