"""Check documents that are not rank tables for hccl-tools.

HCCL reads version 1.1 and the old "lab" form of a group_list. Each has its own rules; a table without faults
is then checked as the table that HCCL derives from it. Service tables have rules of their own alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools import load_part
from hccl_tools.formats.file_kinds import LAB, SERVICE_TABLE, VERSION_1_1
from hccl_tools.formats.service import is_well_formed
from hccl_tools.rules import version_1_1
from hccl_tools.rules.legacy_formats import as_table
from hccl_tools.rules.registry import DamagedInput, Input, InputFacts, ServiceInput, Subject, rules_for
from hccl_tools.rules.service_structure import service_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.formats.file_kinds import FileKind
    from hccl_tools.formats.schema import Violations
    from hccl_tools.host.facts import HostState
    from hccl_tools.rules.findings import Findings
    from hccl_tools.table.model import RankTable


def check(
    kind: FileKind,
    given: Input,
    findings: Findings,
    host: Callable[[RankTable], HostState] | None,
    *,
    violations: Callable[[Any, str, int | None], Violations],
) -> Input:
    """Collect the findings on a file that is not a rank table; ``host`` is that of ``checker.validate``.

    Args:
        violations: Returns what the schema of a format finds in a document.

    Returns:
        The input; a valid lab table as a ``Subject``, a service table as a ``ServiceInput``.
    """
    if kind is LAB:
        return _judge_lab(given, findings)
    if kind is SERVICE_TABLE:
        return _judge_service(given, findings, violations)
    if kind is VERSION_1_1:
        _judge_heterogeneous(given, findings)
    else:
        load_part("validation.host_files").check(given, findings, host)
    return given


def _judge_heterogeneous(subject: Input, findings: Findings) -> None:
    if findings.run(rules_for(VERSION_1_1.name), subject):
        return
    table = version_1_1.as_table(subject.value)
    seen_as = Subject(Input(InputFacts(subject.product)), table, is_version_1_1=True)
    before = len(findings.kept)
    findings.run((rule for rule in rules_for("1.0") if rule.facts.id in version_1_1.LATER), seen_as)
    findings.kept[before:] = version_1_1.in_own_keys(findings.kept[before:])


def _judge_lab(given: Input, findings: Findings) -> Input:
    if findings.run(rules_for(LAB.name), given):
        return given
    subject = Subject(given, as_table(given.value))
    later = (rule for rule in rules_for("group_list") if rule.stage in ("check", "topology"))
    findings.run(later, subject)
    return subject


def _judge_service(
    given: Input, findings: Findings, violations: Callable[[Any, str, int | None], Violations]
) -> ServiceInput:
    table, subject = service_table(given), given
    if not is_well_formed(given.value, table):
        subject = DamagedInput(given, violations(given.value, SERVICE_TABLE.name, findings.limit))
    findings.run(rules_for(SERVICE_TABLE.name), subject)
    return ServiceInput(given, table.reader)
