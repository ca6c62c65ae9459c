"""Why a host has not answered, in its own words; and the error that names all such hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import HcclToolsError
from hccl_tools.notation.host_list import fold
from hccl_tools.programs.install_hints import MPI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.gathering.messages import SurveyAnswer

MPI4PY_MISSING_HINT = f"install it: {MPI}"
#: Hosts that are named one by one.
_SHOWN = 20


class Failure(NamedTuple):
    """One host, what is wrong there, and what to do about it."""

    host: str
    message: str
    hint: str | None = None

    def told(self) -> list[str]:
        """Return it as lines for the user to read."""
        return [f"  {self.host}: {self.message}", *([f"    help: {self.hint}"] if self.hint else [])]


class Gathered(NamedTuple):
    """The answers with facts, in the order of the hosts, and the hosts that are left out."""

    answers: list[SurveyAnswer]
    left_out: list[Failure]


class GatheringError(HcclToolsError):
    """No table can be made, as not every host has answered, or they do not fit together."""


def told(failures: Sequence[Failure]) -> str:
    """Return the failures as text; of very many the first ones, and the names of the rest."""
    lines = [line for failure in failures[:_SHOWN] for line in failure.told()]
    if rest := failures[_SHOWN:]:
        lines.append(f"  and {len(rest)} more: {fold(failure.host for failure in rest)}")
    return "\n".join(lines)


def missing(failures: Sequence[Failure], asked: int) -> GatheringError:
    """Return the error for hosts that have not answered as they should."""
    have = "has" if len(failures) == 1 else "have"
    return GatheringError(
        f"no table is written: {len(failures)} of {asked} hosts {have} not answered\n{told(failures)}",
        hint="--allow-missing makes the table of the others" if len(failures) < asked else None,
    )
