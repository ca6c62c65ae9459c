"""Tell which ranks of a job that hangs stopped first.

The other ranks wait for these ranks in a collective. Some ranks show that they are the cause: they are
stopped, or wait for a file, a pipe or a disk. Else the oldest heartbeat decides, and without heartbeats the
earliest activity; among equals a rank that computes while another waits is in an endless loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.processes.wait_state import WaitState

#: Heartbeats that differ by less, in ns, are of the same step.
_SAME_STEP = 100_000_000


class Suspect(NamedTuple):
    """A running rank of a job that hangs.

    Attributes:
        waits: What it does, ``None`` if it has just ended.
        idle: Seconds since its last output, CPU time or heartbeat.
        since_beat: Seconds since its last heartbeat, ``None`` if it has none.
        beat: The time of its last heartbeat in ns, comparable within the job.
        computes: Whether it uses the CPU.
    """

    end: RankEnd
    waits: WaitState | None
    idle: float
    since_beat: float | None = None
    beat: int = 0
    computes: bool = False

    @property
    def is_culprit(self) -> bool:
        """Whether the rank itself shows that it does not wait for another rank."""
        if self.waits is None:
            return False
        return self.waits.is_stopped or self.waits.waits_outside or self.computes


def first(suspects: Sequence[Suspect], tolerance: float) -> list[Suspect]:
    """Return the ranks that stopped first; ``tolerance`` is the precision of ``idle`` in seconds."""
    for is_cause in (_is_stopped, _waits_outside):
        if found := [one for one in suspects if is_cause(one)]:
            return found
    found = list(suspects)
    if all(one.since_beat is not None for one in suspects):
        oldest = min((one.beat for one in suspects), default=0)
        found = [one for one in suspects if one.beat < oldest + _SAME_STEP]
    elif not any(one.since_beat is not None for one in suspects):
        longest = max((one.idle for one in suspects), default=0.0)
        found = [one for one in suspects if one.idle >= longest - tolerance]
    looping = [one for one in found if one.computes]
    return looping or found


def _is_stopped(one: Suspect) -> bool:
    return one.waits is not None and one.waits.is_stopped


def _waits_outside(one: Suspect) -> bool:
    return one.waits is not None and one.waits.waits_outside
