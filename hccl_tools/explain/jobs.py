"""Which job an event belongs to: its processes, its period, its hosts; all else is only "also seen"."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.explain.events import clock, time_in
from hccl_tools.explain.identities import IDENTITY, OF_SLURM, OF_SYSTEM, Key, key
from hccl_tools.explain.reader import LogReader
from hccl_tools.notation.phrases import and_more
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.sources import Source

#: Seconds between two attempts of one job on the same devices; later processes belong to another job.
_RESTART = 600.0
#: The names that the kernel gives processes of jobs.
_OF_JOBS = re.compile(r"python|pt_|torch|msrun|mpi|ray|vllm|mindie|\w*worker|data_?loader|\d", re.IGNORECASE)
#: Bytes of a log in which its first time is looked for: libraries may write many warnings without one.
_HEADS = (4096, 1 << 18)
#: Seconds between the processes of different ranks of one job.
LONGEST_PAUSE = 43_200.0
#: A wait may take this many times the limit until its process writes about it.
_LIMITS = 1.5
#: Seconds before the first and after the last line of a job in which other logs are about it.
_BEFORE, _AFTER = 3600.0, 600.0
_MOST_NAMED = 4
#: An address of a host, which may have a name as well.
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%\w{1,32})?")
#: Jobs that run at the same time in the logs of a user.
_MOST_JOBS = 32
#: Lines of Slurm and of launchers about the end of a job, which they may write long after the last line of a
#: rank that has a message.
_ENDS = {*OF_SLURM, "HCM720", "HCM723", "HCM725", "HCM731", "HCM914", "HCM978"}
#: Lines of launchers with the id of a process that they started.
_NAME_PROCESSES = {"HCM721", "HCM722", "HCM724", "HCM329", "HCM330", "HCM331", "HCM332"}
#: Screens of which the begin is looked for, and seconds in which the processes of a job begin.
_MOST_SCREENS, _TOGETHER = 8, 300.0
#: Those about processes that failed or were ended.
_NAME_ENDED = {"HCM721", "HCM722", "HCM724"}
#: Failures before the ranks start: a job whose ranks write lines has none.
_LAUNCH_FAILED = {"HCM703", "HCM830"}
#: Ranks are missing: those of a host that was not reached have no log, and no line names that host.
_RANKS_MISSING = {"HCM660"}


class Job(NamedTuple):
    """A job as its processes show it.

    Attributes:
        begin: The earliest time of a process, None if no line has one.
        end: The time of its latest line.
        processes: The processes.
        pids: Their process ids.
        names: The names of their hosts.
        addresses: The addresses of their hosts.
        programs: Their programs.
        is_launched: Whether a rank has written a line.
        others: The processes of other jobs.
        other_pids: The ids that only these have.
    """

    begin: float | None
    end: float | None
    processes: frozenset[Key]
    pids: frozenset[str]
    names: frozenset[str]
    addresses: frozenset[str]
    programs: frozenset[str]
    is_launched: bool
    others: frozenset[Key] = frozenset()
    other_pids: frozenset[str] = frozenset()

    def beside(self, others: frozenset[Key]) -> Job:
        """Return the job beside these processes of other jobs."""
        return self._replace(others=others, other_pids=frozenset(pid for _, pid in others) - self.pids)


class _Process:
    """One process, or several that belong to one job."""

    def __init__(self, process: Key, begin: float, end: float, *, has_failed: bool) -> None:
        self.begin, self.end, self.has_failed = begin, end, has_failed
        self.keys = {process}
        #: Its communicators, and the run.
        self.marks: set[tuple[str, str]] = set()
        #: What only one process of a job can have -> its id.
        self.places: dict[str, str] = {}
        #: The ranks that the processes say they are -> their ids.
        self.ranks: dict[int, str] = {}

    def absorb(self, other: _Process) -> None:
        """Add the processes of the same job."""
        self.begin, self.end = min(self.begin, other.begin), max(self.end, other.end)
        self.has_failed = self.has_failed or other.has_failed
        self.keys |= other.keys
        self.marks |= other.marks
        for place, owner in other.places.items():
            self.places.setdefault(place, owner)
        for rank, owner in other.ranks.items():
            self.ranks.setdefault(rank, owner)


def choose(
    seen: Sequence[Seen],
    sources: Sequence[Source],
    ends: Mapping[int, float],
    ahead: Mapping[int, float],
    limit: float,
) -> tuple[Job, list[Seen], list[str]]:
    """Return the latest job that failed, the events of other jobs, and a sentence on these.

    Args:
        seen: All events.
        ends: The time of the last line of each source that has one.
        ahead: By how much the clock of the host of a source is ahead.
        limit: The longest time limit of a wait in seconds.
    """
    parts = _joined(list(_processes(seen, sources)), limit)
    failed = [part for part in parts if part.has_failed] or parts
    chosen = _launched(seen, sources, parts, failed[-1]) if failed else None
    last = _last_program(seen, sources, ends, ahead)
    if last is not None and chosen is not None and last.begin - chosen.end > LONGEST_PAUSE:
        # The log of a program has a later failure, which is that of a later job.
        chosen = next((part for part in reversed(parts) if part.end >= last.begin), last)
    others = {one for part in parts if part is not chosen for one in part.keys}
    earlier = _earlier_logs(seen, sources, ends, chosen.begin if chosen is not None else None)
    is_own = [key(one.event, sources) not in others and one.event.file not in earlier for one in seen]
    foreign = [one for one, own in zip(seen, is_own, strict=True) if not own]
    own = [one for one, own in zip(seen, is_own, strict=True) if own]
    job = _job(own, sources, chosen)
    if chosen is None and last is not None:
        # When the program wrote its last lines, most of which have no time, is not known.
        job = job._replace(begin=last.begin)
    job = job._replace(end=_end(job, sources, ends, others)).beside(frozenset(others))
    return job, foreign, _about(foreign)


def _launched(
    seen: Sequence[Seen], sources: Sequence[Source], parts: Sequence[_Process], failed: _Process
) -> _Process:
    """Return the processes of the job whose end the last lines of launchers and the scheduler tell.

    Processes that failed before are of an earlier job. Those that a launcher does not name are of another.

    Args:
        failed: The processes that failed last, which are of the job if no such line says otherwise.
    """
    named = {one.event.fields.get("pid", "") for one in seen if one.event.message.id in _NAME_ENDED} - {""}
    started = [part for part in parts if any(pid in named for _, pid in part.keys)]
    if started and failed not in started and started[-1].end >= failed.begin:
        return started[-1]
    shown = _shown(parts, sources) if not started else []
    if shown and failed not in shown and shown[-1].end >= failed.begin:
        return shown[-1]
    times = [one.time for one in seen if one.event.message.id in _ENDS and one.time is not None]
    last = max(times, default=None)
    later = [part for part in parts if last is not None and failed.end < part.begin <= last]
    return later[-1] if later and not started else failed


def _shown(parts: Sequence[_Process], sources: Sequence[Source]) -> list[_Process]:
    """Return the processes that began with the screens of ranks: CANN's logs may be of other jobs, too."""
    screens = [one for one in sources if one.rank is not None and one.is_program_log and not one.is_run]
    begins = [begin for one in screens[:_MOST_SCREENS] if (begin := begin_of(one)) is not None]
    return [part for part in parts if any(abs(part.begin - begin) <= _TOGETHER for begin in begins)]


def _last_program(
    seen: Sequence[Seen],
    sources: Sequence[Source],
    ends: Mapping[int, float],
    ahead: Mapping[int, float],
) -> _Process | None:
    """Return the period of the latest log of a program with a failure, which a job without process ids has.

    The logs of the kernel and of schedulers are about many jobs.
    """
    failed = {
        one.event.file
        for one in seen
        if one.event.message.kind not in {"fact", "end"} and one.event.message.id not in OF_SYSTEM
        if sources[one.event.file].is_program_log and not one.event.is_yearless
    }
    begins = {file: begin_of(sources[file]) for file in failed & ends.keys()}
    periods = [
        (begin - ahead.get(file, 0.0), ends[file]) for file, begin in begins.items() if begin is not None
    ]
    if not periods:
        return None
    end = max(end for _, end in periods)
    begin = min(begin for begin, its_end in periods if end - its_end <= LONGEST_PAUSE)
    return _Process(("", ""), begin, end, has_failed=True)


def _earlier_logs(
    seen: Sequence[Seen], sources: Sequence[Source], ends: Mapping[int, float], begin: float | None
) -> set[int]:
    """Return the logs of programs with failures that ended long before the job, or the last such log, began.

    Args:
        begin: The first time in the logs of the job's processes, if it has such logs.
    """
    failed = {
        one.event.file
        for one in seen
        if one.event.message.kind not in {"fact", "end"} and not _is_of_process(one, sources)
    }
    known = {file: ends[file] for file in failed if file in ends}
    last = max(known, key=known.__getitem__, default=None)
    if begin is None and last is not None and known[last] - min(known.values()) > LONGEST_PAUSE:
        begin = begin_of(sources[last])
    return {file for file, end in known.items() if begin is not None and begin - end > LONGEST_PAUSE}


def begin_of(source: Source) -> float | None:
    """Return the first time in the beginning of a log."""
    first = next(LogReader(source.path).blocks(), None)
    if first is None:
        return None
    for size in _HEADS:
        if (found := time_in(first.data[:size])) is not None:
            return found
    return None


def _end(
    job: Job, sources: Sequence[Source], ends: Mapping[int, float], others: Collection[Key]
) -> float | None:
    """Return the time of the last line of a job: its ranks may have gone on after their last message."""
    if job.end is None:
        return None
    last = [job.end]
    for file, end in ends.items():
        source = sources[file]
        process = (source.group or source.path, source.pid or source.path)
        if process in job.processes or (source.rank is not None and process not in others):
            last.append(end)
    return max(last)


def _is_of_process(one: Seen, sources: Sequence[Source]) -> bool:
    return sources[one.event.file].is_of_process or bool(one.event.pid)


def _processes(seen: Sequence[Seen], sources: Sequence[Source]) -> Iterable[_Process]:
    grouped: dict[Key, list[Seen]] = {}
    for one in seen:
        if one.time is not None and not one.event.is_yearless and _is_of_process(one, sources):
            grouped.setdefault(key(one.event, sources), []).append(one)
    for process, events in grouped.items():
        times = [one.time for one in events if one.time is not None]
        marks = {
            ("group", one.event.fields["identifier"]) for one in events if one.event.fields.get("identifier")
        }
        if any(sources[one.event.file].is_run for one in events):
            marks.add(("run", ""))
        failed = any(one.event.message.kind not in {"fact", "end"} for one in events)
        found = _Process(process, min(times), max(times), has_failed=failed)
        found.marks = marks
        has_pid = bool(sources[events[0].event.file].pid or events[0].event.pid)
        for one in events if has_pid else ():
            if one.place.rank is not None:
                found.places[f"rank {one.place.rank}"] = "/".join(process)
                found.ranks |= {one.place.rank: "/".join(process)} if one.event.message.id in IDENTITY else {}
            if one.place.host and one.place.device is not None:
                found.places[f"{one.place.host}/{one.place.device}"] = "/".join(process)
        yield found


def _joined(processes: Iterable[_Process], limit: float) -> list[_Process]:
    """Join the processes of each job, in the order of their ends.

    The log of a program names no process: it is of the job whose processes run at its time.
    """
    placed: list[_Process] = []
    others: list[_Process] = []
    for process in processes:
        (placed if process.places or process.marks else others).append(process)
    parts = _joined_in_time(placed, limit)
    recent, left = parts[-_MOST_JOBS:], []
    for process in others:
        near = [part for part in recent if _is_same_job(part, process, limit)]
        best = min(near, key=partial(_distance, process), default=None)
        if best is None:
            left.append(process)
        else:
            best.absorb(process)
    if left:
        parts = _joined_in_time([*parts, *left], limit)
    return sorted(parts, key=lambda one: one.end)


def _joined_in_time(processes: Iterable[_Process], limit: float) -> list[_Process]:
    """Join the processes that one job can have, by their times and communicators, in linear time."""
    parts: dict[int, _Process] = {}
    recent: dict[int, _Process] = {}  # The parts that may still be joined because of their time.
    of_mark: dict[tuple[str, str], _Process] = {}
    for process in sorted(processes, key=lambda one: one.begin):
        recent = {at: part for at, part in recent.items() if part.end + LONGEST_PAUSE >= process.begin}
        recent = dict(sorted(recent.items(), key=lambda item: item[1].end)[-_MOST_JOBS:])
        same = {id(part): part for mark in process.marks if (part := of_mark.get(mark)) is not None}
        sure = set(same)
        same |= {at: part for at, part in recent.items() if _is_same_job(part, process, limit)}
        job = process
        for at, part in same.items():
            # With its communicator, which comes first, it may be of another job than by itself.
            if at not in sure and (_run_beside_each_other(part, job) or not _is_same_job(part, job, limit)):
                continue
            parts.pop(at, None)
            recent.pop(at, None)
            job, other = (part, job) if len(part.keys) >= len(job.keys) else (job, part)
            job.absorb(other)
            of_mark |= dict.fromkeys(other.marks, job)
        of_mark |= dict.fromkeys(process.marks, job)
        parts[id(job)] = recent[id(job)] = job
    return sorted(parts.values(), key=lambda one: one.end)


def _run_beside_each_other(one: _Process, other: _Process) -> bool:
    """Whether two processes say at the same time that they are one rank: two jobs share hosts then."""
    if max(one.begin, other.begin) > min(one.end, other.end):
        return False
    return any(one.ranks[rank] != other.ranks[rank] for rank in one.ranks.keys() & other.ranks.keys())


def _distance(process: _Process, part: _Process) -> tuple[bool, float]:
    return _gap(part, process) > 0.0, abs(part.begin - process.begin)


def _gap(one: _Process, other: _Process) -> float:
    """Return the seconds between two processes, at most 0 if they run at the same time."""
    return max(one.begin, other.begin) - min(one.end, other.end)


def _is_same_job(one: _Process, other: _Process, limit: float) -> bool:
    gap = _gap(one, other)
    both = one.places.keys() & other.places.keys()
    if any(one.places[place] != other.places[place] for place in both):
        return gap <= _RESTART
    return gap <= (LONGEST_PAUSE if one.places and other.places else max(_LIMITS * limit, _RESTART))


def _job(own: Sequence[Seen], sources: Sequence[Source], chosen: _Process | None) -> Job:
    processes = frozenset(key(one.event, sources) for one in own if _is_of_process(one, sources))
    hosts = {one.place.host for one in own if one.place.host and _is_of_process(one, sources)}
    addresses = frozenset(filter(_ADDRESS.fullmatch, hosts))
    written = [one for one in own if one.event.program]
    return Job(
        chosen.begin if chosen is not None else None,
        chosen.end if chosen is not None else None,
        processes,
        frozenset(pid for _, pid in processes)
        | {one.event.fields["pid"] for one in own if one.event.message.id in _NAME_PROCESSES},
        frozenset(hosts - addresses),
        addresses,
        frozenset(one.event.program for one in written),
        bool(processes),
    )


def _about(foreign: Sequence[Seen]) -> list[str]:
    failed = [one for one in foreign if one.event.message.kind not in {"fact", "end"}]
    if not failed:
        return []
    times = [one.time for one in failed if one.time is not None]
    pids = list(dict.fromkeys(one.event.pid or one.actor for one in failed))
    when = f", at {clock(max(times))}" if times else ""
    return [f"messages of another job were left out: of process {and_more(pids, _MOST_NAMED)}{when}"]


def in_year(time: float, end: float | None) -> float:
    """Return a time without a year in the year in which it is next to the end of the job."""
    if end is None:
        return time
    moment = datetime.fromtimestamp(time, tz=timezone.utc)
    year = datetime.fromtimestamp(end, tz=timezone.utc).year
    moved = [found.timestamp() for step in (-1, 0, 1) if (found := _moved(moment, year + step)) is not None]
    return min(moved, key=lambda one: abs(one - end), default=time)


def _moved(moment: datetime, year: int) -> datetime | None:
    try:
        return moment.replace(year=year)
    except ValueError:  # the 29th of February
        return None


def objection(one: Seen, job: Job, sources: Sequence[Source], failed: Iterable[str]) -> str:
    """Return why an event is not about this job, "" if nothing says so.

    Args:
        failed: The ids of all messages.
    """
    fields, message = one.event.fields, one.event.message
    if sources[one.event.file].is_run:
        return ""
    killed = fields.get("pid", "") if message.kind == "cause" else ""
    program = fields.get("program", "")
    if killed and program and not job.programs and not _OF_JOBS.match(program) and {*failed} - {message.id}:
        return f"process {killed} ({program}) is not a process of the job"
    if message.id in OF_SYSTEM and (foreign := fields.get("pid", "")) in job.other_pids:
        return f"process {foreign} is of another job"
    if killed and job.pids and one.place.rank is None and killed not in job.pids:
        if program and job.programs and program not in job.programs and not _OF_JOBS.match(program):
            return f"process {killed} ({program}) is not a process of the job"
        if one.time is None:
            return f"process {killed} is in no log of the job, and the line has no date"
    if _is_of_process(one, sources) or job.begin is None:
        return _launch(one, job, failed)
    if one.time is not None and not _is_in_period(one, job):
        return f"it is from {clock(one.time)[:16]}, the job from {clock(job.begin)[:16]}"
    if _LAUNCH_FAILED & set(message.explains) and _RANKS_MISSING & set(failed):
        return ""
    named = fields.get("server", "")
    if message.kind == "cause" and one.place.rank is None and _is_strange(named, job):
        return f"the job has no host {named}"
    return _launch(one, job, failed)


def _is_in_period(one: Seen, job: Job) -> bool:
    """Whether an event is at the time of the job, which began at a known time."""
    if one.time is None or job.begin is None:
        return True
    message, pid = one.event.message, one.event.fields.get("pid", "")
    is_end = message.id in _ENDS or (message.kind != "cause" and pid in job.pids)
    after = LONGEST_PAUSE if is_end else _AFTER
    is_late = job.end is not None and one.time > job.end + after
    return one.time >= job.begin - _BEFORE and not is_late


def _is_strange(host: str, job: Job) -> bool:
    """Whether a host is none of a job's: the name of a host is not compared with addresses."""
    alike = job.addresses if _ADDRESS.fullmatch(host) else job.names
    return bool(host and alike) and host not in alike


def _launch(one: Seen, job: Job, failed: Iterable[str]) -> str:
    """Return whether a failure to start ranks is none, as the ranks have started."""
    if (
        _LAUNCH_FAILED & set(one.event.message.explains)
        and job.is_launched
        and not _LAUNCH_FAILED & set(failed)
    ):
        return "the ranks of the job have started"
    return ""
