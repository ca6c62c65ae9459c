"""Findings of all hosts as one list, equal ones folded, the worst first."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import CONSEQUENCES, NOT_EXAMINED, all_checks, quick_checks
from hccl_tools.notation.phrases import shortened
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.doctor.registry import Check, Consequence, Finding

#: What follows from a rule of ``validate`` on the same host: one host is two servers there.
_OF_RULES = {"HCC552": ("HCD511", "HCD521", "HCD526")}
#: Rules of ``validate`` that say what could not be looked at.
_UNKNOWN = frozenset({NOT_EXAMINED, "HCC643"})


class Place(NamedTuple):
    """Where a finding is in the table; as text ``table.json:12:9``."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """As compilers write it."""
        return f"{self.file}:{self.line}:{self.column}"


class HostFinding(NamedTuple):
    """A finding on some hosts.

    Attributes:
        check: The id of the check, or of a rule of ``validate --local``.
        place: Its place in the table, ``None`` if it is about none.
        commands: Lines of a shell script that remedy it or help to, with every value quoted.
    """

    check: str
    name: str
    consequence: Consequence
    message: str
    hosts: tuple[str, ...]
    devices: tuple[int, ...] = ()
    remedy: str = ""
    source: str = ""
    place: Place | None = None
    commands: tuple[str, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether this says what could not be looked at."""
        return self.check in _UNKNOWN

    def counts(self, *, strict: bool) -> bool:
        """Return whether this would stop the job; ``strict`` counts all but plain notes."""
        return self.consequence == "stops" or (strict and (self.consequence != "note" or self.is_unknown))


class Examination(NamedTuple):
    """The result.

    Attributes:
        hosts: The hosts that were looked at, and those that did not answer.
        findings: The findings, the worst first.
        asked: Id and name of the checks that were asked, by host.
    """

    hosts: tuple[str, ...]
    findings: tuple[HostFinding, ...]
    table: str | None = None
    asked: Mapping[str, tuple[tuple[str, str], ...]] = {}

    def fails(self, *, strict: bool = False) -> bool:
        """Return whether a finding would stop the job; ``strict`` counts all findings but plain notes."""
        return any(one.counts(strict=strict) for one in self.findings)


def judge(host: str, case: Case, *, quick: bool = False) -> Iterator[HostFinding]:
    """Yield the findings of all checks on one host; ``quick``: of the checks before a start."""
    for check in checks_of(case, quick_checks() if quick else None):
        for found in check.find(case):
            yield host_finding(check, found, host)


def checks_of(case: Case, checks: Mapping[str, Check] | None = None) -> list[Check]:
    """Return the checks that apply to one host alone, of all checks or of some."""
    return [
        check
        for check in (all_checks() if checks is None else checks).values()
        if not check.between
        and (not check.products or case.product in check.products)
        and not (case.cpu and check.of_npus)
    ]


def compare(cases: Mapping[str, Case]) -> Iterator[HostFinding]:
    """Yield what the checks that compare hosts find."""
    cpu = any(case.cpu for case in cases.values())
    for check in all_checks().values():
        for found in check.find(cases) if check.between and not (cpu and check.of_npus) else ():
            yield host_finding(check, found, *found.hosts)


def without_consequences(findings: Sequence[HostFinding]) -> Iterator[HostFinding]:
    """Yield the findings without those that another finding on the same host explains."""
    checks = all_checks()
    explained = {
        (host, consequence)
        for one in findings
        for host in one.hosts
        for consequence in (
            checks[one.check].explains if one.check in checks else _OF_RULES.get(one.check, ())
        )
    }
    for one in findings:
        hosts = tuple(host for host in one.hosts if (host, one.check) not in explained)
        if hosts:
            yield one._replace(hosts=hosts)


def host_finding(check: Check, found: Finding, *hosts: str) -> HostFinding:
    """Return a finding of a check on some hosts."""
    remedy = found.remedy or check.remedy
    if found.devices:
        remedy = remedy.replace("{device}", shlex.quote(str(found.devices[0])))
    consequence = found.consequence or check.consequence
    return HostFinding(
        check.id, check.name, consequence, shortened(found.message), hosts, found.devices,
        remedy.replace("{device}", "N"), check.source, commands=_commands(check, found),
    )  # fmt: skip


def _commands(check: Check, found: Finding) -> tuple[str, ...]:
    if found.commands is not None:
        return tuple(map(shlex.join, found.commands))
    if found.remedy is not None:
        return ()
    return tuple(
        dict.fromkeys(
            text.replace("{device}", shlex.quote(str(device)))
            for device in found.devices or ("",)
            for text in check.commands
            if device != "" or "{device}" not in text
        )
    )


def folded(findings: Iterable[HostFinding], order: Sequence[str]) -> tuple[HostFinding, ...]:
    """Return the findings with equal ones of several hosts as one, the worst first."""
    alike: dict[HostFinding, list[str]] = {}
    for one in findings:
        alike.setdefault(one._replace(hosts=()), []).extend(one.hosts)
    place = {host: number for number, host in enumerate(order)}
    found = [
        one._replace(hosts=tuple(sorted(place.keys() & hosts, key=place.__getitem__)))
        for one, hosts in alike.items()
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
