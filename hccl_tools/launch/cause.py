"""Why a job whose command was typed on every host ends, in words that its hosts send each other."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from hccl_tools.launch.model.outcome import LAUNCHER_FAILED, Reason
from hccl_tools.launch.processes.signal_names import signal_name


class Cause(NamedTuple):
    """Why the end of a job has begun on one of its hosts, as that host tells the others.

    ``exit_code`` is the job's on all of them; ``first_failure`` is the report's part on the rank that failed.
    """

    host: str
    reason: Reason
    exit_code: int
    detail: str = ""
    signal: int = 0
    first_failure: dict[str, Any] | None = None

    @classmethod
    def of(cls, told: Any, host: str) -> Cause:
        """Return what a host has told; of what cannot be understood only that it was told."""
        try:
            cause = cls(**told)
            first = cause.first_failure
            known = cause.reason in get_args(Reason) and 0 <= cause.exit_code < 256 and cause.signal >= 0
            if known and (cause.reason != "failed" or {"name", "how", "rank"} <= set(first or {})):
                return cause
        except TypeError:
            pass
        return cls(host, "refused", LAUNCHER_FAILED, "its launcher speaks another language")

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return self._asdict()

    @property
    def said(self) -> str:
        """What happened, in a sentence."""
        if self.first_failure:
            return f"{self.first_failure['name']} on {self.host} failed first: {self.first_failure['how']}"
        sentences = {
            "timeout": f"the job exceeded --timeout on {self.host}",
            "signal": f"the launcher on {self.host} received {signal_name(self.signal)}",
            "keeper": f"the keeper process on {self.host} was killed, and every rank there with it",
            "refused": f"{self.host} does not start its part: {self.detail}",
            "host": self.detail,
            "daemon": self.detail,
        }
        return sentences.get(self.reason, f"{self.host}: {self.detail or self.reason}")
