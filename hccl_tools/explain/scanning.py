"""Scan all logs, with all cores if there is much to read: a process reads a log, or a part of a long one."""

from __future__ import annotations

import multiprocessing
import os
from itertools import pairwise
from typing import TYPE_CHECKING

from hccl_tools.explain.alike import Kept
from hccl_tools.explain.reader import STDIN, Part, begin_unpacking, is_packed
from hccl_tools.explain.scanner import Scan, Scanner
from hccl_tools.processes import run_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hccl_tools.explain.knowledge.message import Message
    from hccl_tools.explain.sources import Source

    #: The path of a log, its index, and its part, None for all of it.
    _Task = tuple[str, int, Part | None]

#: Below this size one process reads all logs: starting others takes longer.
_MANY_BYTES = 1 << 25
#: A part of a log is at least this long.
_SHORTEST_PART = 1 << 25


def scans(
    logs: Sequence[Source], extra: Sequence[Message], progress: Callable[[int, int], None] | None
) -> Iterator[Scan]:
    """Yield what each log contains, in the order of the logs.

    Args:
        extra: The user's own messages.
        progress: Called with the number of logs that were read and of all logs.
    """
    sizes = [about.st_size if (about := run_files.status(log.path)) else 0 for log in logs]
    cores = len(os.sched_getaffinity(0))
    tasks = [_tasks(log, index, sizes[index], cores) for index, log in enumerate(logs)]
    workers = min(cores, sum(map(len, tasks)))
    if workers > 1 and sum(sizes) > _MANY_BYTES and not any(log.path == STDIN for log in logs):
        begin_unpacking(multiprocessing.get_context("fork").Value("q", 0))
        with multiprocessing.get_context("fork").Pool(workers, _start, (extra,)) as pool:
            found = pool.imap(_scan, [task for of_log in tasks for task in of_log], chunksize=1)
            for done, of_log in enumerate(tasks, 1):
                scan = joined([next(found) for _ in of_log])
                if progress is not None:
                    progress(done, len(logs))
                yield scan
        return
    begin_unpacking()
    scanner = Scanner(extra)
    for index, log in enumerate(logs):
        if progress is not None:
            progress(index, len(logs))
        yield scanner.scan(log.path, index)


def _tasks(log: Source, index: int, size: int, cores: int) -> list[_Task]:
    """Return a log as tasks: in parts for all cores if it is long; a compressed one has no parts."""
    parts = min(cores, size // _SHORTEST_PART)
    if parts < 2 or is_packed(log.path):
        return [(log.path, index, None)]
    ends = [size * number // parts for number in range(parts + 1)]
    return [(log.path, index, Part(begin, end)) for begin, end in pairwise(ends)]


def joined(parts: Sequence[Scan]) -> Scan:
    """Return the parts of a log as a whole: with the numbers of its lines, and as many events as of one."""
    if len(parts) == 1:
        return parts[0]
    kept, lines = Kept(), 0
    unknown = None
    for part in parts:
        if unknown is None and part.unknown is not None:
            unknown = part.unknown[0] + lines, part.unknown[1]
        kept.add(event._replace(line=event.line + lines) for event in part.events)
        lines += part.lines
    times = [part.last_time for part in parts if part.last_time is not None]
    return Scan(
        kept.kept,
        sum(part.size for part in parts),
        next((part.note for part in parts if part.note), ""),
        parts[0].first_time,
        times[-1] if times else None,
        lines,
        parts[0].pid,
        unknown,
        all(part.is_whole for part in parts),
    )


_scanner: Scanner | None = None


def _start(extra: Sequence[Message]) -> None:
    global _scanner  # noqa: PLW0603  (one per worker process)
    _scanner = Scanner(extra)


def _scan(task: _Task) -> Scan:
    return (_scanner or Scanner()).scan(*task)
