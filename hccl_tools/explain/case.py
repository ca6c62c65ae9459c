"""The events of a failed job that may be its cause, and a cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.explain.cluster import Cluster, Seen
    from hccl_tools.explain.places import Place
    from hccl_tools.knowledge.message import Message

#: How sure an answer is: the log names the cause; it follows from the order in time, from who waits for whom,
#: or from who is silent; or the lines name a code or a wait only.
Confidence = Literal["named", "order", "waits", "silent", "open"]
CONFIDENCE: Mapping[Confidence, str] = {
    "named": "the log names it",
    "order": "inferred from the order in time",
    "waits": "inferred from who waits for whom",
    "silent": "these ranks are silent: look there",
    "open": "these lines do not suffice",
}


class Cause(NamedTuple):
    """A cause: the message, the ranks that it is about, and how sure it is.

    Attributes:
        message: The message that names or stands for the cause.
        confidence: See ``Confidence``.
        places: The ranks at fault, the first one first.
        seen: The event, if there is one.
        reason: Why this is the cause, as a clause; "" if the message says it.
        fetch: The ranks whose logs would say more.
    """

    message: Message
    confidence: Confidence
    places: tuple[Place, ...] = ()
    seen: Seen | None = None
    reason: str = ""
    fetch: tuple[Place, ...] = ()


class Case(NamedTuple):
    """The events that may be causes: without facts, and without what a rank wrote at its end.

    Attributes:
        cluster: Everything that was read.
        events: The candidates in the order of time.
        first: The first candidate of each actor, its most telling one.
        not_started: The ranks that did not start because another rank failed.
    """

    cluster: Cluster
    events: list[Seen]
    first: Mapping[str, Seen]
    not_started: frozenset[int] = frozenset()
