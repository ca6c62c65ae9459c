"""Findings of all hosts as one list, equal ones folded, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import CONSEQUENCES, NOT_EXAMINED, all_checks
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hccl_tools.doctor.case import Case
    from hccl_tools.doctor.registry import Check, Consequence, Finding

#: Rules of ``validate`` that say what could not be looked at.
_UNKNOWN = frozenset({NOT_EXAMINED, "HCC643"})


class HostFinding(NamedTuple):
    """A finding on some hosts.

    Attributes:
        check: The id of the check, or of a rule of ``validate --local``.
        place: File, line and column in the table, if the finding has one.
    """

    check: str
    name: str
    consequence: Consequence
    message: str
    hosts: tuple[str, ...]
    devices: tuple[int, ...] = ()
    remedy: str = ""
    source: str = ""
    place: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether this says what could not be looked at."""
        return self.check in _UNKNOWN


class Examination(NamedTuple):
    """The result: the hosts that were looked at, and the findings, the worst first."""

    hosts: tuple[str, ...]
    findings: tuple[HostFinding, ...]
    table: str | None = None

    def fails(self, *, strict: bool = False) -> bool:
        """Return whether a finding would stop the job; ``strict`` counts all findings but plain notes."""
        return any(
            one.consequence == "stops" or (strict and (one.consequence != "note" or one.is_unknown))
            for one in self.findings
        )


def judge(host: str, case: Case, *, quick: bool = False) -> Iterator[HostFinding]:
    """Yield the findings of all checks on one host; ``quick``: of the checks before a start."""
    for check in all_checks().values():
        if check.between or (quick and not check.quick):
            continue
        if not check.products or case.product in check.products:
            for found in check.find(case):
                yield host_finding(check, found, host)


def compare(cases: Mapping[str, Case]) -> Iterator[HostFinding]:
    """Yield what the checks that compare hosts find."""
    for check in all_checks().values():
        for found in check.find(cases) if check.between else ():
            yield host_finding(check, found, *found.hosts)


def host_finding(check: Check, found: Finding, *hosts: str) -> HostFinding:
    """Return a finding of a check on some hosts."""
    remedy = found.remedy or check.remedy
    if found.devices:
        remedy = remedy.replace("{device}", str(found.devices[0]))
    consequence = found.consequence or check.consequence
    return HostFinding(
        check.id, check.name, consequence, found.message, hosts, found.devices,
        remedy.replace("{device}", "N"), check.source,
    )  # fmt: skip


def folded(findings: Iterable[HostFinding], order: Sequence[str]) -> tuple[HostFinding, ...]:
    """Return the findings with equal ones of several hosts as one, the worst first."""
    alike: dict[HostFinding, list[str]] = {}
    for one in findings:
        alike.setdefault(one._replace(hosts=()), []).extend(one.hosts)
    place = {host: number for number, host in enumerate(order)}
    found = [
        one._replace(hosts=tuple(sorted(set(hosts), key=place.__getitem__))) for one, hosts in alike.items()
    ]
    return tuple(
        sorted(
            found,
            key=lambda one: (
                CONSEQUENCES.index(one.consequence),
                one.is_unknown,
                one.check,
                place[one.hosts[0]],
            ),
        )
    )
