"""Measure when each rank has last done something: output, CPU time, reads and writes of files, a heartbeat.

With ``--progress`` only a line that matches counts, and a heartbeat: a rank that waits for its NPU, or for
another rank, may poll and use a whole core.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hccl_tools.processes import procfs, run_files
from hccl_tools.processes.stack_dump import without_dumps
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.processes.procfs import Status

#: A smaller part of one core counts as no CPU time: waiting threads use a little.
_IDLE = 0.01
#: Bytes that are read of what a log has grown by.
_MOST_READ = 1 << 20
_LONGEST_LINE = 1 << 12
#: A stack dump is smaller.
_LARGEST_DUMP = 1 << 18


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Activity:
    """What one rank has done so far; times are the clock's seconds of the samples.

    Attributes:
        active_at: When it last wrote, used the CPU or sent a heartbeat.
        beat_at: When it last sent a heartbeat, ``None`` before its first.
        beat: The time of the last heartbeat as its file has it, in ns; comparable within the job.
        computes: Whether it has used the CPU in the time of the last two samples. In one a rank that
            computes may get none from a loaded machine.
    """

    active_at: float
    cpu: int = 0
    cpu_before: int = 0
    written: int = 0
    beat: int = 0
    beat_at: float | None = None
    computes: bool = False


class ActivityMonitor:
    """Samples the ranks of this host; ``active_at`` is when any of them has last been active.

    ``written_at`` is when any of them has last written, or sent a heartbeat.
    """

    def __init__(
        self,
        ranks: Callable[[], Sequence[RankEnd]],
        processes: Callable[[], Sequence[Status]],
        run_dir: str,
        *,
        heartbeats_of: Iterable[int] = (),
        progress: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with no activity; the heartbeats of the ranks ``heartbeats_of`` are read.

        ``progress`` is a regular expression: only a line that it matches counts as activity of the job.
        """
        self._progress = None if progress is None else re.compile(progress)
        self._io = 0
        self._ranks, self._processes = ranks, processes
        self._folder = run_files.hold(run_dir)
        self._heartbeats = frozenset(heartbeats_of)
        self._total, self._clock = 0, clock
        self._sampled_at = self.active_at = self.written_at = clock()
        self._have_run = False
        self._by_rank: dict[int, Activity] = {}
        for rank in self._heartbeats:
            with suppress(OSError):  # The heartbeat of an earlier start of the job.
                self._folder.unlink(names.heartbeat(rank))

    @property
    def counts_lines(self) -> bool:
        """Whether only lines that match an expression count as activity of the job."""
        return self._progress is not None

    def activity(self, rank: int) -> Activity:
        """Return what a rank has done."""
        return self._by_rank[rank]

    def sample(self, interval: float) -> Sequence[RankEnd]:
        """Measure all ranks, ``interval`` seconds after the last sample, and return the running ones."""
        now, ranks = self._clock(), self._ranks()
        late = now - self._sampled_at - interval
        self._sampled_at = now
        if late > max(interval, 1.0):
            self._skip(late)  # The launcher itself was stopped (Ctrl-Z), and the ranks with it.
        least = _least_ticks(interval)
        processes = self._processes()
        total = sum(process.cpu for process in processes)
        has_computed = abs(total - self._total) > least
        self._total = total
        cpu = _cpu_by_process(processes, {end.pid for end in ranks})
        progressed = [self._measure(end, cpu.get(end.pid, 0), interval, now) for end in ranks]
        is_active = any(progressed)
        if is_active:
            self.written_at = now
        if self._progress is None and not is_active:
            is_active = has_computed or self._has_used_files(processes)
        self._have_run |= bool(ranks)
        if is_active or not self._have_run:  # Nothing hangs before the first rank runs.
            self.active_at = now
        return ranks

    def _has_used_files(self, processes: Sequence[Status]) -> bool:
        """Return whether the processes have read or written files since the last call."""
        before, self._io = self._io, sum(procfs.disk_bytes(process.pid) for process in processes)
        return self._io != before

    def _skip(self, seconds: float) -> None:
        self.active_at += seconds
        self.written_at += seconds
        for activity in self._by_rank.values():
            activity.active_at += seconds
            if activity.beat_at is not None:
                activity.beat_at += seconds

    def _measure(self, end: RankEnd, cpu: int, interval: float, now: float) -> bool:
        """Update the activity of a rank; return whether it has written (progressed) or sent a heartbeat."""
        rank, written = end.process.rank, _size(end.log)
        activity = self._by_rank.setdefault(rank, Activity(now))
        has_written = written != activity.written and self._is_own(end.log, activity.written, written)
        has_computed = abs(cpu - activity.cpu) > _least_ticks(interval)
        activity.computes = abs(cpu - activity.cpu_before) > _least_ticks(2 * interval)
        activity.cpu_before, activity.cpu, activity.written = activity.cpu, cpu, written
        has_beaten = rank in self._heartbeats and self._read_beat(rank, activity, now)
        if has_written or has_beaten or has_computed:
            activity.active_at = now
        return has_written or has_beaten

    def _is_own(self, log: str, before: int, after: int) -> bool:
        """Return whether what a log has grown by is output of the program, or with ``--progress`` matches."""
        if self._progress is None and not 0 < after - before <= _LARGEST_DUMP:
            return True
        lines = _lines_since(log, max(before if before <= after else 0, after - _MOST_READ))
        if self._progress is not None:
            return any(self._progress.search(line[:_LONGEST_LINE]) for line in lines)
        return any(without_dumps(lines))

    def _read_beat(self, rank: int, activity: Activity, now: float) -> bool:
        try:
            beat = self._folder.stat(names.heartbeat(rank)).st_mtime_ns
        except OSError:
            return False
        if beat == activity.beat:
            return False
        activity.beat, activity.beat_at = beat, now
        return True


def _lines_since(path: str, begin: int) -> list[str]:
    """Return the lines from a place in a log on; the first one whole if its beginning is before that."""
    already = min(begin, _LONGEST_LINE)
    try:
        with open(run_files.open_read(path), "rb") as file:
            file.seek(begin - already)
            data = file.read(already + _MOST_READ)
    except OSError:
        return []
    start = data.rfind(b"\n", 0, already) + 1
    return data[start:].decode(errors="replace").replace("\r", "\n").split("\n")


def _least_ticks(seconds: float) -> float:
    """Return the clock ticks up to which a process counts as idle for some seconds."""
    return max(_IDLE * seconds * procfs.CLOCK_TICKS, 1)


def _cpu_by_process(processes: Sequence[Status], roots: set[int]) -> dict[int, int]:
    """Return the clock ticks of each root with its descendants; ``processes`` has parents first."""
    owner: dict[int, int] = {}
    used: dict[int, int] = {}
    for process in processes:
        root = process.pid if process.pid in roots else owner.get(process.parent, 0)
        if root:
            owner[process.pid] = root
            used[root] = used.get(root, 0) + process.cpu
    return used


def _size(path: str) -> int:
    about = run_files.status(path)
    return about.st_size if about else 0
