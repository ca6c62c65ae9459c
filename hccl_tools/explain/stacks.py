"""Stacks of ranks that hang (py-spy, faulthandler): a rank that is not where the others wait."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain.cause import Cause
from hccl_tools.explain.events import Event, Seen
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.outliers import unusual
from hccl_tools.explain.screens import texts_from_end
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.notation.phrases import and_more
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.explain.cause import Case
    from hccl_tools.explain.sources import Source

    #: A rank, or the id of a process of which no line says the rank.
    _Writer = int | str

_ELSEWHERE = "HCM996"
#: ``Process 4711: python3 train.py --rank 3`` of py-spy, which begins a process.
_PROCESS = re.compile(
    rb"^Process (?P<pid>\d{1,10}): ?(?:.{0,2000}?--?(?:global[_-])?rank[ =](?P<rank>\d{1,6})\b)?"
)
#: A thread: py-spy names it; of faulthandler, the last one of a process is usually the main thread.
_MAIN = re.compile(rb"^(?:Thread .{0,80}MainThread|Current thread 0x)")
_THREAD = re.compile(rb"^(?:Thread|Current thread) (?:0x)?[0-9a-f]{1,20}\b")
#: A frame: ``    read (reader.py:57)``, ``  File "reader.py", line 57 in read``.
_FRAME = re.compile(
    rb"^ {2,8}(?:(?P<name>[\w.<>]{1,100}) \((?P<file>[^():\n]{1,300}):(?P<line>\d{1,7})\)"
    rb"|File \"(?P<path>[^\"\n]{1,300})\", line (?P<number>\d{1,7}) in (?P<function>[\w.<>]{1,100}))"
)
#: A call in which a rank waits for the others.
_COLLECTIVE = re.compile(
    rb"^_?(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|monitored_barrier|broadcast|barrier)"
    rb"(?:_into_tensor|_tensor|_coalesced|_object|_single|_multigpu|_base|_list)?$|^batch_isend_irecv$",
    re.IGNORECASE,
)
#: Names that such a call has in a library of collectives alone: others send and receive, too.
_COMMON = re.compile(rb"^(?:reduce|gather|scatter|isend|irecv|recv|send)(?:_object|_tensor|_list)?$")
_OF_COLLECTIVES = re.compile(
    rb"distributed_c10d|torch/distributed/|mindspore/communication|paddle/distributed"
)
#: Waits for the device, whose work may be a collective operation.
_DEVICE_WAIT = re.compile(rb"^(?:synchronize|_?npu_synchronize|wait_stream)$")
#: Frames of the interpreter and of libraries, which do not say what the program does.
_LIBRARY = re.compile(
    rb"threading\.py|queue\.py|selectors\.py|socket\.py|connection\.py|site-packages/torch/(?:utils|nn)/"
)
#: Folders of what is not the program's own.
_INSTALLED = re.compile(rb"/(?:site|dist)-packages/|/lib(?:64)?/python\d")
#: Logs whose ends are read, and the bytes of an end.
_MOST_LOGS, _MOST_BYTES = 256, 1 << 16
_MOST_NAMED = 8


class Stack(NamedTuple):
    """What a rank does: the collective in which it waits, or the innermost frame of its program."""

    collective: str
    frame: str
    file: int
    line: int
    text: str
    is_of_device: bool


def elsewhere(case: Case) -> list[Cause]:
    """Return the ranks that are in no collective operation while most others wait in one."""
    found = of_ranks(case)
    waiting = {rank: one for rank, one in found.items() if one.collective}
    odd = sorted(set(found) - set(waiting), key=_order) or _in_another(waiting)
    if not odd or len(odd) > len(set(waiting) - set(odd)):
        return []
    waiting = {rank: one for rank, one in waiting.items() if rank not in odd}
    usual = min(waiting, key=_order)
    places = tuple(case.cluster.places.find(Place(rank)) for rank in odd if isinstance(rank, int))
    are = "is" if len(odd) == 1 else "are"
    others = _writers(list(waiting))
    reason = (
        f"{_writers(odd)} {are} in {found[odd[0]].frame}, {others}"
        f" {'waits' if len(waiting) == 1 else 'wait'} in {waiting[usual].collective}"
    )
    own, beside = seen(case, odd[0], found[odd[0]]), seen(case, usual, waiting[usual])
    return [Cause(messages()[_ELSEWHERE], "compared", places, own, reason, (), beside)]


def _order(writer: _Writer) -> tuple[bool, int]:
    return isinstance(writer, str), int(writer)


def _writers(writers: Sequence[_Writer]) -> str:
    """Return ranks, and processes of which no line says the rank, in words."""
    ranks = ranks_text([Place(rank) for rank in writers if isinstance(rank, int)])
    pids = [pid for pid in writers if isinstance(pid, str)]
    words = f"process{'' if len(pids) == 1 else 'es'} {and_more(pids, _MOST_NAMED)}" if pids else ""
    return f"{ranks} and {words}" if ranks and words else ranks or words


def _in_another(waiting: Mapping[_Writer, Stack]) -> list[_Writer]:
    """Return the ranks that wait in another operation than most: a wait for the device may be in any."""
    names = {str(rank): one.collective for rank, one in waiting.items() if not one.is_of_device}
    odd = unusual(names)
    return sorted((writer for writer in waiting if str(writer) in odd), key=_order)


def of_ranks(case: Case) -> Mapping[_Writer, Stack]:
    """Return the stacks of the ranks' main threads: of the evidence before the end, and of the logs."""
    found: dict[_Writer, Stack] = {}
    ranks = {pid: rank for (_, pid), rank in case.cluster.ranks.items()}
    ranks = ranks if len(ranks) == len(case.cluster.ranks) else {}  # Two hosts have processes of one id.
    for host in case.cluster.evidence:
        for one in host.ranks:
            frames = [(0, line.encode(errors="surrogateescape")) for line in one.stack]
            if frames and (stack := _stack(-1, frames)) is not None:
                found[one.rank] = stack
    read = 0
    for file, source in enumerate(case.cluster.sources):
        if not source.is_program_log:
            continue
        read += 1
        if read > _MOST_LOGS:
            break
        lines = list(reversed([*texts_from_end(source, _MOST_BYTES)]))
        if any(_THREAD.match(text) for _, text in lines):
            found |= _of_file(file, source, lines, ranks)
    return found


def _of_file(
    file: int, source: Source, lines: Sequence[tuple[int, bytes]], ranks: Mapping[str, int]
) -> Mapping[_Writer, Stack]:
    """Return the stacks of the main threads in a file: of the rank that its name or the command has.

    Args:
        ranks: The ranks of processes that other lines name.
    """
    found: dict[_Writer, Stack] = {}
    rank: _Writer | None = source.rank
    frames: list[tuple[int, bytes]] = []
    is_main = False
    for number, text in (*lines, (0, b"Thread 0 (end)")):
        if (process := _PROCESS.match(text)) is not None:
            pid = process["pid"].decode()
            own = source.rank if source.rank is not None else ranks.get(pid, pid)
            rank = int(process["rank"]) if process["rank"] is not None else own
        if (is_thread := _THREAD.match(text) is not None) or not _FRAME.match(text):
            if is_main and frames and rank is not None and (stack := _stack(file, frames)) is not None:
                found[rank] = stack
            if is_thread:
                is_main, frames = _MAIN.match(text) is not None, []
            elif frames:
                is_main, frames = False, []
        else:
            frames.append((number, text))
    return found


def _stack(file: int, frames: Sequence[tuple[int, bytes]]) -> Stack | None:
    """Return what the frames of a thread say, the innermost one first."""
    collective, first, is_of_device = "", None, False
    own: tuple[int, bytes] | None = None
    for number, text in frames:
        frame = _FRAME.match(text)
        if frame is None:
            continue
        name, path = frame["name"] or frame["function"], frame["file"] or frame["path"]
        is_device_s = not collective and _DEVICE_WAIT.match(name) is not None
        is_theirs = _OF_COLLECTIVES.search(path) is not None
        is_call = _COLLECTIVE.match(name) if not collective or is_theirs else None
        if is_device_s or is_call or (is_theirs and _COMMON.match(name)):
            collective, is_of_device = name.decode(), is_device_s
            first = number, text
        if first is None and not _LIBRARY.search(path):
            first = number, text
        if own is None and path.startswith(b"/") and not _INSTALLED.search(path):
            own = number, text
    first = first if collective or own is None else own
    if first is None:
        return None
    number, text = first
    return Stack(collective, _shown(text), file, number, text.decode(errors="replace").strip(), is_of_device)


def _shown(text: bytes) -> str:
    frame = _FRAME.match(text)
    if frame is None:
        return ""
    name, path = frame["name"] or frame["function"], frame["file"] or frame["path"]
    where = f"{path.decode(errors='replace')}:{(frame['line'] or frame['number']).decode()}"
    return f"{name.decode()} ({where})"


def seen(case: Case, rank: _Writer, stack: Stack) -> Seen | None:
    """Return the line of a log that shows a stack, None if it is in no log."""
    if stack.file < 0:
        return None
    event = Event(messages()[_ELSEWHERE], {}, (), stack.file, stack.line, text=stack.text)
    if isinstance(rank, str):
        return Seen(event, Place(), f"process {rank}")
    return Seen(event, case.cluster.places.find(Place(rank)), f"rank {rank}")
