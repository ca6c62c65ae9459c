"""The exit of a rank, as reported to a launcher by the process that started the rank."""

from __future__ import annotations

import os

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from typing import Any

    from hccl_tools.launch.model.outcome import RankEnd


class RankExit(NamedTuple):
    """The exit of one rank.

    ``status`` is the raw wait status (``None`` while the rank runs), ``duration`` is in seconds, ``log``
    the path of the log on the rank's host. ``was_terminated`` tells whether the rank was terminated, or is
    ``None`` if unknown, as for a shim.
    """

    rank: int
    pid: int
    status: int | None
    duration: float
    was_terminated: bool | None
    log: str

    @classmethod
    def of(cls, end: RankEnd) -> RankExit:
        """Return the record of a rank's end."""
        duration = round(end.duration, 3)
        return cls(end.process.rank, end.pid, end.status, duration, end.was_terminated, end.log)

    @classmethod
    def parse(cls, value: Any) -> RankExit:
        """Return the record of a JSON object.

        Raises:
            TypeError, ValueError: A value is missing, unknown or out of range.
        """
        record = cls(**value)
        if record.status is not None:
            os.waitstatus_to_exitcode(_count(record.status))
        if not isinstance(record.log, str) or record.was_terminated not in {True, False, None}:
            raise ValueError(value)
        if not isinstance(record.duration, int | float) or not 0 <= record.duration < float("inf"):
            raise ValueError(value)
        return record._replace(rank=_count(record.rank), pid=_count(record.pid))


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31:
        return value
    raise ValueError(value)
