"""Hosts that did not answer: the reason for each, and the error that lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError
from hccl_tools.notation.host_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.programs.install_hints import HCCL_TOOLS, MPI
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.gathering.messages import SurveyAnswer

#: Hints for hosts without mpi4py or hccl-tools.
MPI4PY_MISSING_HINT = f"install it: {MPI}"
HCCL_TOOLS_MISSING_HINT = f"install it there: {HCCL_TOOLS}"
#: The number of hosts that are listed individually.
_SHOWN = 20


class Failure(NamedTuple):
    """A host that did not answer, the problem on it, and a hint."""

    host: str
    message: str
    hint: str | None = None

    def lines(self) -> list[str]:
        """Return the failure as lines of a message."""
        return [f"  {self.host}: {self.message}", *([f"    help: {self.hint}"] if self.hint else [])]


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
    """Return the first failures in full, and the names of the other hosts, as lines."""
    lines = [line for failure in failures[:_SHOWN] for line in failure.lines()]
    if rest := failures[_SHOWN:]:
        lines.append(f"  and {len(rest)} more: {fold(failure.host for failure in rest)}")
    return lines


def no_answer(failures: Sequence[Failure], total: int) -> GatheringError:
    """Return the error for hosts that did not return facts."""
    return GatheringError(
        f"{len(failures)} of {count(total, 'host')} did not answer",
        lines=listed(failures),
        hint="--allow-missing makes the table without these hosts" if len(failures) < total else None,
    )
