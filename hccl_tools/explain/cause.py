"""The events of a failed job that may be its cause, and a cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.knowledge.message import Message
    from hccl_tools.explain.locations import Place

#: Seconds by which an event may be later than what it causes: logs are written with a delay.
DELAY = 1.0

#: How sure an answer is: the log names the cause; it is the only failure; it follows from the order in time,
#: from what differs between ranks, from who waits for whom, or from who is silent; others report the rank and
#: do not know why; or the lines name only a code or a wait.
Confidence = Literal["named", "alone", "order", "compared", "waits", "silent", "reported", "open"]
CONFIDENCE: Mapping[Confidence, str] = {
    "named": "certain: the log says so",
    "alone": "the only failure in these logs",
    "order": "inferred from the order in time",
    "compared": "inferred from the lines of the ranks",
    "waits": "inferred from who waits for whom",
    "silent": "these ranks report no error, and others waited for them: look at them first",
    "reported": "reported by other ranks, which do not know why: look at its log and its host",
    "open": "the logs do not show the cause",
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
        beside: The event with which ``seen`` is compared, if there is one.
    """

    message: Message
    confidence: Confidence
    places: tuple[Place, ...] = ()
    seen: Seen | None = None
    reason: str = ""
    fetch: tuple[Place, ...] = ()
    beside: Seen | None = None


class Case(NamedTuple):
    """The events that may be causes: without facts, and without what a rank wrote at its end.

    Attributes:
        cluster: Everything that was read.
        events: The candidates in the order of time.
        first: The first candidate of each actor, its most telling one.
        not_started: The ranks that did not start because another rank failed.
        ended: The ranks that the launcher or the scheduler ended: that they report nothing says nothing.
        stop: The line with which the scheduler ended the job, if there is one.
        handled: The errors after which their process went on.
    """

    cluster: Cluster
    events: list[Seen]
    first: Mapping[str, Seen]
    not_started: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    stop: Seen | None = None
    handled: Sequence[Seen] = ()


def is_before(one: Seen, other: Seen) -> bool:
    """Whether an event is earlier than another by more than logs are delayed; False if that is unknown."""
    return one.until is not None and other.since is not None and one.until + DELAY < other.since
