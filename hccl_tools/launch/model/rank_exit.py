"""The exit of a rank, as reported to a launcher by the process that started the rank."""

from __future__ import annotations

import os

from hccl_tools.records import Count, NamedTuple, OsText, Seconds

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from hccl_tools.launch.model.outcome import RankEnd


class RankExit(NamedTuple):
    """The exit of one rank.

    ``status`` is the raw wait status (``None`` while the rank runs), ``duration`` is in seconds, ``log``
    the path of the log on the rank's host. ``was_terminated`` tells whether the rank was terminated, or is
    ``None`` if unknown, as for a shim.
    """

    rank: Count
    pid: Count
    status: Count | None
    duration: Seconds
    was_terminated: bool | None
    log: OsText

    @classmethod
    def of(cls, end: RankEnd) -> RankExit:
        """Return the record of a rank's end."""
        duration = round(end.duration, 3)
        return cls(end.process.rank, end.pid, end.status, duration, end.was_terminated, end.log)

    def check(self) -> str:
        """Return why the number is not a wait status, "" if it is one."""
        try:
            os.waitstatus_to_exitcode(self.status or 0)
        except ValueError:
            return f"{self.status} is not a wait status"
        return ""
