"""The part of the report about the rank that failed first; the hosts of a job exchange it."""

from __future__ import annotations

from typing import Any, get_origin, get_type_hints

from hccl_tools.records import NamedTuple


class RankFailure(NamedTuple):
    """How the rank that failed first ended, with extracts of its log; report.json has the same fields.

    ``exit_code`` is the exit code in a shell, ``signal`` a name. ``duration`` and ``cpu`` are in seconds.
    ``asked_to_end`` tells whether the rank was terminated. ``plog`` is the folder of its CANN logs.
    ``log_host`` is the host of the logs, if not the host that reports the failure.
    """

    rank: int
    name: str
    host: str = ""
    device: int = 0
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    how: str = ""
    duration: float | None = None
    cpu: float = 0.0
    peak_memory_kib: int = 0
    asked_to_end: bool | None = None
    log: str = ""
    plog: str | None = None
    log_host: str | None = None
    hints: list[str] = []  # noqa: RUF012  (read only)
    hccl_codes: list[str] = []  # noqa: RUF012
    traceback: list[str] = []  # noqa: RUF012
    last_lines: list[str] = []  # noqa: RUF012

    @classmethod
    def parse(cls, value: Any) -> RankFailure:
        """Return the record of a JSON object.

        Raises:
            TypeError: A value is missing, unknown or of another type.
        """
        record = cls(**value)
        for name, kind in get_type_hints(cls).items():
            found = getattr(record, name)
            if not (_is_texts(found) if get_origin(kind) is list else isinstance(found, kind)):
                raise TypeError(f"{name}: {found!r}")
        return record


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
