"""What launchers, containers and terminals add to the lines of a program, and the steps in these lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain.events import time_in
from hccl_tools.explain.reader import from_end
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.explain.sources import Source


_ESCAPE = b"\x1b"
#: Colours and other commands to a terminal.
_TERMINAL = re.compile(
    rb"\x1b(?:\[[0-9;:?]{0,32}[ -/]?[@-~]|\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78cDEHMNOZ])"
)
#: A progress bar of tqdm that the program has written over: ``45%|####   | 45/100 [00:01<00:01, 30.1it/s]``.
_BAR = b"%|"
_BARS = re.compile(rb"^[^\n|]{0,200}\d%\|[^|\n]{0,400}\|[^\[\n]{0,100}\[[^\]\n]{0,200}\]")
_NAME = rb"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}"
#: The host that Ray names if it is another one.
_OF_RAY = rb"(?:, ip=(?P<host>[0-9A-Fa-f.:]{2,45}))?\) ?"
#: The prefixes of a line, each with the rank, the host or the process that it names.
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        # kubectl logs --prefix: the pod is the host of its ranks.
        rb"\[pod/(?P<host>" + _NAME + rb")/" + _NAME + rb"\] ",
        # docker service logs, then docker compose: "worker-1  | ", in which a number ends the name.
        _NAME + rb"\.\d{1,6}\.\w{1,40}@(?P<host>" + _NAME + rb") {1,100}\| ?",
        rb"(?P<host>[A-Za-z0-9][A-Za-z0-9_.-]{0,200}[_-]\d{1,6}) {1,100}\| ?",
        # Times that kubectl, docker and mpirun write before each line.
        rb"\d{4}-\d\d-\d\dT[0-9:.,]{8,18}(?:Z|[+-]\d\d:?\d\d)? ",
        rb"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=\[| )",
        # mpirun --tag-output, in Open MPI 4 and 5; mpiexec -prepend-rank or -l of MPICH.
        rb"\[\d{1,9},(?P<rank>\d{1,7})\](?:<std\w{2,6}>)?:? ?",
        rb"\[prterun-[^\]\s@]{1,255}@\d{1,9},(?P<rank>\d{1,7})\](?:<std\w{2,6}>)?:? ?",
        rb"\[(?P<rank>\d{1,5})\] (?=[^\d\s])",
        # torchrun, msrun and programs, which may write the time before it.
        rb"20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})? \[rank ?(?P<rank>\d{1,7})\]:? ",
        rb"\[(?:rank ?|default)(?P<rank>\d{1,7})\](?::| ) ?",
        # pdsh, which DeepSpeed uses: the host before a rank.
        rb"(?P<host>" + _NAME + rb"): (?=\[(?:rank ?|default)\d)",
        # srun -l.
        rb" {0,5}(?P<rank>\d{1,6}): ",
        # vLLM: level, time, file and line.
        rb"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[[\w./-]{1,80}:\d{1,6}\] ",
        # Ray names the process; a worker of vLLM its rank, too.
        rb"\([A-Za-z_][\w.<>-]{0,80}(?: rank=(?P<rank>\d{1,7}))? pid=(?P<pid>\d{1,10})" + _OF_RAY,
    )
)
#: A line has at most this many prefixes: of a container, a time, a launcher and a program.
_MOST_PREFIXES = 5


class Prefix(NamedTuple):
    """What the prefixes of a line say.

    Attributes:
        length: Bytes of the line that are prefixes.
        rank: The rank that wrote the line, None if no prefix names it.
        host: The host, pod or container, "" if no prefix names it.
        pid: The process, "" if no prefix names it.
    """

    length: int
    rank: int | None
    host: str
    pid: str


def plain(data: bytes) -> bytes:
    """Return a text without the commands to a terminal; its line breaks stay."""
    return _TERMINAL.sub(b"", data) if _ESCAPE in data else data


def prefix(line: bytes) -> Prefix:
    """Return what the prefixes of a line say, the innermost of each kind."""
    length, rank, host, pid = 0, None, "", ""
    if _BAR in line and (bar := _BARS.match(line)) is not None:
        length = bar.end()
    for _ in range(_MOST_PREFIXES):
        found = next((match for one in _PREFIXES if (match := one.match(line, length)) is not None), None)
        if found is None:
            break
        length = found.end()
        fields = found.groupdict()
        rank = int(fields["rank"]) if fields.get("rank") else rank
        host = fields["host"].decode() if fields.get("host") else host
        pid = fields["pid"].decode() if fields.get("pid") else pid
    return Prefix(length, rank, host, pid)


def texts_from_end(source: Source, most: int) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and texts of the lines of a log from the last one on, without empty ones."""
    for number, line in from_end(source.path, source.extent, most):
        for text in reversed(plain(line).split(b"\r")):
            if text.strip():
                yield number, text


#: The number of a step, in a line that a training writes for each of them.
STEP = re.compile(
    rb"\b(?:step|iter(?:ation)?|batch)s?['\"]?[ =:#\[\]]{1,14}(\d{1,9})\b(?! ?(?:ms|s)\b)", re.IGNORECASE
)


def steps_at_end(source: Source, most: int) -> dict[int, float]:
    """Return the times of the steps in the end of a log whose lines have one."""
    found: dict[int, float] = {}
    for _, text in texts_from_end(source, most):
        if (step := STEP.search(text)) is not None and (time := time_in(text[: step.start()])) is not None:
            found[int(step[1])] = time
    return found
