"""Check documents that are not rank tables for hccl-tools. Service tables have rules of their own alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools import load_part
from hccl_tools.formats.file_kinds import LAB, SERVICE_TABLE, VERSION_1_1
from hccl_tools.formats.service import is_well_formed
from hccl_tools.rules.registry import DamagedInput, Input, ServiceInput, rules_for
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
    if kind is SERVICE_TABLE:
        return _judge_service(given, findings, violations)
    judged: Input = given
    if kind is LAB:
        judged = load_part("validation.older_formats").judge_lab(given, findings)
    elif kind is VERSION_1_1:
        load_part("validation.older_formats").judge_version_1_1(given, findings)
    else:
        load_part("validation.host_files").check(given, findings, host)
    return judged


def _judge_service(
    given: Input, findings: Findings, violations: Callable[[Any, str, int | None], Violations]
) -> ServiceInput:
    table, rules = service_table(given), rules_for(SERVICE_TABLE.name)
    if is_well_formed(given.value, table):
        findings.run(rules, given)
        return ServiceInput(given, table.reader)
    damaged = DamagedInput(given, violations(given.value, SERVICE_TABLE.name, findings.limit))
    if load_part("validation.repair").has_other_shape(damaged):
        rules = [rule for rule in rules if rule.stage == "structure"]
    findings.run(rules, damaged)
    return ServiceInput(given, table.reader)
