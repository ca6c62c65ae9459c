"""Read the dumps of torch's flight recorder, JSON or a pickle: what each rank issued, and what has ended.

The forms are those of torch 2.13 (version 2.10 of the trace) and of torch_npu (2.4), which differ in the
names of operations: torch_npu's are in the stack frames. A pickle of another user is not read, and one of
this user may only have plain values.
"""

from __future__ import annotations

import os
import re
import zlib
from array import array
from collections import deque
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from hccl_tools import codec
from hccl_tools.codec import DecodeError
from hccl_tools.explain import plain_pickle
from hccl_tools.explain.reader import begin_unpacking, spend
from hccl_tools.explain.sources import EVIDENCE_KEY, GZIP, PICKLE, beginning
from hccl_tools.notation.phrases import and_more
from hccl_tools.processes import run_files
from hccl_tools.processes.stack_dump import is_of_user
from hccl_tools.records import Count, Index, NamedTuple, OsText, Size
from hccl_tools.runs.evidence import HostEvidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hccl_tools.explain.sources import Source

#: Bytes of a dump, and of the text with the members of a group.
_LARGEST, _LONGEST_RANKS = 1 << 26, 1 << 20
#: Members of all different groups in the dumps of a call: some hundred groups of the largest jobs.
_MOST_MEMBERS = 1 << 21
#: Characters of a name, of sizes and of types; they are parts of sentences.
_LONGEST_TEXT = 1000
#: Groups and peers of a rank that are compared; a rank of a large job has some dozens.
_MOST_GROUPS = 512
#: What has ended and is kept of each group, and the calls that have not ended.
_MOST_ENDED, _MOST_PENDING = 40, 400
#: The number at the end of a name: torch writes ``PREFIX<rank>``.
_LAST_NUMBER = re.compile(r"(\d{1,6})(?:\.(?:json|pkl|pickle|trace|bin|dump))?(?:\.gz)?$")
_RESTART = re.compile(r"\.restart_(\d{1,6})\.json$")
#: Parts of names by which variants of one operation differ.
_VARIANT = re.compile(r"_?(?:base|into_tensor|tensor|single|coalesced|uneven)$")
_BACKEND = re.compile(r"^(?:nccl|hccl|gloo|xccl|mpi|ucc|c10d):")
_MOST_RANKS = 1 << 17
#: Folders that a note names.
_MOST_FOLDERS = 4
#: The sizes of inputs are lists in lists in a list.
_DEEPEST = 8
#: The members of a group as text: ``[0, 1]``, ``{0,1}``.
_RANKS = re.compile(r"[\[({][0-9, ]*[\])}]")
#: The two ranks are numbers in the group, the own one first.
_TRANSFER = re.compile(r"\b(send|recv) (\d{1,6})(?:->|<-)(\d{1,6})$")


class Call(NamedTuple):
    """A collective that a rank has issued.

    Attributes:
        group: The name of its group.
        number: Its number in the group, from 1.
        name: The operation; "" if unknown.
        sizes: The sizes of its inputs: ``[[4]]``.
        created: When it was issued, in ns of the host's clock.
        frame: The innermost line of the program that issued it: ``step (train.py:21)``; "" if unknown.
        state: ``scheduled``, ``started`` or ``completed``; without times of the device none is ``started``.
    """

    group: OsText
    number: Size
    name: OsText = ""
    sizes: OsText = ""
    dtypes: OsText = ""
    is_done: bool = False
    created: Size = 0
    frame: OsText = ""
    state: OsText = ""

    @property
    def kind(self) -> str:
        """The operation without what variants of it differ in: ``allgather``."""
        return _VARIANT.sub("", self.name.lower().strip("_")).replace("_", "")


class Group(NamedTuple):
    """A process group as a rank knows it.

    Attributes:
        title: Its description: ``tp0``; its name without one.
        ranks: Its members; () if unknown.
        issued: The number of the last collective that the rank has issued, -1 if unknown.
        completed: The number of the last one that has ended, -1 if unknown.
    """

    name: OsText
    title: OsText
    ranks: tuple[Index, ...] = ()
    issued: Index = -1
    completed: Index = -1


class Transfer(NamedTuple):
    """The sends to another rank, or the receives from it, in a group.

    Attributes:
        kind: ``send`` or ``recv``.
        issued: Their number in the dump.
        pending: The number of those that have not ended.
        is_whole: Whether the dump has all calls from the first one on.
        sizes: What the first one that has not ended sends or receives.
    """

    group: OsText
    kind: str
    peer: Index
    issued: Count
    pending: Count
    is_whole: bool
    sizes: OsText = ""


class Trace(NamedTuple):
    """What a rank has issued; ``shown`` is where that was read.

    ``taken`` is when the dump was written, in ns of the host's clock, 0 if unknown.
    """

    rank: Index
    shown: OsText
    groups: tuple[Group, ...] = ()
    calls: tuple[Call, ...] = ()
    taken: Size = 0
    transfers: tuple[Transfer, ...] = ()


class Dumps(NamedTuple):
    """What dumps and evidence in files say; ``sources`` are their files, ``files`` those of evidence."""

    traces: list[Trace]
    evidence: list[HostEvidence]
    notes: list[str]
    sources: list[Source]
    files: list[str]

    def add(self, traces: Iterable[Trace], evidence: Iterable[HostEvidence]) -> None:
        """Add what another host has; a trace of a rank that is known already is the same."""
        known = {trace.rank for trace in self.traces}
        self.traces.extend(trace for trace in traces if trace.rank not in known)
        self.evidence.extend(evidence)


def read(sources: Iterable[Source]) -> Dumps:
    """Return what the dumps and the evidence of the last start say; what cannot be read costs a note."""
    found, members = Dumps([], [], [], [], []), _Members()
    begin_unpacking()
    ordered = sorted(sources, key=lambda one: _restart(one.path))
    last = _restart(ordered[-1].path) if ordered else 0
    of_folder: dict[str, dict[int, tuple[Trace, Source]]] = {}
    for source in ordered:
        if _restart(source.path) < last:
            continue
        try:
            data = _content(source.path)
            if isinstance(data, HostEvidence):
                found.evidence.append(data)
                found.sources.append(source)
                found.files.append(source.shown)
                continue
            traces = [_trace(*each, source, members) for each in _each(data)]
            of_folder.setdefault(os.path.dirname(source.path), {}).update(
                {one.rank: (one, source) for one in traces}
            )
        except (OSError, zlib.error, DecodeError, _RefusedError) as error:
            reason = run_files.reason(error) if isinstance(error, OSError) else str(error)
            found.notes.append(f"{source.shown} was not read: {reason}")
    found.notes.extend(filter(None, [members.note]))
    for _, (trace, source) in sorted(_of_one_job(of_folder, found.notes).items()):
        found.traces.append(trace)
        found.sources.append(source)
    return found


def _of_one_job(
    folders: Mapping[str, dict[int, tuple[Trace, Source]]], notes: list[str]
) -> dict[int, tuple[Trace, Source]]:
    """Return the dumps of all folders, or of the one with most ranks if two have dumps of one rank."""
    joined: dict[int, tuple[Trace, Source]] = {}
    for of_rank in folders.values():
        joined |= of_rank
    if len(joined) == sum(map(len, folders.values())):
        return joined
    chosen = max(folders, key=lambda folder: len(folders[folder]))
    others = [folder for folder in folders if folder != chosen]
    have = f"{and_more(others, _MOST_FOLDERS)} {'has' if len(others) == 1 else 'have'}"
    notes.append(
        f"the dumps in {chosen} are explained; {have} dumps of the same ranks, of another job or time:"
        " explain each folder alone"
    )
    return folders[chosen]


def _restart(path: str) -> int:
    """Return the number of the restart in the name of a file."""
    name = _RESTART.search(path)
    return int(name[1]) if name else 0


class _RefusedError(Exception):
    """Why a dump is not read."""


def _content(path: str) -> Any:
    with open(run_files.open_read(path), "rb") as file:
        about = os.fstat(file.fileno())
        data = beginning(file, _LARGEST + 1)
        file.seek(0)
        if file.read(len(GZIP)) == GZIP and not spend(len(data), file.fileno()):
            raise _RefusedError("the compressed files before it unpack to too many bytes")
    if len(data) > _LARGEST:
        raise _RefusedError(f"it is larger than {_LARGEST >> 20} MiB")
    if not data.startswith(PICKLE):
        value = codec.parse(data)
        if EVIDENCE_KEY in data and isinstance(value, dict) and "entries" not in value:
            return codec.decode(HostEvidence, value, strict=False)
        return value
    if about.st_uid != os.geteuid():
        raise _RefusedError("it is a pickle of another user")
    try:
        return plain_pickle.load(data)
    except plain_pickle.NotPlainError as error:
        raise _RefusedError(f"it is no pickle of plain values ({error})") from None


def _each(data: Any) -> Iterable[tuple[int, Any]]:
    """Yield the dumps in a file, each with the rank that is its key, -1 without: one, a list, or by rank."""
    values = list(data.values()) if isinstance(data, dict) else []
    if isinstance(data, list):
        yield from ((-1, one) for one in data)
    elif values and all(isinstance(one, dict) and "entries" in one for one in values):
        for key, one in data.items():
            number = _LAST_NUMBER.search(str(key))
            yield int(number[1]) if number else -1, one
    else:
        yield -1, data


class _Members:
    """The members of the groups of all dumps; ``note`` is a sentence once there are too many.

    Equal lists are one tuple. They are known by their bytes: other users can choose numbers of which all
    tuples have one hash.
    """

    def __init__(self) -> None:
        self.note = ""
        self._known: dict[bytes, tuple[int, ...]] = {}
        self._left = _MOST_MEMBERS

    def of(self, value: Any) -> tuple[int, ...]:
        """Return the members in a text or a list, () if they are unknown."""
        ranks = _ranks(value)
        key = array("q", ranks).tobytes()
        if (known := self._known.get(key)) is not None:
            return known
        if len(ranks) > self._left:
            self.note = f"not all members of the groups were read: the dumps have more than {_MOST_MEMBERS:,}"
            return ()
        self._left -= len(ranks)
        return self._known.setdefault(key, ranks)


def _trace(rank: int, data: Any, source: Source, members: _Members) -> Trace:
    """Return the trace in a dump; ``rank`` is -1 if it is not known yet.

    Raises:
        _RefusedError: It is not a dump, or its rank is unknown.
    """
    if not isinstance(data, dict):
        raise _RefusedError("it is no dump of a flight recorder")
    rank = _integer(data.get("rank")) if rank < 0 else rank
    rank = source.rank if rank < 0 and source.rank is not None else rank
    if rank < 0 and (number := _LAST_NUMBER.search(os.path.basename(source.path))):
        rank = int(number[1])
    if not 0 <= rank < _MOST_RANKS:
        raise _RefusedError("neither its content nor its name has the rank")
    entries = [one for one in _list(data.get("entries")) if isinstance(one, dict)]
    status = data.get("pg_status")
    status = status if isinstance(status, dict) else {}
    groups = _groups(data.get("pg_config"), entries, status, members)
    completed = {group.name: group.completed for group in groups}
    taken = max(0, _integer(data.get("taken_ns")))
    calls = _kept(_calls(reversed(entries), completed))
    return Trace(rank, source.shown, groups, calls, taken, _transfers(entries, groups))


def _groups(
    config: Any, entries: Sequence[Mapping[str, Any]], status: Mapping[str, Any], members: _Members
) -> tuple[Group, ...]:
    found: dict[str, Group] = {}
    for key, about in islice(config.items(), _MOST_GROUPS) if isinstance(config, dict) else ():
        if isinstance(about, dict) and key != "":
            name = _name(_text(about.get("name")) or _text(key))
            found[name] = Group(name, _title(name, about.get("desc")), members.of(about.get("ranks")))
    of_number: dict[str, str] = {}
    issued: dict[str, int] = {}
    for entry in entries:
        name, title = _group_of(entry)
        if name not in found and len(found) >= _MOST_GROUPS:
            continue
        found.setdefault(name, Group(name, title))
        of_number[_text(entry.get("pg_id"))] = name
        if not _is_p2p(entry):
            issued[name] = max(issued.get(name, -1), _integer(entry.get("collective_seq_id")))
    for number, about in status.items():
        name = of_number.get(_text(number), _text(number))
        if name in found and isinstance(about, dict):
            last = _integer(about.get("last_enqueued_collective"))
            issued[name] = max(issued.get(name, -1), last)
            ended = _integer(about.get("last_completed_collective"))
            found[name] = found[name]._replace(completed=ended)
    return tuple(one._replace(issued=issued.get(name, 0)) for name, one in found.items())


def _calls(entries: Iterable[Mapping[str, Any]], completed: Mapping[str, int]) -> Iterator[Call]:
    for entry in entries:
        number = _integer(entry.get("collective_seq_id"))
        if _is_p2p(entry) or number < 0:
            continue
        name, _ = _group_of(entry)
        frames = [one for one in _list(entry.get("frames")) if isinstance(one, dict)]
        operation = _BACKEND.sub("", _text(entry.get("profiling_name")))
        if not operation and frames:
            operation = _text(frames[0].get("name"))
        is_done = bool(entry.get("retired")) or entry.get("state") == "completed"
        is_done = is_done or number <= completed.get(name, -1)
        sizes, dtypes = entry.get("input_sizes"), entry.get("input_dtypes")
        yield Call(
            name, number, operation, _plain(sizes), _plain(dtypes), is_done,
            max(0, _integer(entry.get("time_created_ns"))), _frame(frames), _text(entry.get("state")),
        )  # fmt: skip


def _transfers(entries: Sequence[Mapping[str, Any]], groups: Sequence[Group]) -> tuple[Transfer, ...]:
    """Return the sends and receives of which torch's name has the peer: ``nccl:send 0->1``."""
    members = {group.name: group.ranks for group in groups}
    is_whole = not entries or _integer(entries[0].get("record_id")) == 0
    found: dict[tuple[str, str, int], Transfer] = {}
    for entry in entries:
        named = _TRANSFER.search(_text(entry.get("profiling_name"))) if _is_p2p(entry) else None
        if named is None:
            continue
        group, peer = _group_of(entry)[0], int(named[3])
        ranks = members.get(group, ())
        peer = ranks[peer] if peer < len(ranks) else peer
        key = (group, named[1], peer)
        if key not in found and len(found) >= _MOST_GROUPS:
            continue
        old = found.get(key, Transfer(*key, 0, 0, is_whole))
        is_done = bool(entry.get("retired")) or entry.get("state") == "completed"
        if not is_done and not old.pending:
            own = entry.get("output_sizes") if named[1] == "recv" else entry.get("input_sizes")
            old = old._replace(sizes=_plain(own or entry.get("input_sizes")))
        found[key] = old._replace(issued=old.issued + 1, pending=old.pending + (not is_done))
    return tuple(found.values())


def _kept(newest_first: Iterable[Call]) -> tuple[Call, ...]:
    """Return the first calls that have not ended, and the last ones of each group that have, in order."""
    ended: dict[str, int] = {}
    kept: list[tuple[int, Call]] = []
    pending: deque[tuple[int, Call]] = deque(maxlen=_MOST_PENDING)
    for number, one in enumerate(newest_first):
        if not one.is_done:
            pending.append((-number, one))
        elif one.group in ended or len(ended) < _MOST_GROUPS:
            ended[one.group] = ended.get(one.group, 0) + 1
            kept += [(-number, one)] if ended[one.group] <= _MOST_ENDED else []
    return tuple(one for _, one in sorted([*kept, *pending], key=itemgetter(0)))


def _frame(frames: Sequence[Mapping[str, Any]]) -> str:
    for one in frames:
        path = _text(one.get("filename"))
        if path and is_of_user(path):
            return f"{_text(one.get('name'))} ({path}:{_text(one.get('line'))})"
    return ""


def _group_of(entry: Mapping[str, Any]) -> tuple[str, str]:
    group = entry.get("process_group")
    if isinstance(group, list | tuple) and group:
        name = _name(_text(group[0]))
        return name, _title(name, group[1] if len(group) > 1 else "")
    name = _name(_text(group if group is not None else entry.get("pg_id", "0")))
    return name, _title(name, "")


def _name(text: str) -> str:
    """Return the name of a group; torch_npu writes ``group_name_0`` for ``0``."""
    return text.removeprefix("group_name_")


def _title(name: str, description: Any) -> str:
    text = _text(description)
    return text if text and text != "undefined" else name


def _ranks(value: Any) -> tuple[int, ...]:
    """Return the members of a group: ``[0, 1]`` as text, or a list."""
    if isinstance(value, str):
        if len(value) > _LONGEST_RANKS or not _RANKS.fullmatch(value):
            return ()
        value = re.findall("[0-9]+", value)
    if not isinstance(value, list | tuple):
        return ()
    ranks = sorted({_integer(one) for one in value})
    return tuple(ranks) if all(0 <= rank < _MOST_RANKS for rank in ranks) else ()


def _is_p2p(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("is_p2p"))


def _integer(value: Any) -> int:
    """Return a number that may be text, -1 if it is none."""
    if isinstance(value, str) and len(value) < 20 and value.removeprefix("-").isdecimal():
        value = int(value)
    return value if isinstance(value, int) and abs(value) < 1 << 63 else -1


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _plain(value: Any, depth: int = _DEEPEST) -> str:
    """Return sizes or types as text; a tuple as the list that JSON has for it. A long text is cut."""
    if not isinstance(value, list | tuple):
        return _text(value)
    if not depth:
        return "[...]"
    parts, size = list[str](), 0
    for one in value:
        parts.append(_plain(one, depth - 1))
        size += len(parts[-1]) + len(", ")
        if size > _LONGEST_TEXT:
            return f"[{', '.join(parts)}"[:_LONGEST_TEXT] + "..."
    return f"[{', '.join(parts)}]"


def _text(value: Any) -> str:
    """Return a text or number as text, "" for what is neither. A long text is cut."""
    if not isinstance(value, str | int | float):
        return ""
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
