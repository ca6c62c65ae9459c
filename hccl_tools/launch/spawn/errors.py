"""The exceptions of ``spawn``: an invalid option, or the failure of a rank."""

from __future__ import annotations

from typing import Any

from hccl_tools.errors import HcclToolsError, UsageError
from hccl_tools.records import NamedTuple


class SpawnOptionError(UsageError, ValueError):
    """An option of ``spawn`` is unknown or contradicts another."""


class RankFacts(NamedTuple):
    """A rank of ``spawn`` and its end: ``exit_code`` as in a shell, ``signal`` by name."""

    rank: int
    device: int
    pid: int
    exit_code: int
    signal: str | None
    log: str

    @property
    def name(self) -> str:
        """``rank 3``, or ``scheduler`` for MindSpore's scheduler."""
        return "scheduler" if self.rank < 0 else f"rank {self.rank}"


class RankFailedError(HcclToolsError):
    """The first rank of ``spawn`` that has failed.

    If the rank's function raised an exception, this error is also of the type of that exception
    (``except ValueError`` works), has its attributes, and has it as its cause.

    Attributes:
        facts: Rank, device, pid, exit code, signal and log.
        traceback: The rank's traceback as text, "" if the function raised no exception.
        details: The message below its first line: the traceback, or the last lines of the log.
    """

    def __init__(self, facts: RankFacts, traceback: str = "", *, details: str = "") -> None:
        how = f"was killed by {facts.signal}" if facts.signal else f"exited with code {facts.exit_code}"
        where = f"device {facts.device}, " if facts.rank >= 0 else ""
        what = f"{facts.name} ({where}pid {facts.pid}) {how}; log: {facts.log}"
        details = details or traceback
        # Without super(): the next class may be the original exception's, with other __init__ arguments.
        self.message, self.hint = f"{what}\n\n{details}" if details else what, None
        self.args = (self.message,)
        self.facts = facts
        self.traceback = traceback
        self.details = details

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts, because the combined type exists only in this process."""
        return failure, (self.facts, self.traceback, self.__cause__, self.details)

    def __str__(self) -> str:
        """Return the whole message; the original exception's type may format its arguments differently."""
        return self.message

    @property
    def rank(self) -> int:
        """The rank that failed."""
        return self.facts.rank

    @property
    def device(self) -> int:
        """The device of the rank."""
        return self.facts.device

    @property
    def pid(self) -> int:
        """The process id of the rank."""
        return self.facts.pid

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended the rank; ``None`` if the rank exited."""
        return self.facts.signal

    @property
    def rank_exit_code(self) -> int:
        """The exit code of the rank, 128+n for signal n."""
        return self.facts.exit_code


def failure(
    facts: RankFacts, traceback: str, original: BaseException | None, details: str = ""
) -> RankFailedError:
    """Return the error for a rank's end, also of the type of ``original`` if Python allows this."""
    kind: type[RankFailedError] = RankFailedError
    if original is not None and not isinstance(original, HcclToolsError):
        try:
            kind = type(type(original).__name__, (RankFailedError, type(original)), {"__module__": __name__})
            error = kind.__new__(kind)
        except TypeError:
            error = RankFailedError.__new__(RankFailedError)
    else:
        error = RankFailedError.__new__(RankFailedError)
    for name, value in getattr(original, "__dict__", {}).items():
        setattr(error, name, value)
    RankFailedError.__init__(error, facts, traceback, details=details)
    error.__cause__ = original
    return error
