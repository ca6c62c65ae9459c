"""The answer in words: the cause first, then its consequences by rank, then what does not matter."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.explain import candidates, further_logs, handled, ties
from hccl_tools.explain.cause import CONFIDENCE, DELAY, is_before
from hccl_tools.explain.events import moment
from hccl_tools.explain.knowledge.message import fault_of
from hccl_tools.explain.locations import Place
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.notation import host_list
from hccl_tools.notation.printable import escaped
from hccl_tools.notation.screen import Pen, width, wrapped
from hccl_tools.records import NamedTuple
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Event, Seen
    from hccl_tools.explain.sources import Source

#: The fields that are shown after the meaning, with their words; the places have their own.
_DETAILS = (
    *(
        ("variable", ""),
        ("value", ""),
        ("configured", "the table has"),
        ("item", "the difference is in the"),
        ("port", "port"),
        ("pod", "pod"),
        ("signal", "signal"),
        ("file", ""),
        ("local", "here"),
        ("remote", "there"),
    ),
    *(("tag", "operation"), ("reason", "")),
)
#: Characters of a detail; the line is shown below.
_LONGEST_DETAIL = 200
#: Why a fault before the cause is not the cause.
_EARLIER = "earlier than the cause: nothing shows that the job ended because of it"
#: Why a fault of a host or pod beside the failure of a program is not the cause.
_APART = "nothing says that it is about this job"
#: The message of report.json for a rank that ended with an exit code other than 0.
_EXITED = "HCM821"
_WENT_ON = "the job went on for long after it"
_MILLISECONDS = len(".000")
#: The line of a program that has done all of its work.
COMPLETED = "HCM990"
#: The messages of a job that hung.
HUNG = frozenset({"HCM833", "HCM937"})
_MOST_CAUSES = 4
_MOST_NOTES = 12


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
        finished: The lines of launchers that say that the job ended with exit code 0.
        stopped_first: What the report of a run that hung says of the ranks that stopped first.
        is_rehearsal: Whether the run was a rehearsal on the CPU, whose ranks write no plogs.
        outlived: Faults after which the job went on for long.
        unfinished: The sentence that the run is still running; "" for one that has ended.
    """

    causes: Sequence[Cause]
    cluster: Cluster
    sources: Sequence[Source]
    notes: Sequence[str]
    run: str = ""
    run_dir: str = ""
    has_finished: bool = False
    finished: Sequence[Seen] = ()
    stopped_first: Sequence[str] = ()
    unfinished: str = ""
    is_rehearsal: bool = False
    outlived: Sequence[Seen] = ()

    def used(self) -> set[int]:
        """Return the ids of the events that the causes show."""
        shown = [one for cause in self.causes for one in (cause.seen, cause.beside) if one is not None]
        return {id(one.event) for one in shown}

    def consequences(self) -> list[Seen]:
        """Return the events that follow from the causes: the first of each message and rank."""
        apart = ties.apart(self.cluster, self.causes)
        used = self.used() | {id(one.event) for one in (*self._earlier(), *apart)}
        shown = {(cause.message.meaning, place) for cause in self.causes for place in cause.places}
        shown |= {
            (cause.message.meaning, cause.seen.place)
            for cause in self.causes
            if cause.seen is not None and cause.seen.event.message is cause.message
        }
        shown |= {
            (cause.beside.event.message.meaning, place)
            for cause in self.causes
            if cause.beside is not None and cause.beside.place in cause.places
            for place in cause.places
        }
        said = {_as_said(cause.seen.event) for cause in self.causes if cause.seen is not None}
        of_causes = _Faults(self.causes)
        at_fault = {place.rank for cause in self.causes for place in cause.places} - {None}
        used |= {id(one.event) for one in candidates.joined_later(self.cluster, self.cluster.seen)}
        used |= {id(one.event) for one in self.outlived}
        found: dict[tuple[str, str], Seen] = {}
        for one in self.cluster.seen:
            if one.event.message.kind in {"fact", "end"} or id(one.event) in used:
                continue
            if one.event.message.id == _EXITED and one.place.rank in at_fault:
                continue  # The end of the rank whose fault is the cause.
            if _as_said(one.event) in said or of_causes.has(one):
                continue  # Another rank, or another program, says the same.
            if self._is_of_cause(one):
                continue  # The rank at fault says it at the same moment: it is the same failure.
            if (handled.is_warning(one) and not handled.tells(one)) or self._is_survived(one):
                continue  # A library warns of what it does without; an attempt was repeated.
            if (one.event.message.meaning, one.place) not in shown:
                found.setdefault((one.event.message.id, one.actor), one)
        return list(found.values())

    def _is_of_cause(self, one: Seen) -> bool:
        """Whether a fault is that of the first cause: of the same process, at the same moment."""
        first = self.causes[0].seen if self.causes else None
        if first is None or one.actor != first.actor or one.peer is not None or first.peer is not None:
            return False
        if one.event.message.kind not in {"cause", "error"} or first.event.message.kind not in {
            "cause",
            "error",
        }:
            return False
        return one.time is not None and first.time is not None and abs(one.time - first.time) <= DELAY

    def _is_survived(self, one: Seen) -> bool:
        """Whether an attempt is not known to be later than the cause: its process went on."""
        first = self.causes[0].seen if self.causes else None
        return candidates.is_attempt(one) and (first is None or not is_before(first, one))

    def also_seen(self) -> list[Seen]:
        """Return what is neither cause nor consequence, with the reason as ``why``."""
        found: dict[tuple[str, str, str], Seen] = {}
        of_causes = _Faults(self.causes)
        earlier = [one._replace(why=_EARLIER) for one in self._earlier() if not of_causes.has(one)]
        apart = [one._replace(why=_APART) for one in ties.apart(self.cluster, self.causes)]
        told = {id(one.event) for one in earlier}
        apart = [one for one in apart if id(one.event) not in told]
        outlived = [
            one._replace(why=_WENT_ON)
            for one in self.outlived
            if id(one.event) not in told and (handled.tells(one) or not handled.is_warning(one))
        ]
        for one in (*earlier, *apart, *outlived, *self.cluster.others):
            if one.event.message.kind not in {"fact", "end"}:
                found.setdefault((one.event.message.id, one.actor, one.why), one)
        return list(found.values())

    def _earlier(self) -> list[Seen]:
        """Return the faults that are known to be earlier than the first cause: they do not follow from it."""
        first = self.causes[0].seen if self.causes else None
        if first is None or first.event.message is not self.causes[0].message:
            return []
        used = self.used()
        at_fault = {place.rank for place in self.causes[0].places} - {None}
        faults = [
            one
            for one in self.cluster.seen
            if one.event.message.kind in {"cause", "error"}
            or (
                one.event.message.kind == "code"
                and one.place.rank not in at_fault
                and one.event.message.id not in candidates.FOLLOW_UP
            )
        ]
        faults = [one for one in faults if handled.tells(one) or not handled.is_warning(one)]
        return [one for one in faults if is_before(one, first) and id(one.event) not in used]


class _Faults:
    """The faults of the causes: as a job may have one for each rank, other words for them are looked up."""

    def __init__(self, causes: Iterable[Cause]) -> None:
        self._places: dict[str | int, dict[str, set[Place | None]]] = {}
        for cause in causes:
            of_fault = self._places.setdefault(fault_of(cause.message.id), {})
            of_fault.setdefault(cause.message.id, set()).update(cause.places or (None,))

    def has(self, one: Seen) -> bool:
        """Whether an event is about the fault of a cause, in other words and not of another rank."""
        own = one.event.message.id
        return any(
            message != own and (one.place.rank is None or None in places or one.place in places)
            for message, places in self._places.get(fault_of(own), {}).items()
        )


def _as_said(event: Event) -> tuple[str, frozenset[tuple[str, str]]]:
    """Return what an event says, without who wrote it."""
    return event.message.id, frozenset(event.fields.items())


def text(answer: Answer, chinese: Callable[[str], str] | None = None) -> Iterator[str]:
    """Yield the lines of the answer; ``chinese`` returns the Chinese line of a message by its id."""
    if answer.has_finished:
        yield finished(answer)
        yield from (f"  {note}" for note in answer.notes[:_MOST_NOTES])
        return
    if answer.finished:
        yield from _finished(answer)
        return
    if answer.unfinished:
        yield answer.unfinished
    if not answer.causes:
        yield from _nothing(answer)
        return
    yield from _cause(answer, answer.causes[0], chinese)
    for cause in answer.causes[1:_MOST_CAUSES]:
        yield ""
        yield "also a cause:"
        yield from _cause(answer, cause, chinese)
    if folded := _folded(answer.consequences()):
        yield ""
        yield "consequences:"
        yield from folded
    if seen := answer.also_seen():
        yield ""
        yield "also seen:"
        yield from _also_seen(seen)
    used = answer.used()
    ends = [
        one for one in answer.cluster.seen if one.event.message.kind == "end" and id(one.event) not in used
    ]
    notes = [*answer.notes, *answer.cluster.notes]
    if ends or notes:
        yield ""
        yield "does not matter:" if ends and not notes else "notes:"
        yield from _folded(ends)
        yield from (f"  {note}" for note in notes[:_MOST_NOTES])
        if len(notes) > _MOST_NOTES:
            yield f"  and {len(notes) - _MOST_NOTES:,} more"


def as_text(
    answer: Answer, *, color: bool = False, chinese: Callable[[str], str] | None = None
) -> Iterator[str]:
    """Yield the lines of the answer; on a terminal, long ones are broken, except those of a log.

    ``chinese`` returns the Chinese line of a message by its id, which stands below the cause.
    """
    pen, columns = Pen(color), width()
    style = "good" if answer.has_finished or answer.finished else "message" if answer.causes else "warning"
    for number, line in enumerate(text(answer, chinese)):
        shown = "\n".join(wrapped(escaped(line), columns))
        is_title = line.endswith(":") and not line.startswith(" ")
        yield pen("message" if is_title else style, shown) + "\n" if is_title or not number else f"{shown}\n"


def _finished(answer: Answer) -> Iterator[str]:
    """Yield that the job has not failed, with the lines that say so, and the errors that did not end it."""
    yield f"{finished(answer)}. The log says it."
    for one in answer.finished[:_MOST_NOTES]:
        yield from _quoted(answer, one, "in", "")
    if folded := _folded(answer.consequences()):
        yield ""
        yield "errors that did not end it:"
        yield from folded
    if answer.notes:
        yield ""
        yield "notes:"
        yield from (f"  {note}" for note in answer.notes[:_MOST_NOTES])


def finished(answer: Answer) -> str:
    """Return that the run has not failed, as one sentence."""
    if answer.finished and answer.finished[0].event.message.id == COMPLETED:
        return "The job is complete: nothing in these logs ended it"
    if answer.finished:
        return "The job ended with exit code 0: nothing in these logs ended it"
    return f"The run {os.path.basename(answer.run_dir)} ended with exit code 0: nothing to explain"


def paragraph(answer: Answer, cause: Cause, *, remedy: bool = True) -> str:
    """Return the first paragraph: what happened, where, how sure that is, and what to do if wanted."""
    what = cause.message.remedy
    do = f" What to do: {what}." if remedy and what != "nothing" else ""
    return f"{sentence(answer, cause)} {_sure(cause)}{do}"


def sentence(answer: Answer, cause: Cause) -> str:
    """Return what happened and where, as one sentence."""
    who = _who(answer, cause.places)
    what = f"{cause.message.meaning}{_details(cause).rstrip('.')}{_codes_and_time(cause)}."
    return f"{who}: {what}" if who else f"{what[0].upper()}{what[1:]}"


def _who(answer: Answer, places: Sequence[Place]) -> str:
    if len(places) != 1:
        hosts = _whole_hosts(answer, places)
        if not hosts:
            return _capital(ranks_text(places))
        return f"Host{'' if len(hosts) == 1 else 's'} {host_list.fold(hosts)} ({ranks_text(places)})"
    place = places[0]
    line = answer.cluster.places.line(place)
    named = place.name
    if line is not None and not _is_copy(line.file):
        at = f"{line.file}:{line.line}"
        named = f"{named[:-1]}, {at})" if named.endswith(")") else f"{named} ({at})"
    return _capital(named)


def _is_copy(table: str) -> bool:
    """Return whether a table is the copy in a run's directory, which is not the file to correct."""
    return os.path.lexists(os.path.join(os.path.dirname(table), names.PLAN))


def _whole_hosts(answer: Answer, places: Sequence[Place]) -> list[str]:
    """Return the hosts that have all of several ranks, and no other rank; [] if the ranks are not so."""
    hosts = list(dict.fromkeys(place.host for place in places))
    if "" in hosts:
        return []
    known = answer.cluster.places.by_rank
    of_hosts = {rank for rank, place in known.items() if place.host in hosts}
    are_all = {place.host for place in known.values()} <= set(hosts)
    return hosts if of_hosts == {place.rank for place in places} and not are_all else []


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:] if words.startswith(("rank", "device", "host ")) else words


def _details(cause: Cause) -> str:
    if cause.seen is None or cause.seen.event.message is not cause.message:
        return ""
    fields, peer = _joined(cause.seen.event.fields, cause.message.meaning), cause.seen.peer
    parts = [f"{word} {_shortened(fields[name])}".strip() for name, word in _DETAILS if fields.get(name)]
    if peer is not None and peer.name and peer not in cause.places:
        parts.append(f"the other end is {peer.name}")
    return f": {', '.join(parts)}" if parts else ""


def _joined(fields: Mapping[str, str], meaning: str) -> Mapping[str, str]:
    """Return the fields of a line with the value of a variable beside its name, which is said once."""
    variable, value = fields.get("variable", ""), fields.get("value", "")
    if variable and variable in meaning:
        return {**fields, "variable": ""}
    return {**fields, "variable": f"{variable} is {value}", "value": ""} if variable and value else fields


def _codes_and_time(cause: Cause) -> str:
    """Return the codes and the time of the line that states the cause."""
    if cause.seen is None or cause.seen.event.message is not cause.message:
        return ""
    event = cause.seen.event
    codes = f" ({', '.join(event.codes)})" if event.codes else ""
    return codes if event.time is None else f"{codes}, at {moment(event)[:-_MILLISECONDS]}"


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST_DETAIL else f"{value[:_LONGEST_DETAIL]} ..."


def _sure(cause: Cause) -> str:
    how = CONFIDENCE[cause.confidence]
    if cause.confidence == "silent" and len(cause.places) == 1:
        how = "this rank reports no error, and others waited for it: look at it first"
    text_ = f"{cause.reason} ({how})" if cause.reason else how
    return f"{text_[0].upper()}{text_[1:]}."


def _cause(answer: Answer, cause: Cause, chinese: Callable[[str], str] | None) -> Iterator[str]:
    yield paragraph(answer, cause)
    if chinese and (line := chinese(cause.message.id)):
        yield f"  = 中文: {line}"
    if cause.seen is not None:
        is_own = cause.beside is None and cause.seen.place in (*cause.places, Place())
        yield from _quoted(answer, cause.seen, "in", "" if is_own else cause.seen.place.short)
    if cause.message.id in HUNG:
        yield from (f"  {line}" for line in answer.stopped_first)
    if cause.beside is not None:
        is_of_tool = cause.beside.event.message.kind == "fact" and cause.beside.place.rank is None
        yield from _quoted(
            answer, cause.beside, "beside it, in", "" if is_of_tool else cause.beside.place.short
        )
    has_plogs = not answer.is_rehearsal
    for line in further_logs.lines(cause, answer.cluster, answer.sources, answer.run, has_plogs=has_plogs):
        yield f"  look at {line}"


def _quoted(answer: Answer, seen: Seen, where: str, writer: str) -> Iterator[str]:
    event = seen.event
    when = f" at {moment(event)}" if event.time is not None else ""
    whose = f", which {writer} wrote{',' if when else ''}" if writer else ""
    yield f"  {where} {place_of(answer, seen)}{whose}{when}:"
    yield f"    | {event.text}"


def place_of(answer: Answer, seen: Seen) -> str:
    """Return the file and the line of an event."""
    shown = answer.sources[seen.event.file].shown
    shown = names.shown(shown) if answer.run_dir else shown
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


def _also_seen(events: Sequence[Seen]) -> Iterator[str]:
    """Yield one line per message and reason."""
    groups: dict[str, list[Seen]] = {}
    for one in events:
        groups.setdefault(one.why, []).append(one)
    lines = [f"{line} ({why})" for why, group in groups.items() for line in _folded(group)]
    yield from lines[:_MOST_NOTES]
    if len(lines) > _MOST_NOTES:
        yield f"  and {len(lines) - _MOST_NOTES:,} more"


def _nothing(answer: Answer) -> Iterator[str]:
    size = sum(1 for source in answer.sources if source.path)
    found = f"no cause found in {size:,} log{'' if size == 1 else 's'}"
    yield f"  {found} up to now" if answer.unfinished else found
    ends = [one for one in answer.cluster.seen if one.event.message.kind == "end"]
    yield from _folded(ends)
    if seen := answer.also_seen():
        yield "  also seen:"
        yield from (f"  {line}" for line in _also_seen(seen))
    yield from (f"  {note}" for note in (*answer.notes, *answer.cluster.notes)[:_MOST_NOTES])
    if not (answer.unfinished or answer.is_rehearsal):
        are_plogs = any("ascend/log" in one.path for one in answer.sources) or not size
        yield f"  look at {further_logs.OTHER_HOSTS if are_plogs else further_logs.PLOGS}"
