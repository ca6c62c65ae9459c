"""What ``spawn`` raises: wrong options, and a rank that failed, with everything known about it."""

from __future__ import annotations

from typing import NamedTuple

from hccl_tools.errors import HcclToolsError, UsageError


class SpawnOptionError(UsageError, ValueError):
    """An option of ``spawn`` is unknown or contradicts another."""


class RankFacts(NamedTuple):
    """One rank of ``spawn`` and how it ended: ``exit_code`` as a shell has it, ``signal`` its name."""

    rank: int
    device: int
    pid: int
    exit_code: int
    signal: str | None
    log: str


class RankFailedError(HcclToolsError):
    """A rank of ``spawn`` failed: the first in time.

    Where its function raised an exception, the error that ``spawn`` raises is also of that type
    (``except ValueError`` works) and has the original as its cause.

    Attributes:
        facts: Rank, device, pid, exit code, signal and log.
        traceback: The rank's traceback as text, "" where it was ended otherwise.
    """

    def __init__(self, facts: RankFacts, traceback: str = "") -> None:
        how = f"was ended by {facts.signal}" if facts.signal else f"ended with exit code {facts.exit_code}"
        what = f"rank {facts.rank} (device {facts.device}, pid {facts.pid}) {how}; log: {facts.log}"
        super().__init__(f"{what}\n\n{traceback}" if traceback else what)
        self.facts = facts
        self.traceback = traceback

    def __str__(self) -> str:
        """Return the whole message, whatever the second type of this exception makes of its arguments."""
        return self.message

    @property
    def rank(self) -> int:
        """The rank that failed."""
        return self.facts.rank

    @property
    def device(self) -> int:
        """Its device."""
        return self.facts.device

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.facts.pid

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it, if one did."""
        return self.facts.signal

    @property
    def rank_exit_code(self) -> int:
        """Its exit code, 128+n for signal n."""
        return self.facts.exit_code


def failure(facts: RankFacts, traceback: str, original: Exception | None) -> RankFailedError:
    """Return the error for a rank's end; of the original exception's type too, where Python allows that."""
    kind: type[RankFailedError] = RankFailedError
    if original is not None and not isinstance(original, HcclToolsError):
        try:
            kind = type(type(original).__name__, (RankFailedError, type(original)), {"__module__": __name__})
            error = kind.__new__(kind)
        except TypeError:
            kind, error = RankFailedError, RankFailedError.__new__(RankFailedError)
    else:
        error = RankFailedError.__new__(RankFailedError)
    RankFailedError.__init__(error, facts, traceback)
    error.__cause__ = original
    return error
