"""Whether a job has not failed: its launchers ended with exit code 0, or the end of its log says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain import screens, slurm_rows
from hccl_tools.explain.answer import COMPLETED
from hccl_tools.explain.candidates import is_attempt
from hccl_tools.explain.events import Event, Seen, clock, time_in
from hccl_tools.explain.jobs import LONGEST_PAUSE, begin_of
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.reader import LogReader, from_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.sources import Source

_EXIT_CODES = {"HCM732", "HCM733"}
#: What a launcher reports of a rank that failed, and what ranks report that wait for one.
_FAILURES = {
    *(
        "HCM701",
        "HCM702",
        "HCM703",
        "HCM706",
        "HCM707",
        "HCM710",
        "HCM711",
        "HCM712",
        "HCM991",
        "HCM713",
        "HCM714",
        "HCM715",
        "HCM716",
    ),
    *("HCM720", "HCM721", "HCM722", "HCM723", "HCM725", "HCM726", "HCM731", "HCM790", "HCM791"),
}
#: A program that starts a job, in the first lines of a screen.
_LAUNCHER = re.compile(
    rb"\b(?:torchrun|msrun|mpirun|mpiexec|srun|sbatch|deepspeed|accelerate|paddle|python3?|bash|torch\.distributed)\b"
)
#: A job that has done all of its steps, or says that it has ended.
_COMPLETE = re.compile(
    rb"\b(\d{2,9})/\1\b|\b[Tt]rain(?:ing)?\w{0,8} (?:is |has )?(?:complete|finish|done|end)\w{0,3}\b"
    rb"|\b(?:[Aa]ll|[Jj]ob) (?:done|finished|completed)\b"
    rb"|'?train_runtime'?:|\b(?:successfully|final) (?:saved|model|checkpoint)\b"
    rb"|\bmodel saved\b|\b[Ff]inished training\b"
)
#: A line with which a program ends that has done all of its work, and not only a part of it.
_SAYS_COMPLETE = re.compile(
    rb"(?i:\btraining (?:is |has |was )?(?:done|over|(?:successfully )?(?:completed?|finished))\b)"
    rb"(?! (?:step|epoch|iter|phase|\d))|\b[Ff]inished training\b"
    rb"|\b(?i:training|job|run) completed successfully\b|\b[Aa]fter training is done\b"
)
#: What takes back such a line: words of a failure, or of what did not come to its end.
_NOT_COMPLETE = re.compile(
    rb"\b(?:not|before|until|when|if|fail\w{0,3}|error|abort\w{0,3}|with errors?)\b", re.IGNORECASE
)
#: Seconds for which a log goes on after an error that has not ended its job.
_GOES_ON = 30.0
#: Seconds before the begin of a log, before which a failure is of an earlier job.
_EARLIER = 3600.0
_HEAD = 4096
_SHOWN = 300
#: Lines that may follow the exit code, and lines in which the launcher is named.
_LAST_LINES, _FIRST_LINES = 10, 40
#: Logs whose ends are read.
_MOST_LOGS = 256
#: Bytes at the end of a screen in which a job says that it is complete.
_MOST_BYTES = 1 << 20


def lines(cluster: Cluster) -> list[Seen]:
    """Return the lines with the exit code 0 of every launcher; [] if one failed or the logs do not say it."""
    last: dict[int, Seen] = {}
    for one in cluster.seen:
        if one.event.message.id in _EXIT_CODES:
            last[one.event.file] = max(last.get(one.event.file, one), one, key=lambda seen: seen.event.line)
    if any(int(one.event.fields["status"]) for one in last.values()):
        return []
    if row := _completed_by_slurm(cluster):
        return row
    if not last:
        return []
    end = max((cluster.ends.get(file, 0.0) for file in last), default=0.0)
    if any(_shows_a_failure(one, last, end) for one in cluster.seen):
        return []
    found = [_end_of_job(cluster.sources[file], one.event.line) for file, one in last.items()]
    is_all = all(is_end for is_end, _ in found) and any(is_complete for _, is_complete in found)
    return [one for _, one in sorted(last.items())] if is_all else []


def _completed_by_slurm(cluster: Cluster) -> list[Seen]:
    """Return the row of sacct that says that the job is complete, if a rank says it too, and none failed."""
    rows = [one for one in cluster.seen if one.event.message.id == slurm_rows.COMPLETED]
    if not rows or any(_shows_a_failure(one, {}, rows[0].time or 0.0) for one in cluster.seen):
        return []
    programs = [source for source in cluster.sources if source.is_program_log][:_MOST_LOGS]
    is_complete = any(
        _COMPLETE.search(text)
        for source in programs
        for _, text in from_end(source.path, source.extent, _MOST_BYTES >> 4)
    )
    return rows[:1] if is_complete else []


def _shows_a_failure(one: Seen, last: dict[int, Seen], end: float) -> bool:
    """Whether an event says that a rank failed or gave up waiting, or is later than the launchers."""
    message = one.event.message
    if message.id in _FAILURES:
        return one.event.file not in last or one.event.line < last[one.event.file].event.line
    if message.kind in {"verdict", "timeout"}:
        return not is_attempt(one)  # A later one was successful, as the job went on.
    is_later = one.since is not None and bool(end) and one.since > end + 60.0
    return message.kind in {"cause", "error"} and is_later


def _end_of_job(source: Source, number: int) -> tuple[bool, bool]:
    """Return whether a line ends the screen of a launcher, and whether its job says it is complete."""
    if not source.is_file:
        return False, False
    first = next(LogReader(source.path).blocks(), None)
    head = first.data.split(b"\n", _FIRST_LINES)[:_FIRST_LINES] if first is not None else []
    last = [one for one in from_end(source.path, source.extent, _MOST_BYTES) if one[1].strip()]
    is_end = bool(last) and number > last[0][0] - _LAST_LINES
    is_complete = any(_COMPLETE.search(text) for _, text in last)
    return is_end and _LAUNCHER.search(b"\n".join(head)) is not None, is_complete


def said(cluster: Cluster, causes: Sequence[Cause]) -> list[Seen]:
    """Return the lines at the ends of logs that say that the job is complete; [] if it may have failed.

    A failure does not count that is long before the log of the job began, or after which the log with
    the line went on.

    Args:
        causes: The causes found so far. Slow or waiting ranks are not a failure that a line reports.
    """
    first = causes[0].seen if causes else None
    if causes and (
        first is None or first.event.message.kind not in {"cause", "error", "timeout", "code", "verdict"}
    ):
        return []
    programs = [file for file, source in enumerate(cluster.sources) if source.is_program_log]
    found = {file: line for file in programs[:_MOST_LOGS] if (line := _completed(cluster, file)) is not None}
    if not found or any(cluster.sources[file].rank is not None and file not in found for file in programs):
        return []
    begins = [begin for file in found if (begin := begin_of(cluster.sources[file])) is not None]
    failed = [one for one in (*cluster.seen, *cluster.others) if one.event.message.kind != "fact"]
    if any(not _is_over(one, found, min(begins, default=None), cluster) for one in failed):
        return []
    return [one for _, one in sorted(found.items())]


def of_earlier_job(cluster: Cluster, causes: Sequence[Cause]) -> list[Cause]:
    """Return the causes, of which the first is open if it is long before a log that has no failure."""
    first = causes[0] if causes else None
    if first is None or first.seen is None:
        return list(causes)
    until = first.seen.until
    if until is None and cluster.sources[first.seen.event.file].is_program_log:
        until = cluster.ends.get(first.seen.event.file)
    if until is None or first.seen.event.is_yearless:
        return list(causes)
    failed = {one.event.file for one in cluster.seen if one.event.message.kind not in {"fact", "end"}}
    for file, end in sorted(cluster.ends.items()):
        source = cluster.sources[file]
        if file in failed or end - until < LONGEST_PAUSE or not source.is_file:
            continue
        begin = begin_of(source)
        if begin is not None and begin - until > LONGEST_PAUSE:
            reason = f"it may be of an earlier job: {source.shown}, from {clock(end)[:16]}, has no failure"
            return [first._replace(confidence="open", reason=reason), *causes[1:]]
    return list(causes)


def note(cluster: Cluster, line: Seen) -> str:
    """Return a sentence on the line that says that a job is over."""
    what = "is complete" if line.event.message.id == COMPLETED else "ended with exit code 0"
    return f"the job {what}, by {cluster.sources[line.event.file].shown}:{line.event.line}"


def _completed(cluster: Cluster, file: int) -> Seen | None:
    """Return the line at the end of a log that says that its job is complete."""
    source, count = cluster.sources[file], 0
    for number, text in from_end(source.path, source.extent, _HEAD * _LAST_LINES):
        plain = screens.plain(text).strip()
        if not plain:
            continue
        shown = plain[: 2 * _SHOWN]
        if _SAYS_COMPLETE.search(shown):
            if _NOT_COMPLETE.search(shown):
                return None
            event = Event(
                messages()[COMPLETED],
                {},
                (),
                file,
                number,
                time=time_in(shown),
                text=shown[:_SHOWN].decode(errors="replace"),
            )
            return Seen(event, Place(source.rank), source.path, time=event.time)
        count += 1
        if count == _LAST_LINES:
            break
    return None


def _is_over(one: Seen, found: dict[int, Seen], begin: float | None, cluster: Cluster) -> bool:
    """Whether the job went on after a failure, or began long after it."""
    line = found.get(one.event.file)
    if line is not None:
        end = line.time if line.time is not None else cluster.ends.get(one.event.file)
        until = one.until if one.until is not None else one.time
        is_above = one.event.line < line.event.line
        return is_above and end is not None and until is not None and end - until > _GOES_ON
    if one.until is not None:
        return begin is not None and one.until < begin - _EARLIER
    # A line below the last time of its log, such as a traceback, may be some hours later.
    end = cluster.ends.get(one.event.file)
    is_old = end is not None and begin is not None and end < begin - LONGEST_PAUSE
    return is_old and cluster.sources[one.event.file].is_program_log
