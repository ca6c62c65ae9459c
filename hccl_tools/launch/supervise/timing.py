"""Durations of a job's supervision; tests pass shorter ones."""

from __future__ import annotations

from hccl_tools.processes import timing
from hccl_tools.records import NamedTuple


class Timing(NamedTuple):
    """The durations of a job's end in seconds, without the grace time."""

    #: From one round of SIGKILL to the next.
    kill_again: float = 0.1
    #: From the first SIGKILL until the surviving processes count as stuck in the kernel.
    give_up: float = 5.0
    #: For processes that the ranks have left behind to exit by themselves.
    leftovers: float = 0.25
    #: From the first signal until SIGINT kills: some programs send SIGINT to a process and to its group.
    repeat_sigint: float = 0.2
    #: From the first signal until SIGTERM kills.
    repeat_sigterm: float = 1.0


TIMING = timing.from_environment("supervisor", Timing())
