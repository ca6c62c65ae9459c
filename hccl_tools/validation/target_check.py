"""Check a table for the framework that reads it (``--target``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import KEPT, Diagnostic
from hccl_tools.rules.findings import Findings
from hccl_tools.rules.registry import TARGETS, Subject, rules_for
from hccl_tools.table.products import assume

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable


def check(target: str, subject: Subject, findings: Findings) -> str:
    """Apply the rules of a framework to the table, and return its name if all are chosen, else ""."""
    subject.memo = {}
    rules = rules_for(target)
    findings.run(rules, subject)
    return TARGETS[target] if all(findings.chosen(rule.facts) for rule in rules) else ""


def for_target(table: RankTable, target: str) -> tuple[Diagnostic, ...]:
    """Return what the rules of a framework (``registry.TARGETS``) find in a table in memory."""
    findings = Findings(KEPT, lambda _rule: True)
    findings.run(rules_for(target), Subject(assume(table.format)[0], table=table))
    return tuple(findings.kept)
