"""The last line of ranks for which others wait: what they were doing then, from their own logs."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.explain import screens
from hccl_tools.explain.events import Event, Seen, clock, process_in, syslog_time_in, time_in
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.sources import Source

    #: The index of a log, and the rank that wrote it, None for a screen of several ranks.
    _Log = tuple[int, int | None]

SILENT, BUSY = "HCM824", "HCM834"
#: Ranks, and logs, of which lines are read again: a job of thousands has thousands of silent ranks.
_MOST_RANKS, _MOST_LOGS = 64, 256
#: The last lines of a rank that are looked at.
_MOST_LINES = 60
#: Bytes at the end of a log of one rank, and of a screen of several, in which they are looked for.
_MOST_BYTES, _MOST_OF_SCREEN = 1 << 20, 1 << 23
#: Lines without a time that are remembered until a line above them has one.
_MOST_UNTIMED = 1000
_SHOWN = 300
#: Seconds by which a line may be later than the moment at which the first rank gave up.
_ABOUT = 5.0
#: What a process writes at its end, or because another one ended it.
_END = re.compile(
    rb"SIGTERM|SIGINT|KeyboardInterrupt|[Tt]erminated\b|[Kk]illed\b|[Ss]ignal handler|leaked \w+ objects"
    rb"|Traceback \(most|^\s+File \"|^\s*\^+\s*$|resource_tracker|received signal|Sending process"
)
#: A warning of a library is not what the process does; a program may write at this level what it does.
_OF_LIBRARY = re.compile(rb"Warning:|warnings\.warn")
_WARNING = re.compile(rb"\bWARN(?:ING)?\b|Warning:|warnings\.warn")
#: Words of work that a rank does before or between operations, as programs write them.
_WORK = re.compile(
    rb"(?:tokeni[sz]|pre-?process|load|download|fetch|compil|sav|writ|build|cach|convert|pack|read|scan|copy"
    rb"|extract|unpack|unzip|decompress|warm|quanti[sz]|generat|merg|upload|prepar|export|evaluat|index|shuffl"
    rb"|shard|pars|initiali[sz]|creat|process|wait|sleep|acquir|lock|encod|decod|verify|check|hash|map"
    rb"|filter|resum|restor|sync|pull|import|captur|tun|profil|validat|group|count|sort|clean|stag)ing\b"
    rb"|\bsleep\(|\btime\.sleep\b|\bbarrier\b|\bfile ?lock\b|\block (?:held|file)\b|\.lock\b|\d%\|"
    rb"|\b(?:tokeni[sz]e|preprocess|download|compile|load|save|build|convert|index|copy|map|filter)\b"
    rb".{0,80}?\d{1,9} ?(?:/|of) ?\d",
    re.IGNORECASE,
)
#: A step of the training itself, unless the line is about a checkpoint or what is prepared for the step.
_STEP = re.compile(
    rb"\bloss\b|\b(?:epoch|step|iter(?:ation)?s?|train(?:ing)?)\b ?[:=#\[]{0,2} ?\d|\b(?:it/s|s/it)\]",
    re.IGNORECASE,
)
_PREPARES = re.compile(
    rb"(?:sav|load|tokeni[sz]|download|compil|pre-?process|cach|build|generat|sleep|wait|writ|unpack|copy|map)"
    rb"|lock|barrier|checkpoint|ckpt|examples/s|B/s\]",
    re.IGNORECASE,
)
#: Words of what has ended, or has failed: neither is work that goes on.
_ENDED = re.compile(
    rb"\b(?:done|finished|completed?|succeeded|successfully|ended|loaded|saved|downloaded|exit(?:ing|ed)?)\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(rb"(\d{1,9}) ?(?:/|of) ?(\d{1,9})")
_FAILED = re.compile(
    rb"\b(?:error|fail(?:ed|ure)?|fatal|abort(?:ed)?|exception|denied|refused|cannot|could not"
    rb"|timed? ?out)\b",
    re.IGNORECASE,
)
#: A time, or a level and a time, that begin a line: the answer has the time once.
_STAMP = re.compile(
    r"^(?:\[[A-Z]{4,8}\] [A-Z]{2,12}\([^)\n]{1,80}\):)?[\[(]?20\d\d-\d\d-\d\d[-T _]\d\d:\d\d:\d\d"
    r"(?:[.,]\d{1,9}){0,2}Z?[\])]?[ \t]*[-|:]?[ \t]*"
)
#: Lines at the end of a log in which a failure is looked for.
_FAILED_WITHIN = 10


class Line(NamedTuple):
    """A line of a log: its number, its text, and its time or that of the line above."""

    file: int
    number: int
    text: bytes
    time: float | None
    is_yearless: bool
    is_own: bool


def of(cluster: Cluster, ranks: Collection[int], before: float | None) -> dict[int, Seen]:
    """Return the last line of each rank of which a log was read; its message says whether it was at work.

    Args:
        before: When the first other rank gave up: a later line says less about what it waited for.
    """
    wanted = sorted(ranks)[:_MOST_RANKS]
    found: dict[int, Seen] = {}
    own = _own_logs(cluster, wanted)
    shared = _shared_screens(cluster)
    for logs, is_shared in ((own[0], False), (shared, True), (own[1], False)):
        left = {rank for rank in wanted if rank not in found}
        lines = _lines(cluster.sources, logs, left, is_shared=is_shared) if left else {}
        for rank, last in lines.items():
            chosen = _chosen(last, before)
            if chosen is None:
                continue
            one = _seen(cluster, rank, chosen)
            # The last line of a run log is usually that of its start: it says only what the rank worked on.
            if cluster.sources[chosen.file].has_errors or one.event.message.id == BUSY:
                found[rank] = one
    return found


def of_screens(cluster: Cluster, waiting: Collection[Seen], before: float | None) -> list[Seen]:
    """Return the last lines about work of writers on common screens that do not report a wait.

    A writer is a rank, a host or a process, as the prefix of its lines names it: no line may name its rank.

    Args:
        waiting: The lines of those that waited.
    """
    waited = {_writer(one.event.text.encode()) for one in waiting} - {None}
    found: list[Seen] = []
    for file in dict.fromkeys(one.event.file for one in waiting):
        source = cluster.sources[file]
        if source.is_of_process or not source.is_file:
            continue
        last: dict[tuple[int | None, str, str], list[Line]] = {}
        for line in _from_end(source, file, _MOST_OF_SCREEN):
            writer = _writer(line.text)
            if writer is not None and writer not in waited:
                _add(last.setdefault(writer, []), line)
        for (rank, host, _), lines in sorted(last.items(), key=lambda item: item[1][-1].number):
            chosen = _chosen(lines[::-1], before)
            if chosen is not None and _is_work(chosen.text):
                found.append(_seen(cluster, rank, chosen, host))
    return found[:_MOST_RANKS]


def of_launcher(cluster: Cluster, rank: int, before: float | None) -> Seen | None:
    """Return the work that a launcher's screen shows last before its first error, if it ended a rank there.

    A program often lets rank 0 print without a prefix: the line is of this rank if all others failed.
    """
    ended = [one for one in cluster.seen if one.event.message.kind == "end" and one.place.rank == rank]
    for file in dict.fromkeys(one.event.file for one in ended):
        source = cluster.sources[file]
        if source.is_of_process or not source.is_file:
            continue
        own = (one for one in cluster.seen if one.event.file == file and one.event.message.kind != "fact")
        first = min(one.event.line for one in own)
        lines = (
            line
            for line in _from_end(source, file, _MOST_OF_SCREEN)
            if line.number < first and screens.prefix(line.text).rank is None
        )
        chosen = _chosen([*islice(lines, _MOST_LINES)][::-1], before)
        if chosen is not None and _is_work(chosen.text):
            return _seen(cluster, rank, chosen)
    return None


def _writer(line: bytes) -> tuple[int | None, str, str] | None:
    """Return the rank, the host and the process that the prefix of a line names; None without any."""
    found = screens.prefix(line)
    pid = found.pid or process_in(line)[0]
    return (found.rank, found.host, pid) if found.rank is not None or found.host or pid else None


def _own_logs(cluster: Cluster, ranks: Iterable[int]) -> tuple[Sequence[_Log], Sequence[_Log]]:
    """Return the logs of programs, and CANN's logs, of some ranks: the index of each with its rank."""
    wanted = set(ranks)
    programs = [
        (file, one.rank)
        for file, one in enumerate(cluster.sources)
        if one.rank in wanted and not one.pid and one.has_errors
    ]
    of_process = {
        one.process: cluster.ranks[one.process]
        for one in cluster.sources
        if one.pid and cluster.ranks.get(one.process) in wanted
    }
    plogs = [
        (file, of_process.get(one.process, one.rank))
        for file, one in enumerate(cluster.sources)
        if one.pid and (one.process in of_process or one.rank in wanted)
    ]
    plogs.sort(key=lambda item: not cluster.sources[item[0]].has_errors)
    return programs[:_MOST_LOGS], plogs[:_MOST_LOGS]


def _shared_screens(cluster: Cluster) -> Sequence[_Log]:
    """Return the screens that have the lines of several ranks, each with a prefix."""
    files = {
        one.event.file: None
        for one in cluster.seen
        if one.event.rank is not None and cluster.sources[one.event.file].rank is None
    }
    return [(file, None) for file in files if not cluster.sources[file].pid][:_MOST_LOGS]


def _lines(
    sources: Sequence[Source],
    logs: Sequence[_Log],
    ranks: Collection[int],
    *,
    is_shared: bool,
) -> Mapping[int, Sequence[Line]]:
    """Return the last lines of ranks in logs."""
    found: dict[int, list[Line]] = {}
    for file, rank in reversed(logs) if is_shared else logs:
        source = sources[file]
        if not source.is_file:
            continue
        if is_shared:
            _add_from_screen(found, source, file, ranks)
        elif rank is not None and rank in ranks and rank not in found:
            lines = [*islice(_from_end(source, file, _MOST_BYTES), _MOST_LINES)]
            if lines:
                found[rank] = lines
    return {rank: lines[::-1] for rank, lines in found.items()}


def _add_from_screen(found: dict[int, list[Line]], source: Source, file: int, ranks: Collection[int]) -> None:
    """Add the last lines of ranks on a screen, the last one first, until each rank has enough."""
    wanted = {rank for rank in ranks if len(found.get(rank, ())) < _MOST_LINES}
    for line in _from_end(source, file, _MOST_OF_SCREEN) if wanted else ():
        writer = screens.prefix(line.text).rank
        if writer in wanted:
            _add(found.setdefault(writer, []), line)
            if len(found[writer]) == _MOST_LINES:
                wanted.remove(writer)
                if not wanted:
                    return


def _add(lines: list[Line], line: Line) -> None:
    if len(lines) < _MOST_LINES:
        lines.append(line)


def _from_end(source: Source, file: int, most: int) -> Iterator[Line]:
    """Yield the lines of a log from the last one on, with their times, in about its last ``most`` bytes."""
    untimed: list[Line] = []
    for number, text in screens.texts_from_end(source, most):
        line = line_of(file, number, text)
        if not line.is_own and len(untimed) < _MOST_UNTIMED:
            untimed.append(line)
            continue
        yield from (one._replace(time=line.time, is_yearless=line.is_yearless) for one in untimed)
        untimed.clear()
        yield line
    yield from untimed


def line_of(file: int, number: int, text: bytes) -> Line:
    """Return a line with its own time."""
    time, is_yearless = time_in(text), False
    if time is None:
        time, is_yearless = syslog_time_in(text[screens.prefix(text).length :])
    return Line(file, number, text, time, is_yearless, time is not None)


def _chosen(lines: Sequence[Line], before: float | None) -> Line | None:
    """Return the most telling line: the last that is neither an end nor a warning, if possible in time."""
    told = [one for one in lines if not _END.search(one.text)]
    plain = [
        one
        for one in told
        if not _WARNING.search(one.text[:200]) or (_is_work(one.text) and not _OF_LIBRARY.search(one.text))
    ]
    if plain and not _is_work(plain[-1].text):  # A warning of what fails says more than a step before it.
        plain = [one for one in told if one in plain or _FAILED.search(one.text)]
    told = plain or told
    early = [
        one
        for one in told
        if before is None or one.time is None or one.is_yearless or one.time <= before + _ABOUT
    ]
    lines = early or told
    if not lines or _is_work(lines[-1].text):
        return lines[-1] if lines else None
    failed = [one for one in lines[-_FAILED_WITHIN:] if _FAILED.search(one.text)]
    return (failed or lines)[-1]


def _is_work(text: bytes) -> bool:
    if _FAILED.search(text) or not _WORK.search(text):
        return False
    if _STEP.search(text) and not _PREPARES.search(text):
        return False
    counted = _COUNTED.search(text)
    if counted is not None and int(counted[1]) < int(counted[2]):
        return True  # "12 of 90 files done"
    return not _ENDED.search(text)


def _seen(cluster: Cluster, rank: int | None, line: Line, host: str = "") -> Seen:
    text = line.text.decode(errors="replace").strip()
    inner = line.text[screens.prefix(line.text).length :].decode(errors="replace").strip() or text
    is_work = _is_work(line.text)
    what = (_STAMP.sub("", inner) or inner)[:_SHOWN]
    what = what if is_work else f"the last line of rank {rank} is: {what}"
    if line.time is not None and not line.is_own and not line.is_yearless:
        what = f"{what} (after {clock(line.time)[11:19]})"
    event = Event(
        messages()[BUSY if is_work else SILENT],
        {"reason": what},
        (),
        line.file,
        line.number,
        time=line.time if line.is_own else None,
        rank=rank,
        text=text[:_SHOWN],
        is_yearless=line.is_yearless,
    )
    place = cluster.places.find(Place(rank, host or cluster.sources[line.file].host))
    return Seen(
        event,
        place,
        f"rank {rank}" if rank is not None else host,
        time=None if line.is_yearless else line.time,
    )
