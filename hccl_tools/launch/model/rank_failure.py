"""The part of the report about the rank that failed first; the hosts of a job exchange it."""

from __future__ import annotations

from hccl_tools.records import Count, ExitCode, Index, NamedTuple, OsText, Seconds, Size


class RankFailure(NamedTuple):
    """How the rank that failed first ended, with extracts of its log; report.json has the same fields.

    ``exit_code`` is the exit code in a shell, ``signal`` a name. ``duration`` and ``cpu`` are in seconds.
    ``asked_to_end`` tells whether the rank was terminated. ``plog`` is the folder of its CANN logs.
    ``log_host`` is the host of the logs, if not the host that reports the failure.
    """

    rank: Index
    name: str
    host: str = ""
    device: Index = 0
    pid: Count | None = None
    exit_code: ExitCode | None = None
    signal: str | None = None
    how: OsText = ""
    duration: Seconds | None = None
    cpu: Seconds = 0.0
    peak_memory_kib: Size = 0
    asked_to_end: bool | None = None
    log: OsText = ""
    plog: OsText | None = None
    log_host: str | None = None
    hints: list[OsText] = []  # noqa: RUF012  (read only)
    hccl_codes: list[str] = []  # noqa: RUF012
    traceback: list[str] = []  # noqa: RUF012
    last_lines: list[str] = []  # noqa: RUF012
