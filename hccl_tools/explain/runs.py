"""The logs of a run: its rank logs, plogs and engine logs, and what report.json says about its ranks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.explain.events import Event
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.knowledge.signals import REMEDIES
from hccl_tools.explain.locations import Place
from hccl_tools.explain.sources import Limits, Source, collect, source
from hccl_tools.notation.number_list import rank_list
from hccl_tools.processes import run_files
from hccl_tools.processes.stack_dump import users_line
from hccl_tools.processes.wait_state import STOPPED
from hccl_tools.records import NamedTuple
from hccl_tools.runs import files, hosts, index, job_key, names, own_runs
from hccl_tools.runs.ends import NOT_STARTED
from hccl_tools.runs.saved import SavedHungRank

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from hccl_tools.runs.saved import SavedEnd, SavedProcess, SavedReport


#: Why a job ended other than by a rank's failure -> the message that stands for it.
_REASONS = {
    "host": "HCM823",
    "timeout": "HCM827",
    "hang": "HCM833",
    "keeper": "HCM828",
    "daemon": "HCM828",
    "signal": "HCM829",
}
#: Signals with words of their own; another one ends a rank from outside, or because of a fault in a library.
_SIGNALS = {"SIGABRT": "HCM891", "SIGTERM": "HCM892"}
_UNKNOWN_SIGNAL = "look for what sent the signal: the program itself, a script or a user"
_SILENT_EXIT = (
    "look in the program for what ends it with this exit code and prints nothing, such as sys.exit() or "
    "os._exit()"
)
#: The ranks that stopped first whose last lines are shown.
_MOST_FIRST = 4


class RunLogs(NamedTuple):
    """The logs of a run.

    Attributes:
        sources: The logs on this host.
        reports: The files report.json, one for each run directory.
        events: What they say: how ranks ended, which host was lost; the file is an index of ``reports``.
        places: The ranks with their hosts and devices.
        ended: The ranks that the launcher ended.
        not_started: The ranks that did not start because another rank failed.
        elsewhere: The hosts that have the logs of other ranks.
        table: The run's copy of its rank table, "" if it has none.
        size: The number of ranks.
        notes: Sentences on what is missing.
        has_finished: Whether it ended with exit code 0 at its first start: no log of it has a cause.
    """

    sources: list[Source]
    reports: list[Source]
    events: list[Event]
    places: list[Place]
    ended: set[int]
    not_started: set[int]
    elsewhere: dict[str, list[int]]
    table: str
    size: int
    notes: list[str]
    has_finished: bool = False
    stopped_first: Sequence[str] = ()
    start: str = ""
    cpu: bool = False


def read(path: str) -> RunLogs:
    """Return the logs of a run that this host has; ``path`` is its run directory.

    Raises:
        MalformedRunError: A file of the run directory is malformed.
    """
    plan, report = files.plan(path), files.report(path)
    strange = own_runs.why_strange(path, os.environ)
    ranks, ends = plan.ranks, report.ranks if report else ()
    found, notes = collect([path])
    found = [one._replace(is_run=True) for one in found]
    for name in (names.TABLE, names.REPORT):
        file = os.path.join(path, name)
        if os.path.lexists(file) and not run_files.status(file):
            notes.append(f"{file} was not read: {_why_refused(file)}")
    scheduler = os.path.join(path, names.SCHEDULER_LOG)
    found = [one._replace(rank=-1) if one.path == scheduler else one for one in found]
    not_started = {end.rank for end in ends if end.how == NOT_STARTED}
    missing = _add_logs(path, ranks, strange, found, notes)
    again = _started_again(ranks, report)
    _add_logs(path, again, strange, found, notes)
    last = again[-len(ranks) :] or ranks
    elsewhere = _add_missing(path, [one for one in missing if one.rank not in not_started], notes)
    _add_plogs(path, ends, strange, found, notes)
    if not_started:
        were = "were" if len(not_started) > 1 else "was"
        notes.append(f"{rank_list(sorted(not_started))} {were} not started")
    if report and report.reason == "signal":
        notes += _stopped_while_running(report)
    table = os.path.join(path, names.TABLE)
    told = names.REPORT if report else names.LAUNCHER
    return RunLogs(
        found,
        [Source(os.path.join(path, told), f"{path}/{told}", is_run=True)],
        _events(report, _silent(path, last)) if report else _killed_launcher(path),
        [Place(process.rank, process.host, process.device) for process in ranks],
        {end.rank for end in ends if end.asked_to_end and end.rank >= 0},
        not_started,
        elsewhere,
        table if run_files.status(table) else "",
        len(ranks),
        list(dict.fromkeys(notes)),
        report is not None and report.exit_code == 0 and not report.restarts,
        list(_stopped_first(report)) if report else (),
        plan.start,
        plan.cpu,
    )


def read_parts(paths: Sequence[str]) -> RunLogs | None:
    """Return the logs of the run directories that one job has on its hosts; None if they are of several jobs.

    Raises:
        MalformedRunError: A file of a run directory is malformed.
    """
    parts = [read(path) for path in paths]
    first = parts[0]
    if any(part.places != first.places for part in parts):
        return None
    events = [event._replace(file=at) for at, part in enumerate(parts) for event in part.events]
    sources = [one for part in parts for one in part.sources]
    have = {one.rank for one in sources if not one.is_dump}
    elsewhere = {
        host: missing
        for part in parts
        for host, ranks in part.elsewhere.items()
        if (missing := [rank for rank in ranks if rank not in have])
    }
    return first._replace(
        sources=sources,
        reports=[one for part in parts for one in part.reports],
        events=_of_most_reports(events),
        ended=set().union(*(part.ended for part in parts)),
        not_started=set().union(*(part.not_started for part in parts)),
        elsewhere=elsewhere,
        notes=list(dict.fromkeys(note for part in parts for note in part.notes)),
        has_finished=all(part.has_finished for part in parts),
        stopped_first=list(dict.fromkeys(line for part in parts for line in part.stopped_first)),
    )


def _of_most_reports(events: Sequence[Event]) -> list[Event]:
    """Return what most launchers reported, once: one that was cut off reports the loss of the others."""
    same: dict[tuple[str, int | None, str], list[Event]] = {}
    for event in events:
        same.setdefault((event.message.id, event.rank, event.fields.get("server", "")), []).append(event)
    most = max(map(len, same.values()), default=0)
    return [several[0] for several in same.values() if len(several) == most]


def _add_logs(
    path: str, ranks: Iterable[SavedProcess], strange: str, found: list[Source], notes: list[str]
) -> list[SavedProcess]:
    """Add the logs of ranks that are outside of the run directory; return the ranks without a log."""
    have = {one.path for one in found}
    missing, outside = [], Limits.of_run()
    for process in ranks:
        log = os.path.join(path, process.log)
        if log in have:
            continue
        is_outside = _is_outside(log)
        if is_outside and strange and not os.path.normpath(log).startswith(path + os.sep):
            notes.append(_not_read(f"the log of rank {process.rank}, {log},", strange))
        elif run_files.status(log):
            more, said = collect([log], outside) if is_outside else ([source(log, root=path)], [])
            found += [one._replace(rank=process.rank, is_run=True, is_outside=is_outside) for one in more]
            notes += said
        elif os.path.lexists(log):
            notes.append(f"the log of rank {process.rank}, {log}, was not read: {_why_refused(log)}")
        else:
            missing.append(process)
    return missing


def _started_again(ranks: Iterable[SavedProcess], report: SavedReport | None) -> list[SavedProcess]:
    """Return the ranks with their logs after each restart; the plan has only the first ones."""
    restarts = range(1, report.restarts + 1) if report else ()
    return [one._replace(log=names.generation(one.log, number)) for number in restarts for one in ranks]


def _is_outside(log: str) -> bool:
    """Return whether a log is in no run directory: ``--log-file``, ``--flat-logs``.

    The folder of such a log may be held already, because it has the log of another rank.
    """
    found = run_files.find(log)
    return found is None or found[0].takes_all


def _add_missing(path: str, ranks: Iterable[SavedProcess], notes: list[str]) -> dict[str, list[int]]:
    """Add a note on the ranks of this host without a log; return those of other hosts, by host."""
    run = index.read(path)
    absent: list[SavedProcess] = []
    elsewhere: dict[str, list[int]] = {}
    for process in ranks:
        if hosts.is_on_this_host(run, process):
            absent.append(process)
        else:
            elsewhere.setdefault(process.host, []).append(process.rank)
    notes += _about_absent(path, absent)
    return elsewhere


def _add_plogs(
    path: str, ends: Iterable[SavedEnd], strange: str, found: list[Source], notes: list[str]
) -> None:
    """Add CANN's logs that are outside of the run directory."""
    outside, by_folder = Limits.of_run(), dict[str, set[int]]()
    for end in ends:
        if end.plog and not end.plog.startswith(path + os.sep):
            by_folder.setdefault(end.plog, set()).add(end.rank)
    for folder, ranks in by_folder.items():
        if strange:
            notes.append(_not_read(f"the folder of CANN's logs, {folder},", strange))
        elif not os.path.isdir(folder):
            continue
        elif _has_more_than_logs(folder, path):
            notes.append(
                f"{folder} was not read: it has more than CANN's logs; name the folders with logs in it"
            )
        else:
            more, said = collect([folder], outside)
            own = min(ranks) if len(ranks) == 1 else None
            found += [one._replace(rank=one.rank if own is None else own, is_outside=True) for one in more]
            notes += said


def _has_more_than_logs(folder: str, run_dir: str) -> bool:
    """Return whether a folder is the root, or above the run or the home directory, or one of these."""
    real = os.path.join(links.real_path(folder), "")
    home = job_key.home(os.environ) or ""
    kept = [os.path.join(links.real_path(one), "") for one in (run_dir, home) if one]
    return any(one.startswith(real) for one in kept)


def _about_absent(path: str, ranks: Sequence[SavedProcess]) -> list[str]:
    """Return one sentence on the ranks without a log, which may be thousands."""
    if not ranks:
        return []
    first = os.path.join(path, ranks[0].log)
    if len(ranks) == 1:
        return [f"rank {ranks[0].rank} has no log: {first} does not exist"]
    others = f"{first} and {len(ranks) - 1:,} more do not exist"
    return [f"{rank_list(process.rank for process in ranks)} have no logs: {others}"]


def _not_read(what: str, why: str) -> str:
    """Return a note on a file that the run of another author names: it may be any file of this user."""
    return f"{what} was not read: it is outside of the run directory, which {why}"


def _why_refused(path: str) -> str:
    try:
        os.close(run_files.open_read(path))
    except OSError as error:
        return run_files.reason(error)
    return "it has just been created"


def _running(report: SavedReport) -> list[int]:
    """Return the ranks that ran until the launcher ended them."""
    return [end.rank for end in report.ranks if end.asked_to_end and end.rank >= 0]


def _stopped_while_running(report: SavedReport) -> list[str]:
    """Return a sentence on the ranks that a signal to the launcher found running: the job may have hung."""
    if not (running := _running(report)):
        return []
    verb = "was" if len(running) == 1 else "were"
    found = f"{rank_list(running)} {verb} still running"
    return [f"{found}; `hccl-tools stacks` before the stop, or --hang-timeout, shows where a job hangs"]


def _stopped_first(report: SavedReport) -> Iterator[str]:
    """Yield what is known of the ranks that stopped first: the last line, and the innermost line of code."""
    first = [one for one in report.hung if one.is_first and one.rank >= 0]
    for one in first[:_MOST_FIRST]:
        whose = "its" if len(first) == 1 else f"rank {one.rank}'s"
        if one.last_line:
            yield f"{whose} last line: {one.last_line}"
        if line := users_line(one.stack):
            yield f"{whose} innermost line of code: {line}"


def _first_hung(report: SavedReport) -> SavedHungRank:
    """Return the rank that stopped first in a job that hung, a nameless one if several did."""
    first = [one for one in report.hung if one.is_first and one.rank >= 0]
    return first[0] if len(first) == 1 else SavedHungRank(-1)


def _silent(path: str, ranks: Iterable[SavedProcess]) -> set[int]:
    """Return the ranks whose logs are empty."""
    logs = ((one.rank, run_files.status(os.path.join(path, one.log))) for one in ranks)
    return {rank for rank, about in logs if about is not None and not about.st_size}


def _killed_launcher(path: str) -> list[Event]:
    """Return the event that the launcher of a run was killed: it left no report, and has ended."""
    run = index.read(path)
    if run.state != "killed" or not run_files.status(os.path.join(path, names.LAUNCHER)):
        return []
    text = "the launcher was killed, and the ranks with it"
    return [Event(messages()["HCM828"], {"reason": text}, (), 0, 0, text=text)]


def _events(report: SavedReport, silent: Collection[int]) -> list[Event]:
    """Return events for how the job ended, as far as no log says it.

    Args:
        silent: The ranks whose logs are empty.
    """
    known = messages()
    stopped = [one for one in report.hung if one.rank >= 0 and one.doing in STOPPED]
    if report.reason == "hang" and stopped:
        # Its stack and its recorder are of a time after it was resumed for them.
        return [
            Event(
                known["HCM937"], {"server": one.host, "reason": one.doing}, (), 0, 0, rank=one.rank,
                text=f"rank {one.rank}: {one.doing}",
            )
            for one in stopped[:_MOST_FIRST]
        ]  # fmt: skip
    running = _running(report)
    if report.reason == "timeout" and 0 < len(running) < len(report.ranks):
        text = f"{rank_list(running)} {'was' if len(running) == 1 else 'were'} still running"
        rank = running[0] if len(running) == 1 else None
        return [Event(known[_REASONS["timeout"]], {"reason": text}, (), 0, 0, rank=rank, text=text)]
    if report.reason in _REASONS:
        hung = _first_hung(report)
        # The host that has noticed a hang may be another than that of the rank.
        fields = {"server": hung.host or report.began_on or "", "reason": report.detail or ""}
        text = report.detail or report.reason
        rank = hung.rank if hung.rank >= 0 else None
        return [Event(known[_REASONS[report.reason]], fields, (), 0, 0, rank=rank, text=text)]
    first = report.first_failure
    if first is None:
        return []
    text = f"{first.name} {first.how}"
    if first.name not in {"scheduler", f"rank {first.rank}"}:
        return [Event(known["HCM830"], {"reason": text}, (), 0, 0, text=text)]
    if first.killed_by_oom:
        message = known["HCM822"]
    else:
        message = known[_SIGNALS.get(first.signal, "HCM820") if first.signal else "HCM821"]
        if message.id == "HCM820" and (first.signal != "SIGKILL" or first.killed_by_oom is False):
            message = message._replace(remedy=REMEDIES.get(first.signal or "", _UNKNOWN_SIGNAL))
    how = first.how
    if first.signal == "SIGKILL" and first.killed_by_oom is False:
        how += ", not by the kernel's out-of-memory killer"
    if message.id == "HCM821" and first.rank in silent:
        how, message = f"{how}, and its log is empty", message._replace(remedy=_SILENT_EXIT)
    fields = {"server": first.host, **({"reason": how} if message.id not in _SIGNALS.values() else {})}
    return [Event(message, fields, (), 0, 0, rank=first.rank, text=text)]
