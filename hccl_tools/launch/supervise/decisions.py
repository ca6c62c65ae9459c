"""The decisions that ``JobState`` returns and its event loop carries out."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.launch.model.outcome import RankEnd


class Signal(NamedTuple):
    """Send a signal to all processes of the job."""

    number: int


class SetTimer(NamedTuple):
    """Call ``JobState.timer`` with ``name`` after the given seconds; replace a timer of the same name."""

    name: str
    seconds: float


class Say(NamedTuple):
    """Show a message, and add it to the report."""

    text: str


class HandleEnd(NamedTuple):
    """Notify the observers, which may report the cause, then call ``JobState.process_ended``."""

    end: RankEnd


class Step(Enum):
    """Decisions without arguments."""

    #: Notify the observers that the end of the job begins.
    BEGIN_END = "begin the end"
    #: Take evidence of what the ranks do, then call ``JobState.evidence_taken``.
    TAKE_EVIDENCE = "take evidence"
    #: Request that the other hosts kill their processes, too.
    KILL_ELSEWHERE = "kill elsewhere"
    #: Show which processes the ranks have left behind.
    SHOW_LEFTOVERS = "show leftovers"
    #: End the remaining processes without the keeper, or leave them.
    GIVE_UP = "give up"


Decision: TypeAlias = "Signal | SetTimer | Say | HandleEnd | Step"
