"""The answer as JSON; ``schemas/explain.schema.json`` describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.explain import answer as words
from hccl_tools.explain import further_logs
from hccl_tools.explain.cause import CONFIDENCE
from hccl_tools.explain.events import clock
from hccl_tools.explain.locations import Place

if TYPE_CHECKING:
    from hccl_tools.explain.answer import Answer
    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.events import Seen

SCHEMA_VERSION = 1
#: Consequences that are listed; the text folds them.
_MOST_CONSEQUENCES = 1000


def as_json(answer: Answer) -> dict[str, Any]:
    """Return the answer, ready for JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run": answer.run or None,
        "ranks": answer.cluster.size or None,
        "logs": len(answer.sources),
        "causes": [_cause(answer, cause) for cause in answer.causes],
        "consequences": [_consequence(answer, one) for one in answer.consequences()[:_MOST_CONSEQUENCES]],
        "also_seen": [_also_seen(answer, one) for one in answer.also_seen()[:_MOST_CONSEQUENCES]],
        "notes": [*_end(answer), *answer.notes, *answer.cluster.notes],
    }


def _end(answer: Answer) -> list[str]:
    if answer.unfinished:
        return [answer.unfinished]
    return [words.finished(answer)] if answer.has_finished or answer.finished else []


def _cause(answer: Answer, cause: Cause) -> dict[str, Any]:
    place = cause.places[0] if cause.places else Place()
    return {
        **_record(answer, cause.message.id, cause.seen, place),
        "ranks": sorted({one.rank for one in cause.places if one.rank is not None}),
        "confidence": cause.confidence,
        "confidence_text": CONFIDENCE[cause.confidence],
        "sentence": words.sentence(answer, cause),
        "reason": cause.reason or None,
        "remedy": cause.message.remedy,
        "look_at": further_logs.lines(
            cause, answer.cluster, answer.sources, answer.run, has_plogs=not answer.is_rehearsal
        ),
        "beside": _at(answer, cause.beside) if cause.beside is not None else None,
    }


def _consequence(answer: Answer, seen: Seen) -> dict[str, Any]:
    message = seen.event.message
    return {
        **_record(answer, message.id, seen, seen.place),
        "confidence": "order",
        "sentence": message.meaning,
        "remedy": message.remedy,
    }


def _also_seen(answer: Answer, seen: Seen) -> dict[str, Any]:
    message = seen.event.message
    return {
        **_record(answer, message.id, seen, seen.place),
        "sentence": message.meaning,
        "why": seen.why,
    }


def _record(answer: Answer, message: str, seen: Seen | None, place: Place) -> dict[str, Any]:
    line = answer.cluster.places.line(place)
    return {
        "message": message,
        "codes": list(seen.event.codes) if seen else [],
        **_place(place),
        "peer": _place(seen.peer) if seen and seen.peer else None,
        "at": _at(answer, seen) if seen else None,
        "table": {"file": line.file, "line": line.line, "pointer": line.pointer} if line else None,
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "rank": place.rank,
        "host": place.host or None,
        "device": place.device,
        "address": place.address or None,
    }


def _at(answer: Answer, seen: Seen) -> dict[str, Any]:
    event = seen.event
    return {
        "file": answer.sources[event.file].shown,
        "line": event.line or None,
        "time": clock(event.time) if event.time is not None and not event.is_yearless else None,
        "text": event.text,
    }
