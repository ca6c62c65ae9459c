"""Read all logs and answer: the entry point for the command and for ``launch``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.explain import (
    attempts,
    cluster,
    finished,
    identities,
    inference,
    outlived,
    progress,
    recorder_traces,
    runs,
    slurm_rows,
    table_fault,
    whereabouts,
)
from hccl_tools.explain.answer import Answer
from hccl_tools.explain.events import Event
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place, Places, read_table
from hccl_tools.explain.scanning import scans
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import and_more, count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from hccl_tools.explain.attempts import Attempts
    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.knowledge.message import Message
    from hccl_tools.explain.recorder_traces import Dumps
    from hccl_tools.explain.remote_logs import Fetched
    from hccl_tools.explain.runs import RunLogs
    from hccl_tools.explain.scanner import Scan
    from hccl_tools.explain.sources import Source

#: The greatest number of hosts, or ranges of hosts, in a note.
_MOST_NAMES = 8
#: Logs of which the first line of level ERROR without a message is shown.
_MOST_UNKNOWN = 3
#: Messages on variables that are set by a start: with it, the name is that of another key of the program.
_NOT_OF_START = {"torch": ("HCM743", "HCM744", "HCM745", "HCM746"), "cluster": ("HCM747", "HCM748")}
_TORCH_TABLE = ("HCM651", "HCM652", "HCM653")


def explain(
    sources: Sequence[Source],
    *,
    notes: Iterable[str] = (),
    table: str | None = None,
    run: str = "",
    run_name: str = "",
    parts: RunLogs | None = None,
    extra: Sequence[Message] = (),
    fetch: Callable[[Mapping[str, Collection[int]]], Fetched] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Read logs and return the answer.

    Args:
        sources: The logs that the user named; those of ``run`` are added.
        notes: Sentences on what is left out.
        table: The rank table; by default the run's own copy.
        run: The run directory of the run to explain, "" for none.
        run_name: How the user named it.
        parts: The logs of the run directories that one job has on its hosts, instead of ``run``.
        extra: The user's own messages.
        fetch: Searches the logs of the run on other hosts; without it a note names those hosts.
        progress: Called with the number of logs that were read and of all logs.

    Raises:
        InputError: The table cannot be read.
    """
    all_notes, logs, of_run = list(notes), list(sources), runs.read(run) if run else parts
    if of_run is not None:
        logs += of_run.sources
        all_notes += of_run.notes
        table = table or of_run.table or None
    places, size = _places(of_run, table, run, all_notes)
    if of_run is not None and of_run.has_finished and not sources:
        joined = cluster.build([], logs, places, size)
        return Answer([], joined, logs, all_notes, run_name, run, has_finished=True)
    dumps = recorder_traces.read(one for one in logs if one.is_dump)
    logs, all_notes = [one for one in logs if not one.is_dump], [*all_notes, *dumps.notes]
    logs, found_in = _scanned(logs, extra, progress)
    all_notes += [scan.note for scan in found_in if scan.note]
    ends, unknown = _ends_and_unknown(found_in)
    events = _events(logs, found_in)
    if of_run is not None:
        events = [_as_exception(event, of_run.start) for event in events]
        _add_run(of_run, logs, events, all_notes, fetch, dumps=dumps)
    joined = cluster.build(events, logs, places, size, ends)
    logs += dumps.sources
    all_notes += _about_evidence(dumps)
    joined = joined._replace(sources=logs, traces=dumps.traces, evidence=dumps.evidence)
    hangs = bool(dumps.traces)  # Recorders are dumped when a job hangs, whatever a log says at its end.
    if of_run is None and not hangs and (ended := finished.lines(joined)):
        return Answer([], joined, logs, all_notes, finished=ended)
    found = _causes(joined, of_run)
    if of_run is None and not hangs and (ended := finished.said(joined, found)):
        return _of_finished(Answer([], joined, logs, all_notes, finished=ended))
    found = whereabouts.named(finished.of_earlier_job(joined, found), joined)
    found, said = _weighed(table_fault.with_fault(found, table, logs), unknown, logs)
    running = "" if of_run is not None else _running(logs, found)
    all_notes += said if found or not running else []
    answer = Answer(found, joined, logs, all_notes, run_name, run, stopped_first=_stopped_first(of_run))
    answer = answer._replace(outlived=outlived.long_ago(joined, found), unfinished=running)
    if of_run is not None and of_run.cpu:
        return answer._replace(is_rehearsal=True)  # Without devices no rank uses the table.
    return answer._replace(notes=[*all_notes, *_about_table(answer, table)])


def _scanned(
    logs: Sequence[Source], extra: Sequence[Message], progress: Callable[[int, int], None] | None
) -> tuple[list[Source], list[Scan]]:
    """Return the logs with what was read of them, and what they contain."""
    found = list(scans(logs, extra, progress))
    return [log._replace(extent=scan.extent) for log, scan in zip(logs, found, strict=True)], found


def _ends_and_unknown(found_in: Sequence[Scan]) -> tuple[dict[int, float], dict[int, tuple[int, str]]]:
    """Return the last times of logs, and their first errors without a message, by the index of the log."""
    ends = {index: scan.last_time for index, scan in enumerate(found_in) if scan.last_time is not None}
    unknown = {index: scan.unknown for index, scan in enumerate(found_in) if scan.unknown is not None}
    return ends, unknown


def _running(logs: Sequence[Source], found: Sequence[Cause]) -> str:
    """Return the sentence that the job is still running, if Slurm says so and no failure is known.

    Such a job has handled what lines without a message are about.
    """
    is_known = bool(found) and found[0].confidence not in inference.GUESSES
    job, where = ("", "") if is_known else slurm_rows.running(logs)
    return f"Job {job} is still running, by the row of squeue in {where}" if job else ""


def _causes(joined: Cluster, of_run: RunLogs | None) -> list[Cause]:
    ended, not_started = (of_run.ended, of_run.not_started) if of_run is not None else ((), ())
    found = inference.causes(joined, ended, not_started=not_started)
    return _doubted(found, joined.attempts)


def _doubted(found: list[Cause], tried: Attempts | None) -> list[Cause]:
    """Return the causes; one of an attempt after which all ranks were started again is not certain."""
    first = found[0].seen if found else None
    if first is None or tried is None or not tried.is_earlier(first):
        return found
    reason = f"{attempts.RESTARTED}, and these logs have no later failure"
    return [found[0]._replace(confidence="open", reason=reason), *found[1:]]


def _as_exception(event: Event, start: str) -> Event:
    """Return an event; one on a variable that the run sets is about another key of the program."""
    if event.message.id not in _NOT_OF_START.get(start, ()):
        return event
    return event._replace(message=messages()["HCM810"], fields={"reason": event.text})


def _events(logs: Sequence[Source], found_in: Sequence[Scan]) -> list[Event]:
    """Return the events of all logs, with the start of the process whose rank the name of its log has."""
    events: list[Event] = []
    for index, (log, scan) in enumerate(zip(logs, found_in, strict=True)):
        events += scan.events
        if scan.pid and log.names_rank:
            fields = {"rank": str(log.rank), "pid": scan.pid}
            events.append(Event(messages()[identities.STARTED], fields, (), index, 0))
    return events


def _stopped_first(of_run: RunLogs | None) -> Sequence[str]:
    return of_run.stopped_first if of_run is not None else ()


def _of_finished(answer: Answer) -> Answer:
    """Return the answer on a job that is complete, with a loss that is not a number as the cause."""
    if not (lost := progress.diverged_causes(answer.sources)):
        return answer
    notes = [*answer.notes, finished.note(answer.cluster, answer.finished[0])]
    return answer._replace(causes=lost, notes=notes, finished=())


def _weighed(
    found: Sequence[Cause], unknown: Mapping[int, tuple[int, str]], sources: Sequence[Source]
) -> tuple[list[Cause], list[str]]:
    """Return the causes, and notes on errors that no message explains.

    Without another cause it is a loss that is not a number.

    With such a line, a fault beside the logs is not the only failure.

    Args:
        unknown: The number and the text of the first such line of a log, by the index of the log.
    """
    causes = list(found) or progress.diverged_causes(sources)
    is_alone = bool(causes) and causes[0].confidence == "alone" and causes[0].message.id in identities.STATES
    if not unknown or (causes and not is_alone):
        return causes, []
    if is_alone:
        causes[0] = causes[0]._replace(
            confidence="open", reason="other errors in these logs may be the cause, see the notes"
        )
    shown = [
        f"{sources[file].shown}:{line} reports an error that has no message of its own: {text}"
        for file, (line, text) in sorted(unknown.items())[:_MOST_UNKNOWN]
    ]
    return causes, shown


def _places(of_run: RunLogs | None, table: str | None, run: str, notes: list[str]) -> tuple[Places, int]:
    """Return what the table and the run say about the ranks, and the number of ranks, 0 if unknown."""
    places, size = Places(), of_run.size if of_run is not None else 0
    if table:
        shown = table if not run or not table.startswith(run) else os.path.relpath(table)
        places.table, problem = read_table(table_fault.opened(table), shown)
        notes += [problem] if problem else []
        if places.table is not None:
            size = size or len(places.table)
            for place in places.table.places():
                places.add(place)
    for place in of_run.places if of_run is not None else ():
        places.add(place)
    return places, size


def _add_run(
    of_run: RunLogs,
    logs: list[Source],
    events: list[Event],
    notes: list[str],
    fetch: Callable[[Mapping[str, Collection[int]]], Fetched] | None,
    *,
    dumps: Dumps,
) -> None:
    """Add what report.json says, and the logs of other hosts."""
    events += [event._replace(file=len(logs) + event.file) for event in of_run.events]
    logs += of_run.reports
    if fetch is not None and of_run.elsewhere:
        fetched = fetch(of_run.elsewhere)
        events += [event._replace(file=event.file + len(logs)) for event in fetched.events]
        logs += fetched.sources
        notes += fetched.notes
        dumps.add(fetched.traces, fetched.evidence)
        return
    notes += _on_other_hosts(of_run.elsewhere)


def _on_other_hosts(ranks: Mapping[str, Collection[int]]) -> list[str]:
    """Return one sentence for all hosts, of which a job may have thousands."""
    places = [Place(rank) for of_host in ranks.values() for rank in of_host]
    if not places:
        return []
    what, are = ("log", "is") if len(places) == 1 else ("logs", "are")
    where = and_more(host_list.fold(ranks).split(","), _MOST_NAMES)
    return [f"the {what} of {ranks_text(places)} {are} on {where} only"]


def _about_evidence(dumps: Dumps) -> list[str]:
    """Return where the evidence is that was taken before the end of the job."""
    stacks = sum(bool(one.stack) for host in dumps.evidence for one in host.ranks)
    if not dumps.files or not (stacks or dumps.traces):
        return []
    missing = [problem for host in dumps.evidence for problem in host.problems]
    what = f"{count(stacks, 'stack')}, {count(len(dumps.traces), 'recorder dump')}"
    where = and_more([os.path.basename(file) for file in dumps.files], _MOST_NAMES)
    return [f"evidence from before the end: {what} ({where})", *missing]


def _about_table(answer: Answer, table: str | None) -> list[str]:
    """Return whether torch_npu used the rank table."""
    notes = []
    told = [one.event.message for one in answer.cluster.seen if one.event.message.id in _TORCH_TABLE]
    if told:
        notes.append(f"{told[-1].meaning}" + ("" if told[-1].id == "HCM651" else f": {told[-1].remedy}"))
    elif table and _is_torch(answer.cluster):
        notes.append(
            "whether torch_npu used the rank table is unknown:"
            " start the job with ASCEND_GLOBAL_LOG_LEVEL=1 to see"
        )
    return notes


def _is_torch(joined: Cluster) -> bool:
    words = ("torch", "PTA(", "ERR02200", "c10d")
    return any(word in one.event.text for one in joined.seen for word in words)
