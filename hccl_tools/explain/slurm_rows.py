"""The rows of ``sacct``: which one is about this job, and when and how it ended."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hccl_tools.explain.events import time_in
from hccl_tools.explain.reader import LogReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.sources import Source

COMPLETED = "HCM918"
#: A row of a job that the scheduler or a user ended.
ENDED = {"HCM919", "HCM925", "HCM926"}
#: The rows of steps that failed on a node, with their states: others may wait until a time limit after that.
_OF_NODES = {"HCM757": "OUT_OF_ME", "HCM758": "NODE_FAIL"}
ROWS = {COMPLETED, *_OF_NODES, *ENDED}
#: Seconds between the end of a job and the last line of its ranks, and by which a clock can be behind.
_AFTER, _BEFORE = 900.0, 120.0
_WAITED = 3600.0
#: The row of squeue of a job that runs, and the number of a job in the name of its log.
_QUEUE = "squeue"
_RUNS = re.compile(
    rb"^[ \t]{0,20}(\d{1,10})(?:_\d{1,6})?[ \t][^\n]{0,120}?[ \t]R[ \t]{1,20}"
    rb"(?:\d{1,3}-)?\d{1,2}:\d\d(?::\d\d)?[ \t]",
    re.MULTILINE,
)
_JOB = re.compile(r"(?:^|[/_.-])(?:slurm|job|j)[-_.]?(\d{2,10})(?=[._-])")
_NODES, _STATE, _HEAD = "NodeList", "State", "JobID"


def at_their_end(seen: Sequence[Seen], sources: Sequence[Source]) -> list[Seen]:
    """Return the events, of which the rows have the time at which their job ended, and the node of a step."""
    return [_at_end(one, sources) if one.event.message.id in ROWS else one for one in seen]


def _at_end(row: Seen, sources: Sequence[Source]) -> Seen:
    end = time_in(row.event.fields["moment"].encode())
    row = row._replace(event=row.event._replace(time=end), time=end, since=end, until=end)
    node = _node(row, sources[row.event.file]) if row.event.message.id in _OF_NODES else ""
    return row._replace(place=row.place._replace(host=node)) if node else row


def _node(row: Seen, source: Source) -> str:
    """Return the only node of a row, by the heads of the columns before the state; "" if none is known."""
    block = next(LogReader(source.path).blocks(), None) if source.is_file else None
    lines = block.data.decode(errors="replace").split("\n", row.event.line)[: row.event.line] if block else []
    heads = next((words for line in reversed(lines) if _HEAD in (words := line.split())), [])
    words = row.event.text.split()
    if _NODES not in heads or _STATE not in heads or heads.index(_NODES) > heads.index(_STATE):
        return ""
    state = next(
        (at for at, word in enumerate(words) if word.startswith(_OF_NODES[row.event.message.id])), None
    )
    node = words[heads.index(_NODES)] if state == heads.index(_STATE) else ""
    return node if node and "[" not in node and "," not in node else ""


def running(sources: Sequence[Source]) -> tuple[str, str]:
    """Return the job with a log of these that runs by the output of squeue, and the file and line of its row.

    A row has no text by which its line could be found in every log: files with the name of the tool are read.
    """
    own = _numbers(sources)
    for source in sources if own else ():
        if not source.is_file or _QUEUE not in os.path.basename(source.path).lower():
            continue
        block = next(LogReader(source.path).blocks(), None)
        for found in _RUNS.finditer(block.data) if block is not None else ():
            if (job := found[1].decode()) in own:
                number = block.data.count(b"\n", 0, found.start()) + 1 if block is not None else 1
                return job, f"{source.shown}:{number}"
    return "", ""


def _numbers(sources: Sequence[Source]) -> set[str]:
    return {found[1] for one in sources if (found := _JOB.search(one.path)) is not None}


class Objections:
    """Which rows are about another job than that whose logs these are.

    Args:
        ends: The last time in each file, by the number of the file.
    """

    def __init__(self, sources: Sequence[Source], ends: Mapping[int, float]) -> None:
        self._numbers = _numbers(sources)
        written = [end for file, end in ends.items() if sources[file].rank is not None or sources[file].pid]
        self._last = max(written, default=None)

    def to(self, row: Seen) -> str:
        """Return why a row is about another job, "" if its period is that of the logs.

        The number of the job in the name of a log says it, too.
        """
        if self._numbers:
            number = row.event.text.split()[0].partition(".")[0].partition("_")[0]
            return "" if number in self._numbers else "it is the row of another job"
        begin, last = time_in(row.event.text.encode()), self._last
        if last is None or begin is None or row.time is None:
            return "no log of a rank says when the job ran"
        waited = _WAITED if row.event.message.id in _OF_NODES else _BEFORE
        if begin - _BEFORE <= last <= row.time + waited and row.time - last <= _AFTER:
            return ""
        return "the job in the row did not end with these logs"
