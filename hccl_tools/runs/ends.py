"""How jobs and ranks end, and the texts for it in the report, on other hosts and in the list of jobs."""

from __future__ import annotations

import signal
from typing import Literal

from hccl_tools.records import NamedTuple

Reason = Literal[
    "ended", "failed", "timeout", "hang", "signal", "log-error", "keeper", "host", "daemon", "refused"
]
#: The exit code of a job that exceeded ``--timeout`` or ``--hang-timeout``, the same as that of timeout(1).
_TIMED_OUT = 124
#: The exit code when the launcher itself cannot continue.
_LAUNCHER_FAILED = 125
#: The exit code of a job that lost a required process.
_KILLED = 128 + signal.SIGKILL
#: The descriptions of ranks whose end no agent has reported.
NOT_STARTED, NOT_REPORTED = "not started", "not reported"


class ReasonText(NamedTuple):
    """The texts that report a job that ended for the given reason.

    The texts are templates: ``{host}`` is the host on which the job ended first, ``{detail}`` what was lost
    or refused, ``{signal}`` the signal that the launcher received.
    """

    #: The exit code of the job; 128 + signal and the code of the rank that failed first have precedence.
    exit_code: int
    #: A sentence that is shown on the other hosts.
    message: str = "{host}: {detail}"
    #: The first line of the report, which continues with the time.
    head: str = "the job failed"
    #: The text after the exit code in the last line of the report.
    verdict: str = " is the launcher's own: {detail}"
    #: The state in the list of jobs; if empty, the reason itself.
    state: str = ""
    #: The detail if the end of the job has no detail of its own.
    detail: str = ""


REASONS: dict[str, ReasonText] = {
    "ended": ReasonText(0),
    "failed": ReasonText(1),
    "timeout": ReasonText(
        _TIMED_OUT,
        message="the job exceeded --timeout on {host}",
        head="the job exceeded --timeout",
        verdict=": the job exceeded --timeout",
        state="timed out",
    ),
    "hang": ReasonText(
        _TIMED_OUT,
        message="the job hung: {detail} (reported by {host})",
        head="the job hung",
        verdict=": the job hung: {detail}",
        state="hung",
    ),
    "signal": ReasonText(
        128,
        message="the launcher on {host} received {signal}",
        head="{signal} ended the job",
        verdict=": the launcher received {signal}",
        state="stopped",
    ),
    "log-error": ReasonText(
        _LAUNCHER_FAILED, head="the job was ended because its logs cannot be written", state="disk full"
    ),
    "keeper": ReasonText(
        _KILLED,
        message="the keeper process on {host} was killed, and every rank there with it",
        head="the job's keeper process was killed",
        verdict=" is the launcher's own: {detail}, and every rank with it",
        detail="the job's keeper process was killed",
    ),
    "host": ReasonText(_KILLED, message="{detail}", head="a host of the job was lost", state="host lost"),
    "daemon": ReasonText(
        _KILLED, message="{detail}", head="a process that the job needs was lost", state="process lost"
    ),
    "refused": ReasonText(
        _LAUNCHER_FAILED, message="{host} does not start its part: {detail}", head="the start was aborted"
    ),
}
