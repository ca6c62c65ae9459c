"""Whether every launcher of a job ended with exit code 0: then no error in the logs has ended it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain.reader import STDIN, LogReader, from_end

if TYPE_CHECKING:
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Seen
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
#: Lines that may follow the exit code, and lines in which the launcher is named.
_LAST_LINES, _FIRST_LINES = 10, 40
#: Bytes at the end of a screen in which a job says that it is complete.
_MOST_BYTES = 1 << 20


def lines(cluster: Cluster) -> list[Seen]:
    """Return the lines with the exit code 0 of every launcher; [] if one failed or the logs do not say it."""
    last: dict[int, Seen] = {}
    for one in cluster.seen:
        if one.event.message.id in _EXIT_CODES:
            last[one.event.file] = max(last.get(one.event.file, one), one, key=lambda seen: seen.event.line)
    if not last or any(int(one.event.fields["status"]) for one in last.values()):
        return []
    end = max((cluster.ends.get(file, 0.0) for file in last), default=0.0)
    if any(_shows_a_failure(one, last, end) for one in cluster.seen):
        return []
    found = [_end_of_job(cluster.sources[file], one.event.line) for file, one in last.items()]
    is_all = all(is_end for is_end, _ in found) and any(is_complete for _, is_complete in found)
    return [one for _, one in sorted(last.items())] if is_all else []


def _shows_a_failure(one: Seen, last: dict[int, Seen], end: float) -> bool:
    """Whether an event says that a rank failed or gave up waiting, or is later than the launchers."""
    message = one.event.message
    if message.id in _FAILURES:
        return one.event.file not in last or one.event.line < last[one.event.file].event.line
    if message.kind in {"verdict", "timeout"}:
        return True
    is_later = one.since is not None and bool(end) and one.since > end + 60.0
    return message.kind in {"cause", "error"} and is_later


def _end_of_job(source: Source, number: int) -> tuple[bool, bool]:
    """Return whether a line ends the screen of a launcher, and whether its job says it is complete."""
    if not source.path or source.path == STDIN:
        return False, False
    first = next(LogReader(source.path).blocks(), None)
    head = first.data.split(b"\n", _FIRST_LINES)[:_FIRST_LINES] if first is not None else []
    last = [one for one in from_end(source.path, source.extent, _MOST_BYTES) if one[1].strip()]
    is_end = bool(last) and number > last[0][0] - _LAST_LINES
    is_complete = any(_COMPLETE.search(text) for _, text in last)
    return is_end and _LAUNCHER.search(b"\n".join(head)) is not None, is_complete
