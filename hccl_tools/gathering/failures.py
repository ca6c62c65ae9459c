"""Hosts that did not answer: the reason for each, and the error that lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError
from hccl_tools.gathering.messages import SAME_VERSION_HINT
from hccl_tools.notation.host_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import one_line_each
from hccl_tools.programs.lookup import HCCL_TOOLS, MPI
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.gathering.messages import SurveyAnswer

#: Hints for hosts without mpi4py or hccl-tools.
MPI4PY_MISSING_HINT = f"install it: {MPI}"
HCCL_TOOLS_MISSING_HINT = f"install it there: {HCCL_TOOLS}"
#: What a host may advise in the name of this program: it is the text of this program.
_KNOWN_HINTS = frozenset({MPI4PY_MISSING_HINT, HCCL_TOOLS_MISSING_HINT, SAME_VERSION_HINT})
#: The number of different failures that are listed.
_SHOWN = 20


class Failure(NamedTuple):
    """A host that did not answer.

    Attributes:
        host: The host.
        message: The problem, which may be a text of the host.
        hint: What this program advises.
        advice: What the host advises, which is shown as its words.
        answered: Whether the host answered, with the reason why it has no facts.
    """

    host: str
    message: str
    hint: str | None = None
    advice: str | None = None
    answered: bool = False

    @classmethod
    def of_answer(cls, answer: SurveyAnswer) -> Failure:
        """Return the failure that a host reports, or that its answer is."""
        message = answer.message or "its answer has neither a result nor a reason"
        is_own = answer.refusal_hint is not None or answer.hint in _KNOWN_HINTS
        hint = answer.refusal_hint or answer.hint if is_own else None
        failure: Failure = one_line_each(
            cls(answer.host, message, hint, None if is_own else answer.hint, answered=True)
        )
        return failure

    @property
    def reason(self) -> str:
        """The problem and what the host advises, on one line."""
        return f"{self.message}; {self.host} says: {self.advice}" if self.advice else self.message

    def lines(self, hosts: Sequence[str] = ()) -> list[str]:
        """Return the failure as lines of a message; with all hosts that have the same one."""
        lines = [f"  {fold(hosts) if hosts else self.host}: {self.message}"]
        if self.advice:
            lines.append(f"    {self.host} says: {self.advice}")
        if self.hint:
            lines.append(f"    help: {self.hint}")
        return lines


class Gathered(NamedTuple):
    """The answers with facts, in the order of the hosts, and the failures of the other hosts."""

    answers: list[SurveyAnswer]
    left_out: list[Failure]


class GatheringError(HcclToolsError):
    """A table cannot be made: a host did not answer, or the hosts are not consistent.

    ``problem`` is the cause alone, ``undone`` what is not done because of it.
    """

    def __init__(
        self,
        problem: str,
        *,
        hint: str | None = None,
        lines: Sequence[str] = (),
        undone: str = "no table is written",
    ) -> None:
        super().__init__(f"{undone}: {problem}", hint=hint, lines=lines)
        self.problem = problem


def listed(failures: Sequence[Failure]) -> list[str]:
    """Return the first failures in full, equal ones once, and the names of the other hosts, as lines."""
    groups: dict[Failure, list[str]] = {}
    for failure in failures:
        groups.setdefault(failure._replace(host=""), []).append(failure.host)
    shown = list(groups.items())
    lines = [line for same, hosts in shown[:_SHOWN] for line in same._replace(host=hosts[0]).lines(hosts)]
    if rest := [host for _same, hosts in shown[_SHOWN:] for host in hosts]:
        lines.append(f"  and {len(rest)} more: {fold(rest)}")
    return lines


def no_answer(failures: Sequence[Failure], total: int) -> GatheringError:
    """Return the error for hosts that did not return facts."""
    answered = sum(failure.answered for failure in failures)
    what = [
        f"{number} of {count(total, 'host')} {fault}"
        for number, fault in (
            (len(failures) - answered, "did not answer"),
            (answered, "answered, but named no device"),
        )
        if number
    ]
    return GatheringError(
        ", and ".join(what),
        lines=listed(failures),
        hint="--allow-missing makes the table without these hosts" if len(failures) < total else None,
    )
