"""Failures that a job outlived: a log goes on with further steps of the training."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from hccl_tools.explain.events import time_in
from hccl_tools.explain.jobs import begin_of
from hccl_tools.explain.reader import LogReader
from hccl_tools.explain.screens import STEP, texts_from_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Event, Seen
    from hccl_tools.explain.sources import Source

#: Steps beyond the last one before a failure, or different steps after it, if the job began again from a
#: checkpoint. The lines that ranks had in their buffers when one of them failed are fewer.
_FURTHER, _DIFFERENT = 5, 20
#: Bytes after a failure in which steps are looked for, and blocks before it.
_WITHIN, _BLOCKS_BEFORE = 8 << 20, 4
#: Seconds after a failure from which on a step shows that the job went on.
_LATER = 60.0
#: Faults that are looked up, which need their logs again; and the seconds after the time limits of others
#: for which a log goes on after one that is over.
_FAULTS, _MOST_FAULTS, _GOES_ON = {"cause", "error", "code"}, 2, 600.0
#: Logs of other programs in which such steps are looked for, and the bytes of their ends.
_MOST_PROGRAMS, _MOST_BYTES = 4, 1 << 20
#: Seconds by which such a log may begin after a failure: a later one is that of another job.
_BEFORE = 7200.0


def is_outlived(cluster: Cluster, seen: Seen) -> bool:
    """Return whether the training goes on after a failure: in its log, or in that of another program.

    The ranks of a training wait for each other in each step, so that none goes on without one of them.
    """
    if _goes_on_below(cluster.sources[seen.event.file], seen.event):
        return True
    if seen.event.time is None or seen.event.is_yearless or seen.time is None:
        return False
    programs = [file for file, one in enumerate(cluster.sources) if file != seen.event.file and not one.pid]
    return any(
        _goes_on_after(cluster.sources[file], seen.time + cluster.ahead.get(file, 0.0))
        for file in programs[:_MOST_PROGRAMS]
    )


def long_ago(cluster: Cluster, causes: Sequence[Cause]) -> list[Seen]:
    """Return the faults from long before the ends of their logs after which the job went on."""
    limit = max(cluster.waits.values(), default=0.0) + _GOES_ON
    used = {id(cause.seen) for cause in causes} | {id(cause.beside) for cause in causes}
    early = [
        one
        for one in cluster.seen
        if one.time is not None and cluster.ends.get(one.event.file, 0.0) - one.time > limit
        if one.event.message.kind in _FAULTS and id(one) not in used
    ]
    gone = {one.actor for one in early[:_MOST_FAULTS] if is_outlived(cluster, one)}
    return [one for one in early if one.actor in gone]


def _goes_on_below(source: Source, event: Event) -> bool:
    """Whether the training in a log has further steps below one of its lines."""
    if not source.is_program_log or source.is_run or event.line < 1:
        return False
    before, after, read = 0, set[int](), 0
    earlier: deque[bytes] = deque(maxlen=_BLOCKS_BEFORE)
    for block in LogReader(source.path).blocks():
        if block.line + block.data.count(b"\n") < event.line:
            earlier.append(block.data)
            continue
        at = _offset(block.data, event.line - block.line)
        if not read:
            before = _last_step([*earlier, block.data[:at]])
        after.update(int(found[1]) for found in STEP.finditer(block.data, at))
        if len(after) >= _DIFFERENT or (after and max(after) >= before + _FURTHER and len(after) >= _FURTHER):
            return True
        read += len(block.data) - at
        if read > _WITHIN:
            break
    return False


def _last_step(parts: Sequence[bytes]) -> int:
    """Return the number of the last step in the parts of a log before a line, 0 if none has one."""
    for part in reversed(parts):
        if found := STEP.findall(part):
            return int(found[-1])
    return 0


def _goes_on_after(source: Source, time: float) -> bool:
    """Whether the training in a log has steps that were written long after a time."""
    if not source.is_program_log or source.is_run or (begin_of(source) or 0.0) > time + _BEFORE:
        return False
    after = set[int]()
    for _, text in texts_from_end(source, _MOST_BYTES):
        for found in STEP.finditer(text):
            if (at := time_in(text[: found.start()])) is None:
                continue
            if at <= time + _LATER:
                return False
            after.add(int(found[1]))
        if len(after) >= _DIFFERENT:
            return True
    return False


def _offset(data: bytes, lines: int) -> int:
    """Return where a line ends in a text: 0 for one before it, its length for one behind it."""
    if lines < 0:
        return 0
    at = -1
    for _ in range(lines + 1):
        at = data.find(b"\n", at + 1)
        if at < 0:
            return len(data)
    return at + 1
