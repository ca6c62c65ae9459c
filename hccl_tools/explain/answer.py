"""The answer in words: the cause first, then its consequences by rank, then what does not matter."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from hccl_tools.explain.case import CONFIDENCE
from hccl_tools.explain.events import clock
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.explain.case import Cause
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.places import Place
    from hccl_tools.explain.sources import Source

#: The fields that are shown after the meaning, with their words; the places have their own.
_DETAILS = (
    *(
        ("variable", ""),
        ("value", "value"),
        ("status", "status"),
        ("configured", "the table has"),
        ("item", "the difference is in the"),
        ("port", "port"),
        ("file", ""),
        ("local", "here"),
        ("remote", "there"),
    ),
    *(("tag", "operation"), ("reason", "")),
)
#: Characters of a detail; the line is shown below.
_LONGEST_DETAIL = 200
_MOST_CAUSES = 4
_MOST_NOTES = 12
_MOST_LOGS_TO_FETCH = 4


class Answer(NamedTuple):
    """What is known after all logs were read.

    Attributes:
        causes: The causes, the most likely first.
        cluster: The events.
        sources: The logs.
        notes: Sentences on what was not read, and on the table.
        run: The run that was explained, as the user named it; "" for files.
        run_dir: The directory of that run.
        has_finished: Whether that run ended with exit code 0: there is nothing to explain.
    """

    causes: Sequence[Cause]
    cluster: Cluster
    sources: Sequence[Source]
    notes: Sequence[str]
    run: str = ""
    run_dir: str = ""
    has_finished: bool = False

    def consequences(self) -> list[Seen]:
        """Return the events that follow from the causes: the first of each message and rank."""
        used = {id(cause.seen.event) for cause in self.causes if cause.seen is not None}
        shown = {(cause.message.meaning, place) for cause in self.causes for place in cause.places}
        found: dict[tuple[str, str], Seen] = {}
        for one in self.cluster.seen:
            if one.event.message.kind in {"fact", "end"} or id(one.event) in used:
                continue
            if (one.event.message.meaning, one.place) not in shown:
                found.setdefault((one.event.message.id, one.actor), one)
        return list(found.values())


def text(answer: Answer) -> Iterator[str]:
    """Yield the lines of the answer."""
    if answer.has_finished:
        yield finished(answer)
        yield from (f"  {note}" for note in answer.notes[:_MOST_NOTES])
        return
    if not answer.causes:
        yield from _nothing(answer)
        return
    yield from _cause(answer, answer.causes[0])
    for cause in answer.causes[1:_MOST_CAUSES]:
        yield ""
        yield "also a cause:"
        yield from _cause(answer, cause)
    if folded := _folded(answer.consequences()):
        yield ""
        yield "consequences:"
        yield from folded
    ends = [one for one in answer.cluster.seen if one.event.message.kind == "end"]
    notes = [*answer.notes, *answer.cluster.notes]
    if ends or notes:
        yield ""
        yield "does not matter:" if ends and not notes else "notes:"
        yield from _folded(ends)
        yield from (f"  {note}" for note in notes[:_MOST_NOTES])
        if len(notes) > _MOST_NOTES:
            yield f"  and {len(notes) - _MOST_NOTES:,} more"


def finished(answer: Answer) -> str:
    """Return that the run has not failed, as one sentence."""
    return f"The run {os.path.basename(answer.run_dir)} ended with exit code 0: nothing to explain"


def paragraph(answer: Answer, cause: Cause) -> str:
    """Return the first paragraph: what happened, where, how sure that is, and what to do."""
    remedy = cause.message.remedy
    do = "" if remedy == "nothing" else f" What to do: {remedy}."
    return f"{sentence(answer, cause)} {_sure(cause)}{do}"


def sentence(answer: Answer, cause: Cause) -> str:
    """Return what happened and where, as one sentence."""
    who = _who(answer, cause.places)
    codes = ", ".join(code for code in (cause.seen.event.codes if cause.seen else ()))
    shown = f" ({codes})" if codes else ""
    what = f"{cause.message.meaning}{_details(cause)}{shown}."
    return f"{who}: {what}" if who else f"{what[0].upper()}{what[1:]}"


def fetch_lines(answer: Answer, cause: Cause) -> list[str]:
    """Return which logs would say more, with the commands that show them."""
    lines = []
    for place in cause.fetch[:_MOST_LOGS_TO_FETCH]:
        if answer.run and place.rank is not None:
            lines.append(f"`hccl-tools logs {shlex.quote(answer.run)} --rank {place.rank}`, and its plog")
            continue
        if here := [one.shown for one in answer.sources if place.rank is not None and one.rank == place.rank]:
            lines.append(" and ".join(here[:2]))
            continue
        where = f" on {place.host}" if place.host else ""
        what = f"rank {place.rank}" if place.rank is not None else place.name or "the rank"
        key = f"'rank\\[{place.rank}\\]\\|userRank\\[{place.rank}\\]'" if place.rank is not None else "ERROR"
        lines.append(f"the log of {what}{where}: `grep -rl {key} ~/ascend/log`, then explain those files too")
    if not cause.fetch and cause.confidence == "open":
        lines.append("the plog of each rank, by default in ~/ascend/log of each host: explain that folder")
    return lines


def _who(answer: Answer, places: Sequence[Place]) -> str:
    if len(places) != 1:
        host = _whole_host(answer, places)
        return f"Host {host} ({ranks_text(places)})" if host else _capital(ranks_text(places))
    place = places[0]
    line = answer.cluster.places.line(place)
    named = place.name
    if line is not None:
        at = f"{line.file}:{line.line}"
        named = f"{named[:-1]}, {at})" if named.endswith(")") else f"{named} ({at})"
    return _capital(named)


def _whole_host(answer: Answer, places: Sequence[Place]) -> str:
    """Return the host that has all of several ranks, and no other rank; "" if there is none."""
    hosts = {place.host for place in places}
    if len(hosts) != 1 or "" in hosts:
        return ""
    (host,) = hosts
    known = {rank for rank, place in answer.cluster.places.by_rank.items() if place.host == host}
    is_only = len({place.host for place in answer.cluster.places.by_rank.values()}) < 2
    return host if known == {place.rank for place in places} and not is_only else ""


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:] if words.startswith(("rank", "device", "host ")) else words


def _details(cause: Cause) -> str:
    if cause.seen is None or cause.seen.event.message is not cause.message:
        return ""
    fields, peer = cause.seen.event.fields, cause.seen.peer
    parts = [f"{word} {_shortened(fields[name])}".strip() for name, word in _DETAILS if fields.get(name)]
    if peer is not None and peer.name and peer not in cause.places:
        parts.append(f"the other end is {peer.name}")
    return f": {', '.join(parts)}" if parts else ""


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST_DETAIL else f"{value[:_LONGEST_DETAIL]} ..."


def _sure(cause: Cause) -> str:
    how = CONFIDENCE[cause.confidence]
    if cause.confidence == "silent" and len(cause.places) == 1:
        how = "this rank is silent: look there"
    text_ = f"{cause.reason} ({how})" if cause.reason else how
    return f"{text_[0].upper()}{text_[1:]}."


def _cause(answer: Answer, cause: Cause) -> Iterator[str]:
    yield paragraph(answer, cause)
    if cause.seen is not None:
        event = cause.seen.event
        when = f" at {clock(event.time)}" if event.time is not None else ""
        yield f"  in {place_of(answer, cause.seen)}{when}:"
        yield f"    | {event.text}"
    for line in fetch_lines(answer, cause):
        yield f"  look at {line}"


def place_of(answer: Answer, seen: Seen) -> str:
    """Return the file and the line of an event."""
    shown = answer.sources[seen.event.file].shown
    return f"{shown}:{seen.event.line}" if seen.event.line else shown


def _folded(events: Sequence[Seen]) -> list[str]:
    """Return one line per message: its codes, its meaning and the ranks that have it."""
    groups: dict[str, list[Seen]] = {}
    for one in events:
        groups.setdefault(one.event.message.meaning, []).append(one)
    lines = []
    for meaning, group in groups.items():
        codes = ",".join(dict.fromkeys(code for one in group for code in one.event.codes))
        ranks = ranks_text([one.place for one in group])
        lines.append(f"  {f'{ranks}: ' if ranks else ''}{meaning}{f' ({codes})' if codes else ''}")
    return lines


def _nothing(answer: Answer) -> Iterator[str]:
    size = sum(1 for source in answer.sources if source.path)
    yield f"no cause found in {size:,} log{'' if size == 1 else 's'}"
    ends = [one for one in answer.cluster.seen if one.event.message.kind == "end"]
    yield from _folded(ends)
    yield from (f"  {note}" for note in (*answer.notes, *answer.cluster.notes)[:_MOST_NOTES])
    yield "  look at the plog of each rank, by default in ~/ascend/log of each host: explain that folder"
