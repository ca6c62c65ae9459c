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
#: ``Process 4711: python3 train.py --rank 3`` of py-spy begins a process; ``--local-rank`` is not the rank.
_PROCESS = re.compile(
    rb"^Process (?P<pid>\d{1,10}): ?(?:.{0,2000}?(?<!\S)--?(?:global[_-])?rank[ =](?P<rank>\d{1,6})\b)?"
)
#: The rank of the stacks below, as collectors write it: ``===== rank 3 (host a) =====``, ``--- rank 3 ---``,
#: ``# Rank 3:``, ``==> stacks/rank3.txt <==``; or ``rank 3:`` alone.
_HEADER = re.compile(
    rb"^\s{0,8}(?:(?:[=#*~+>|<][=\-#*~+>|<]{0,79}\s{0,4}|-{2,80}>?\s{1,4})"
    rb"(?:[\w.@/][\w.@=/-]{0,63}[ ,:]{1,3}){0,4}?(?:[\w.@/-]{0,80}[/_.-]|\[)?"
    rb"(?<!local[ _-])(?<!node[ _-])(?<![a-z0-9])rank[ _:=#-]{0,2}(?P<rank>\d{1,6})(?:\.\w{1,8}|\])?"
    rb"(?:[ ,:;/|]{0,3}[(\[][^\n()]{0,120}[)\]]"
    rb"|[ ,;|]{1,3}(?:host|node|pid|on|at|device|local)\b[^\n]{0,120}?"
    rb"| ?[:/,|] ?[\w.@-]{1,64})?[\s=\-#*~+<>|:]{0,80}"
    rb"|\[?rank[ _:=#-]{0,2}(?P<alone>\d{1,6})\]?(?: ?\([^\n()]{0,120}\))?:?\s{0,8})$",
    re.IGNORECASE,
)
#: A thread: py-spy names the main one; of faulthandler's, it is the last one of a process that is not of
#: ``threading``.
_MAIN = re.compile(rb"^Thread .{0,80}MainThread")
_OF_FAULTHANDLER = re.compile(rb"^(?:Thread|Current thread) 0x[0-9a-f]{1,20}\b")
_BOOTSTRAP = re.compile(rb"threading\.py\", line \d{1,7} in _bootstrap\b")
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
_MOST_LOGS, _MOST_BYTES, _MOST_OF_STACKS = 256, 1 << 16, 1 << 22
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
    return isinstance(writer, str), int(str(writer).partition(" ")[0])


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
        lines = _lines(source)
        if not any(_THREAD.match(text) for _, text in lines):
            continue
        for writer, stack in _of_file(file, source, lines, ranks).items():
            is_other = isinstance(writer, str) and writer in found  # Two hosts have processes of one id.
            found[f"{writer} in {source.shown}" if is_other else writer] = stack
    return found


def _lines(source: Source) -> Sequence[tuple[int, bytes]]:
    """Return the end of a log: more of it if it has the stacks of several processes."""
    lines = list(reversed([*texts_from_end(source, _MOST_BYTES)]))
    several = sum(1 for _, text in lines if _PROCESS.match(text) or _HEADER.match(text)) > 1
    return list(reversed([*texts_from_end(source, _MOST_OF_STACKS)])) if several else lines


def _of_file(
    file: int, source: Source, lines: Sequence[tuple[int, bytes]], ranks: Mapping[str, int]
) -> Mapping[_Writer, Stack]:
    """Return the stacks of the main threads in a file, by the ranks that it names.

    Args:
        ranks: The ranks of processes that other lines name.
    """
    found: dict[_Writer, Stack] = {}
    owner = _Owner(source.rank, ranks, has_headers=_has_headers(source, lines))
    frames: list[tuple[int, bytes]] = []
    thread = b""
    for number, text in (*lines, (0, b"Thread 0 (end)")):
        if _FRAME.match(text):
            frames.append((number, text))
            continue
        is_main = frames and owner.rank is not None and _is_main(thread, frames[-1][1])
        if is_main and owner.rank is not None and (stack := _stack(file, frames)) is not None:
            found[owner.rank] = stack
        if _THREAD.match(text):
            thread, frames = text, []
        elif frames:
            thread, frames = b"", []
        owner.read(text)
    return found


def _is_main(thread: bytes, outermost: bytes) -> bool:
    """Return whether a thread is the main one of its process; a helper that writes the dump is none.

    Of several such threads of a process, the last one is it: faulthandler begins with the newest.
    """
    if _OF_FAULTHANDLER.match(thread):
        return not _BOOTSTRAP.search(outermost)
    return _MAIN.match(thread) is not None


def _has_headers(source: Source, lines: Sequence[tuple[int, bytes]]) -> bool:
    """Return whether headers say the ranks: those of several, or of one in a file whose name has none."""
    named = {_headed(text) for _, text in lines} - {None}
    return len(named) > (1 if source.rank is not None else 0)


def _headed(text: bytes) -> int | None:
    """Return the rank of a header, None for another line."""
    found = _HEADER.match(text)
    return int(found["rank"] or found["alone"]) if found is not None else None


class _Owner:
    """The rank, or the id of the process, whose stacks follow a line; None if that is unknown."""

    def __init__(self, of_file: int | None, ranks: Mapping[str, int], *, has_headers: bool) -> None:
        self.rank: _Writer | None = of_file
        self._of_file, self._ranks, self._has_headers = of_file, ranks, has_headers
        self._pid: str | None = None
        self._is_below = False

    def read(self, text: bytes) -> None:
        """Take what a line says: a header, or the beginning of a process."""
        if self._has_headers and (rank := _headed(text)) is not None:
            self.rank, self._pid, self._is_below = rank, None, True
        elif (process := _PROCESS.match(text)) is not None:
            pid = process["pid"].decode()
            if self._is_below:
                self._below_header(pid)
            elif process["rank"] is not None:
                self.rank = int(process["rank"])
            else:
                self.rank = self._of_file if self._of_file is not None else self._ranks.get(pid, pid)

    def _below_header(self, pid: str) -> None:
        """Take the first process below a header for that of the rank: others are its children."""
        if self._pid not in {None, pid}:
            self.rank = None
        self._pid = self._pid or pid


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
