"""Durations of a job's supervision; tests pass shorter ones."""

from __future__ import annotations

from hccl_tools.launch.processes import timing
from hccl_tools.records import NamedTuple


class Timing(NamedTuple):
    """The durations of a job's end in seconds, without the grace time."""

    #: From one round of SIGKILL to the next.
    kill_again: float = 0.1
    #: From the first SIGKILL until surviving processes are left, as stuck in the kernel.
    give_up: float = 5.0
    #: For processes that the ranks have left behind to exit by themselves.
    leftovers: float = 0.25
    #: From the first signal until SIGINT kills: some programs send it to the process and to its group.
    repeat_sigint: float = 0.2
    #: The same for SIGTERM.
    repeat_sigterm: float = 1.0


TIMING = timing.from_environment("supervisor", Timing())
