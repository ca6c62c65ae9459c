"""The report of a failed job: text for stderr, and report.json."""

from __future__ import annotations

import json
import os
import time
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.logs import excerpt
from hccl_tools.launch.model.outcome import hung_silence
from hccl_tools.launch.model.variables import LOG_PATH_VARIABLE
from hccl_tools.launch.report import hints
from hccl_tools.notation.number_list import rank_list, rank_ranges
from hccl_tools.notation.phrases import and_more, count, time_span
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.processes import procfs, run_files
from hccl_tools.processes.signals import ENDING, signal_name, spawn
from hccl_tools.processes.stack_dump import shortened_frame
from hccl_tools.records import plain
from hccl_tools.runs import names, own_runs
from hccl_tools.runs.ends import REASONS
from hccl_tools.runs.job_report import (
    SCHEMA_VERSION,
    AttemptReport,
    JobReport,
    ProcessEnd,
    RankFailure,
    StuckProcess,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.model.outcome import Outcome, RankEnd
    from hccl_tools.processes.signals import Signals
    from hccl_tools.runs.job_report import HungRank

#: The ways to end that the text lists, each with its ranks.
_MOST_CONSEQUENCES = 4
#: Ranks whose logs are compared with that of the first failure: each takes a millisecond.
_MOST_COMPARED = 256
#: The files with evidence that the text names.
_MOST_FILES = 3
#: Lines of a log in the text.
_MOST_QUOTED = 10
#: Seconds until a ``--notify`` command is killed.
_NOTIFY_SECONDS = 30.0

#: The maximum number of ranks, or groups with one stack, that are described one by one.
_MOST_RANKS = 4
#: The maximum number of groups of ranks that do the same.
_MOST_GROUPS = 8


def make(
    outcome: Outcome,
    *,
    run_dir: str,
    killed_by_oom: bool | None,
    earlier: Sequence[AttemptReport] = (),
    replaced: Sequence[Mapping[str, Any]] = (),
    duration: float | None = None,
) -> JobReport:
    """Return the report of a job's end.

    Args:
        earlier: The ``attempts`` in the report before a restart.
        replaced: The spares in the places of lost hosts.
        duration: Seconds of the whole job, by default those of this start.
        killed_by_oom: Whether a count of out-of-memory kills has increased; ``None`` if unknown.
    """
    cause, detail = outcome.remote_cause, outcome.detail
    first = None
    if cause is not None:
        detail, first = cause.message, cause.first_failure
    elif outcome.first_failure is not None:
        first = first_failure(outcome.first_failure, killed_by_oom=killed_by_oom)
    this = AttemptReport(
        duration=round(outcome.duration, 3),
        reason=outcome.reason,
        detail=detail,
        began_on=cause.host if cause else None,
        exit_code=outcome.exit_code,
        first_failure=first,
        warnings=outcome.notes,
    )
    return JobReport(
        schema_version=SCHEMA_VERSION,
        exit_code=this.exit_code,
        reason=this.reason,
        detail=this.detail,
        signal=signal_name(outcome.signal) if outcome.signal else None,
        began_on=this.began_on,
        ended=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        duration=this.duration if duration is None else round(duration, 3),
        restarts=outcome.restarts,
        replaced=replaced,
        run_dir=run_dir,
        first_failure=first,
        hung=_hung(outcome),
        evidence=outcome.evidence,
        consequences=[_end(end) for end in outcome.consequences],
        stuck=[_stuck(process) for process in outcome.stuck],
        ranks=[_end(end) for end in outcome.ends],
        warnings=outcome.notes,
        attempts=(*earlier, this),
    )


def _hung(outcome: Outcome) -> Sequence[HungRank]:
    return outcome.remote_cause.hung if outcome.remote_cause else outcome.hung


def first_failure(first: RankEnd, *, killed_by_oom: bool | None) -> RankFailure:
    """Describe the rank that failed first."""
    lines = excerpt.log_end(first.log)
    codes = excerpt.hccl_codes(lines)
    traceback = excerpt.last_traceback(lines)
    said = hints.for_traceback(traceback, first.process.argv) + hints.for_codes(codes)
    said += hints.for_start(lines, first.process.environment)
    return RankFailure(
        **_end(first)._asdict(),
        killed_by_oom=killed_by_oom if first.signal == SIGKILL else False,
        hints=hints.for_disk(first.log) + hints.for_end(first, killed_by_oom=killed_by_oom) + said,
        hccl_codes=codes,
        traceback=traceback,
        last_lines=excerpt.last_lines(lines),
    )


def _end(end: RankEnd) -> ProcessEnd:
    process = end.process
    return ProcessEnd(
        rank=-1 if process.is_engine else process.rank,
        name=process.name,
        host=process.host,
        device=-1 if process.is_engine else process.device,
        pid=end.pid or None,
        exit_code=end.code,
        signal=signal_name(end.signal) if end.signal else None,
        how=end.description,
        duration=round(end.duration, 3) if end.ended else None,
        cpu=round(end.cpu, 3),
        peak_memory_kib=end.peak,
        asked_to_end=end.was_terminated,
        log=end.log,
        plog=process.environment.get(LOG_PATH_VARIABLE) or os.environ.get(LOG_PATH_VARIABLE),
        log_host=process.host if end.is_elsewhere else None,
    )


def _stuck(process: procfs.Status) -> StuckProcess:
    rank = procfs.environment(process.pid).get("RANK_ID")
    return StuckProcess(
        pid=process.pid,
        rank=whole_number(rank) if rank else None,
        command=procfs.command(process.pid),
        state=process.state,
        waits_in=procfs.waits_in(process.pid),
    )


def write(report: JobReport, run_dir: str) -> str | None:
    """Write report.json atomically; return why it failed, ``None`` on success."""
    try:
        run_files.write(run_dir, names.REPORT, _lines(report, json.dumps).encode())
    except OSError as error:
        return run_files.reason(error)
    own_runs.note_report(run_dir, os.environ)
    return None


def _lines(report: JobReport, dumps: Callable[[Any], str]) -> str:
    """Return JSON with a line per key and per rank, for grep and diff; ``indent`` would be slow."""
    parts = []
    for key, value in plain(report).items():
        text = dumps(value)
        if isinstance(value, list) and value:
            text = "[\n    " + ",\n    ".join(dumps(item) for item in value) + "\n  ]"
        elif isinstance(value, dict):
            text = (
                "{\n    "
                + ",\n    ".join(f"{dumps(name)}: {dumps(item)}" for name, item in value.items())
                + "\n  }"
            )
        parts.append(f"  {dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def notify(report: JobReport, command: str, signals: Signals) -> str | None:
    """Run a shell command with the report on its stdin; return why it failed, ``None`` on success.

    The command is killed after ``_NOTIFY_SECONDS`` or on Ctrl-C. Its output is written to stderr.
    """
    memory = os.memfd_create(names.REPORT)
    try:
        os.write(memory, json.dumps(plain(report)).encode())
        os.lseek(memory, 0, os.SEEK_SET)
        helper = spawn(["/bin/sh", "-c", command], stdin=memory, HCCL_TOOLS_RUN_DIR=report.run_dir)
    except OSError as error:
        return error.strerror
    finally:
        os.close(memory)
    deadline = time.monotonic() + _NOTIFY_SECONDS
    pause = 0.001
    while not helper.ended():
        if time.monotonic() > deadline or ENDING & set(signals.read()):
            helper.end()
            return f"the command did not exit in time and was killed: {command}"
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    if not helper.code:
        return None
    how = f"exited with {helper.code}" if helper.code > 0 else f"was killed by {signal_name(-helper.code)}"
    return f"the command {how}: {command}"


def text(
    report: JobReport,
    unwritten: str | None = None,
    *,
    has_verdict: bool = True,
    above: int | None = None,
) -> str:
    """Return the report as text, to be followed by the verdict, or with its cause if it is not.

    The text fits a screen; report.json and the logs have the rest.

    Args:
        unwritten: Why report.json is missing.
        above: The rank whose log alone was printed before it, on the same terminal.
    """
    lines: list[str] = []
    first = report.first_failure
    if first:
        lines += failure_lines(first, report.began_on, run_dir=report.run_dir, is_above=first.rank == above)
    else:
        lines.append(_head(report))
    if not (first or report.hung or has_verdict) and report.detail:
        lines.append(f"  cause: {report.detail}")
    if report.hung:
        lines += hang_lines(report.hung)
    same = _with_same_exception(report.consequences, first.traceback) if first else []
    if same:  # Without how they ended: some were terminated while Python printed the exception.
        lines.append(f"  failed with the same exception: {rank_ranges([end.rank for end in same])}")
    others = [end for end in report.consequences if end not in same]
    lines += _consequences(others, after_failure=bool(first))
    for process in report.stuck:
        whose = "" if process.rank is None else f" of rank {process.rank}"
        where = f" in {process.waits_in}" if process.waits_in else ""
        why = f"stuck in the kernel{where}" if process.state == "D" else "could not be killed"
        what = f"process {process.pid}{whose}, state {process.state} ({process.command})"
        lines.append(f"  left running ({why}): {what}")
    lines += _evidence(report)
    run_dir = names.shown(report.run_dir)
    if unwritten:
        lines.append(f"  logs: {run_dir} (without report.json: {unwritten})")
    else:
        lines.append(f"  logs and report.json: {run_dir}")
    return "\n".join(lines)


def _evidence(report: JobReport) -> list[str]:
    """Return where the evidence is, which ``explain`` reads; nothing if none has a stack or a dump."""
    found = [one for one in report.evidence if one.stacks or one.recorders]
    if not found:
        return []
    stacks, dumps = sum(one.stacks for one in found), sum(one.recorders for one in found)
    what = [count(number, noun) for number, noun in ((stacks, "stack"), (dumps, "recorder dump")) if number]
    files = and_more([os.path.basename(one.file) for one in found if one.file], _MOST_FILES)
    where = f", from {count(len(found), 'host')}" if len(found) > 1 else ""
    return [f"  evidence: {' and '.join(what)}{where}" + (f" ({files})" if files else "")]


def _head(report: JobReport) -> str:
    where = f" on {report.began_on}" if report.began_on else ""
    head = _filled(REASONS[report.reason].head, report)
    return f"{head}{where} after {time_span(report.duration, 2)}"


def _filled(template: str, report: JobReport) -> str:
    detail = report.detail or REASONS[report.reason].detail or report.reason
    return template.format(detail=detail, signal=report.signal or "a signal", host=report.began_on)


def failure_lines(
    first: RankFailure, elsewhere: str | None = None, *, run_dir: str, is_above: bool = False
) -> list[str]:
    """Return the failure of a rank as text.

    Args:
        elsewhere: The host of the rank if it is another host.
        run_dir: The run directory, which is named below the lines: its logs are shown without it.
        is_above: Whether the log was printed before the report: only the line that ends it is repeated.
    """
    device = "" if first.rank < 0 else f"device {first.device}, "
    pid = f", pid {first.pid}" if first.pid else ""
    after = time_span(first.duration or 0.0, 2)
    lines = [f"{first.name} failed first: {first.how} after {after} ({device}host {first.host}{pid})"]
    shown = first.traceback or first.last_lines
    host = elsewhere or first.log_host
    log = f"{host}:{first.log}" if host else names.shown(first.log.removeprefix(f"{run_dir}/"))
    if shown:
        what = "traceback" if first.traceback else "lines"
        lines.append(f"  its last {what}, from {log}:" if not is_above else f"  the end of {log}:")
        lines += [f"    | {line}" for line in (shown[-1:] if is_above else _shortened(shown))]
    else:
        lines.append(f"  its log is empty: {log}")
    lines += [f"  {hints.line(hint, first.host)}" for hint in first.hints]
    return lines


def _shortened(lines: Sequence[str]) -> list[str]:
    """Return the lines that fit a screen beside the rest of the report: the first and the last ones.

    Lines of Python that only mark a part of the line above go first.
    """
    if len(lines) <= _MOST_QUOTED:
        return list(lines)
    kept = [line for line in lines if line.strip(" ^~") or not line]
    if len(kept) <= _MOST_QUOTED:
        return kept
    tail = _MOST_QUOTED - 2
    return [kept[0], f"  ... {len(kept) - 1 - tail} lines ...", *kept[-tail:]]


def _with_same_exception(ends: Sequence[ProcessEnd], traceback: Sequence[str]) -> list[ProcessEnd]:
    """Return the ranks whose logs end with the exception of the first failure: they failed by themselves.

    The launcher may have terminated them while Python was on its way out.
    """
    if not traceback:
        return []
    here = [end for end in ends if not end.log_host and end.rank >= 0][:_MOST_COMPARED]
    return [end for end in here if excerpt.last_traceback(excerpt.log_end(end.log))[-1:] == traceback[-1:]]


def _consequences(ends: Sequence[ProcessEnd], *, after_failure: bool) -> list[str]:
    if not after_failure:
        return _listed("ended", ends)
    # It is unknown whether these ranks failed on their own or because of the first failure.
    alone = [end for end in ends if end.exit_code and end.asked_to_end is False]
    asked = [end for end in ends if end not in alone]
    return _listed("also failed before being terminated", alone) + _listed("as a consequence", asked)


def _listed(what: str, ends: Sequence[ProcessEnd]) -> list[str]:
    """Return a line with the processes that ended, the ranks that ended in the same way together."""
    ranks: dict[str, list[int]] = {}
    others = [f"{end.name}: {end.how}" for end in ends if end.rank < 0]
    for end in ends:
        if end.rank >= 0:
            ranks.setdefault(end.how, []).append(end.rank)
    groups = [f"{rank_ranges(some)}: {how}" for how, some in ranks.items()]
    if not groups and not others:
        return []
    listed = "; ".join((groups + others)[:_MOST_CONSEQUENCES])
    more = len(groups) + len(others) - _MOST_CONSEQUENCES
    return [f"  {what}: {listed}" + (f"; and {more:,} more in report.json" if more > 0 else "")]


def verdict(report: JobReport) -> str:
    """Return the last line: the exit code and its reason."""
    code, reason, first = report.exit_code, report.reason, report.first_failure
    if reason == "failed" and first:
        why = f", from {first.name}" + (f" on {report.began_on}" if report.began_on else "")
        if first.signal:
            why += f", ended by {first.signal} (128 + {code - 128})"
    elif report.began_on:
        why = f": {report.detail}"
    else:
        why = _filled(REASONS[reason].verdict, report)
    return f"exit code {code}{why}"


def hang_lines(hung: Sequence[HungRank]) -> list[str]:
    """Return the ranks of a job that hung as text: those that stopped first with stacks, equal ones once."""
    first = [one for one in hung if one.is_first]
    verb = "stopped at the same time" if len(first) == len(hung) > 1 else "stopped first"
    alike: dict[object, list[HungRank]] = {}
    for one in first:
        alike.setdefault((one.doing, *one.stack) if one.stack else one.rank, []).append(one)
    # The few that differ are more telling than the many.
    shown = sorted(alike.values(), key=len)[:_MOST_RANKS]
    found = [line for some in shown for line in _group(some, verb)]
    described = {one.rank for some in shown for one in some}
    groups: dict[str, list[int]] = {}
    for one in hung:
        if one.rank not in described:
            groups.setdefault(one.doing, []).append(one.rank)
    found += [f"  {rank_list(ranks)}: {doing}" for doing, ranks in list(groups.items())[:_MOST_GROUPS]]
    if len(groups) > _MOST_GROUPS:
        found.append(f"  ... and {len(groups) - _MOST_GROUPS} more groups of ranks in report.json")
    return found


def _group(some: Sequence[HungRank], verb: str) -> list[str]:
    """Return a rank, or several that do the same with the same stack, as text."""
    one = some[0]
    who, its, whose = one.name, "its last line", "its stack"
    where = f" (host {one.host}, pid {one.pid})"
    if len(some) > 1:
        who, where = rank_list(each.rank for each in some), ""
        its, whose = f"the last line of {one.name}", "the stack of each"
    found = [f"  {who} {verb}{where}: {one.doing}; {hung_silence(one)}"]
    if one.last_line:
        found.append(f"    {its}: {one.last_line}")
    return found + _stack(one, whose)


def _stack(one: HungRank, whose: str) -> list[str]:
    if not one.stack:
        return []
    lines = [f"    {whose}, innermost call first, from {names.shown(one.log)}:"]
    return lines + [f"    | {shortened_frame(line)}" for line in one.stack]
