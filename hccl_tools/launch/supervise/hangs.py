"""Detect a job that hangs, tell which ranks stopped first and what each waits for, and end the job.

A job hangs if no rank of any host has written output, used the CPU, read or written files or sent a
heartbeat for a time; with ``--progress``, if no line of output has matched. If the job has other hosts, this
host reports that its ranks are quiet, and another place decides. A rank that sends heartbeats hangs if it has
sent none for that time: it may compute in an endless loop.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.launch.logs import excerpt
from hccl_tools.launch.model.outcome import hung_headline, odd_ones_first
from hccl_tools.launch.supervise.rank_activity import ActivityMonitor
from hccl_tools.notation.phrases import time_span
from hccl_tools.processes import run_files, wait_state
from hccl_tools.processes.signals import spawn
from hccl_tools.processes.stack_dump import StackDump, Target, writes_stacks
from hccl_tools.programs.lookup import find_program
from hccl_tools.records import NamedTuple
from hccl_tools.runs.job_report import HungRank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.launch.supervise.options import Supervision
    from hccl_tools.processes.signals import Helper
    from hccl_tools.processes.stack_dump import Stack
    from hccl_tools.processes.wait_state import WaitState

#: The minimum number of samples before a job counts as hanging.
_MIN_SAMPLES = 8
#: The maximum number of seconds between two samples.
_MAX_INTERVAL = 30.0
#: The maximum number of ranks listed in a warning.
_MAX_SHOWN = 16
#: Timeout of py-spy in seconds.
_STACKS_TIMEOUT = 10.0
#: Seconds, at most, for which a host whose ranks only wait leaves it to the other hosts to end the job: the
#: rank for which they wait may be there.
_OTHER_HOSTS_FIRST = 5.0

#: Heartbeats that differ by less, in ns, are of the same step.
_SAME_STEP = 100_000_000

#: Seconds between two checks whether the stacks have been written.
_INTERVAL = 0.01
#: The maximum number of ranks for which py-spy runs.
_MOST_SPIES = 4


class HangWatch:
    """Warns about a job that hangs (``--hang-warn``), and ends it (``--hang-timeout``)."""

    def __init__(
        self,
        attempt: Attempt,
        options: Supervision,
        run_dir: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._attempt, self._run_dir, self._clock = attempt, run_dir, clock
        self._warn_after, self._end_after = options.watch.hang_warn, options.watch.hang_timeout
        self._engine_ranks = options.engine_ranks
        limits = [limit for limit in (self._warn_after, self._end_after) if limit is not None]
        self._interval = min(min(limits) / _MIN_SAMPLES, _MAX_INTERVAL)
        has_other_hosts = options.join_peers is not None or not options.reports
        self._patience = min(_OTHER_HOSTS_FIRST, limits[-1]) if has_other_hosts else 0.0
        ranks: Iterable[int] = ()
        if self._end_after is not None:  # Only then do the ranks have a heartbeat file.
            own = options.engine_ranks
            ranks = range(own.number) if own else [end.process.rank for end in attempt.state.ends]
        self._monitor = ActivityMonitor(
            self._running,
            attempt.keeper.descendants,
            run_dir,
            heartbeats_of=ranks,
            progress=options.watch.progress if self._end_after is not None else None,
            clock=clock,
        )
        self._by_progress = self._monitor.counts_lines
        self._is_quiet = self._has_described = False
        self._warnings = 0
        self._warned = self._told_of_activity = False
        attempt.call_later("hang", self._interval, self._check)
        if self._end_after is not None:
            attempt.on_ending.append(self._describe_for_others)
            attempt.describe_ranks = self._describe_ranks

    def _running(self) -> list[RankEnd]:
        own = self._engine_ranks
        return own.running(self._attempt) if own else self._attempt.state.running

    def _check(self) -> None:
        running = self._monitor.sample(self._interval)
        idle = self._clock() - self._monitor.active_at
        if self._warn_after is not None:
            if idle < self._warn_after:
                self._warned = False
            elif not self._warned:
                self._warned = True
                self._warn(running)
        if self._end_after is not None:
            if self._hangs(running, idle, self._end_after):
                return
            self._tell_of_activity(idle, self._end_after)
        self._attempt.call_later("hang", self._interval, self._check)

    def _hangs(self, running: Sequence[RankEnd], idle: float, limit: float) -> bool:
        """End the job if it hangs; return whether it does."""
        if self._attempt.state.is_ending:
            return False
        is_alone = self._attempt.report_quiet is None
        if not is_alone:
            self._report_quiet(idle, limit)
        suspects = self._suspects(running)
        longest = max((one.since_beat or 0.0 for one in suspects), default=0.0)
        if longest < limit and not (is_alone and idle >= limit):
            return False
        first = first_to_hang(suspects, 2 * self._interval)
        is_own = any(one.is_culprit for one in first)
        if not is_alone and longest < limit + self._patience and not is_own:
            return False
        self._end(self._described(suspects, first))
        return True

    def _tell_of_activity(self, idle: float, limit: float) -> None:
        """Tell once why a job without output for ``--hang-timeout`` goes on.

        Its processes have been active lately: a job that hangs was active a moment after its last line, too.
        """
        silent = self._clock() - self._monitor.written_at
        if silent < limit:
            self._told_of_activity = False
        elif idle < limit / 2 and not (
            self._told_of_activity or self._by_progress or self._attempt.report_quiet
        ):
            self._told_of_activity = True
            self._attempt.say(
                f"no output for {time_span(silent)}, but the job does not count as hung, because its"
                " processes use CPU time or files; with `--progress REGEX` only matching lines count"
            )

    def _report_quiet(self, idle: float, limit: float) -> None:
        was_quiet, self._is_quiet = self._is_quiet, idle >= limit
        self._has_described &= self._is_quiet
        if self._attempt.report_quiet is not None and (was_quiet or self._is_quiet):
            self._attempt.report_quiet(idle if self._is_quiet else 0.0)

    def _suspects(self, running: Iterable[RankEnd]) -> list[Suspect]:
        found = [self._suspect(end) for end in running if end.process.rank >= 0]
        # If all use their CPUs, as ranks that poll do, that does not point to one of them.
        all_compute = len(found) > 1 and all(one.computes for one in found)
        return [one._replace(computes=False) for one in found] if all_compute else found

    def _suspect(self, end: RankEnd) -> Suspect:
        now, activity = self._clock(), self._monitor.activity(end.process.rank)
        since_beat = None if activity.beat_at is None else now - activity.beat_at
        return Suspect(
            end,
            wait_state.of(end.pid),
            now - (self._monitor.active_at if self._by_progress else activity.active_at),
            since_beat,
            activity.beat,
            activity.computes,
        )

    def _describe_for_others(self) -> None:
        """Record what the ranks of this host do, if another host ends the job because it hangs."""
        state = self._attempt.state
        if state.reason == "hang" and state.remote_cause is not None and not self._has_described:
            suspects = self._suspects(self._running())
            state.hung = self._described(suspects, first_to_hang(suspects, 2 * self._interval))

    def _described(self, suspects: Sequence[Suspect], first: Sequence[Suspect]) -> list[HungRank]:
        hung = [_describe(one, is_first=one in first, by_progress=self._by_progress) for one in suspects]
        return sorted(hung, key=lambda one: not one.is_first)

    def _describe_ranks(self, answer: Callable[[list[HungRank]], None]) -> None:
        """Describe the ranks of this host for the place that decides whether the job hangs."""
        self._has_described = True
        suspects = self._suspects(self._running())
        self._with_stacks(self._described(suspects, first_to_hang(suspects, 2 * self._interval)), answer)

    def _end(self, hung: list[HungRank]) -> None:
        attempt = self._attempt
        attempt.say(
            f"the job hangs (--hang-timeout {self._end_after:g} s): its ranks write their"
            f" Python stacks to their logs, then are ended (at most {attempt.state.longest_end:g} s)"
        )
        self._with_stacks(hung, self._finish)

    def _with_stacks(self, hung: list[HungRank], then: Callable[[list[HungRank]], None]) -> None:

        noticed_at = self._clock()

        def finish(found: list[HungRank]) -> None:
            # Other hosts describe their ranks later, so that the time for the stacks counts too.
            seconds = self._clock() - noticed_at
            then([one.after(seconds) for one in found])

        HungStacks(self._attempt, hung, finish)

    def _finish(self, hung: list[HungRank]) -> None:
        if not self._attempt.state.is_ending:
            self._attempt.state.hung = hung
            self._attempt.end("hang", hung_headline(hung))

    def _warn(self, running: Sequence[RankEnd]) -> None:
        lines = [_line(end) for end in running]
        self._warnings += 1
        path = f"{self._run_dir}/hang_{self._warnings}.txt"
        try:
            run_files.write(self._run_dir, os.path.basename(path), ("\n".join(lines) + "\n").encode())
        except OSError:
            path = ""
        shown = [f"  {line}" for line in lines[:_MAX_SHOWN]]
        if len(lines) > len(shown):
            shown.append(f"  ... and {len(lines) - len(shown)} more in {path}")
        pids = [end.pid for end in running if end.process.rank >= 0]
        shown.append(self._stacks(pids, path))
        self._attempt.say(
            f"no rank has written or computed anything for {time_span(self._warn_after or 0, 2)}:\n"
            + "\n".join(shown)
        )

    def _stacks(self, pids: list[int], path: str) -> str:
        program = find_program("py-spy", os.environ.get("PATH", os.defpath))
        if not program or not path:
            return "  (with py-spy on the PATH the Python stacks would be shown, too)"
        output = run_files.open_append(path, create=False)
        spies = [
            spawn([program, "dump", "--nonblocking", "--pid", str(pid)], stdout=output, stderr=output)
            for pid in pids[:_MAX_SHOWN]
        ]
        os.close(output)
        self._attempt.helpers += spies
        self._attempt.call_later("stacks", _STACKS_TIMEOUT, lambda: _end_all(spies))
        return f"  Python stacks: {path}"


def _end_all(helpers: list[Helper]) -> None:
    for helper in helpers:
        helper.end()


def _line(end: RankEnd) -> str:
    found = wait_state.of(end.pid)
    return f"{end.process.name} (pid {end.pid}): {'ended' if found is None else found.description}"


def _doing(one: Suspect) -> str:
    if one.waits is None:
        return "ended"
    if one.computes and one.since_beat is not None:
        return "computing, without a heartbeat"
    return one.waits.description


def _describe(one: Suspect, *, is_first: bool, by_progress: bool) -> HungRank:
    end = one.end
    lines = excerpt.last_lines(excerpt.log_end(end.log), 1)
    return HungRank(
        rank=end.process.rank,
        name=end.process.name,
        host=end.process.host,
        pid=one.waits.pid if one.waits else end.pid,
        is_first=is_first,
        is_culprit=one.is_culprit,
        by_progress=by_progress,
        idle=round(one.idle, 3),
        idle_heartbeat=None if one.since_beat is None else round(one.since_beat, 3),
        doing=_doing(one),
        log=end.log,
        last_line=lines[0] if lines else "",
    )


class Suspect(NamedTuple):
    """A running rank of a job that hangs.

    Attributes:
        waits: What it does, ``None`` if it has just ended.
        idle: Seconds since its last output, CPU time or heartbeat.
        since_beat: Seconds since its last heartbeat, ``None`` if it has none.
        beat: The time of its last heartbeat in ns, comparable within the job.
        computes: Whether it uses the CPU.
    """

    end: RankEnd
    waits: WaitState | None
    idle: float
    since_beat: float | None = None
    beat: int = 0
    computes: bool = False

    @property
    def is_culprit(self) -> bool:
        """Whether the rank itself shows that it does not wait for another rank."""
        if self.waits is None:
            return False
        return self.waits.is_stopped or self.waits.waits_outside or self.computes


def first_to_hang(suspects: Sequence[Suspect], tolerance: float) -> list[Suspect]:
    """Return the ranks that stopped first; ``tolerance`` is the precision of ``idle`` in seconds."""
    for is_cause in (_is_stopped, _waits_outside):
        if found := [one for one in suspects if is_cause(one)]:
            return found
    found = list(suspects)
    if all(one.since_beat is not None for one in suspects):
        oldest = min((one.beat for one in suspects), default=0)
        found = [one for one in suspects if one.beat < oldest + _SAME_STEP]
    elif not any(one.since_beat is not None for one in suspects):
        longest = max((one.idle for one in suspects), default=0.0)
        found = [one for one in suspects if one.idle >= longest - tolerance]
    looping = [one for one in found if one.computes]
    return looping or found


def _is_stopped(one: Suspect) -> bool:
    return one.waits is not None and one.waits.is_stopped


def _waits_outside(one: Suspect) -> bool:
    return one.waits is not None and one.waits.waits_outside


class HungStacks:
    """Waits for the stacks of the ranks, then calls ``finish`` with the ranks and their stacks.

    The ranks that stopped first are asked in any case, the others if they write their stacks themselves.
    """

    def __init__(
        self, attempt: Attempt, hung: Sequence[HungRank], finish: Callable[[list[HungRank]], None]
    ) -> None:
        self._attempt, self._hung, self._finish = attempt, hung, finish
        first = [one for one in hung if one.is_first][:_MOST_SPIES]
        asked = [one for one in hung if one in first or writes_stacks(one.pid)]
        self._dump = StackDump([_target(one) for one in asked], wake=True)
        attempt.helpers += self._dump.helpers
        self._deadline = time.monotonic() + self._dump.seconds
        self._check()

    def _check(self) -> None:
        if not self._dump.is_complete and time.monotonic() < self._deadline:
            self._attempt.call_later("stacks of a hang", _INTERVAL, self._check)
            return
        found = self._dump.finish()
        for target, stack in found.items():
            if stack.source == "py-spy":
                _append(target.log, stack)
        first = {_target(one) for one in self._hung if one.is_first}
        for problem in sorted({stack.problem for target, stack in found.items() if target in first} - {""}):
            self._attempt.say(f"no Python stack of the rank that stopped first: {problem}")
        ranks = {_target(one): one.rank for one in self._hung}
        self._attempt.stacks |= {ranks[target]: stack for target, stack in found.items()}
        stacks = {target: list(stack.lines) for target, stack in found.items()}
        self._finish(odd_ones_first([one._replace(stack=stacks.get(_target(one), [])) for one in self._hung]))


def _target(one: HungRank) -> Target:
    return Target(one.pid, one.log)


def _append(log: str, stack: Stack) -> None:
    """Add the stack of py-spy to the log of its rank."""
    text = "\n".join(("hccl-tools: the Python stack when the job was ended (py-spy):", *stack.lines, ""))
    with suppress(OSError):
        descriptor = run_files.open_append(log, create=False)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
