"""Check a table for the framework that reads it (``--target``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import KEPT, Diagnostic
from hccl_tools.formats.file_kinds import NOT_FOR_TARGETS, RANK_TABLE, TARGETS
from hccl_tools.rules.findings import Findings
from hccl_tools.rules.registry import Input, InputFacts, ServiceInput, Subject, chosen, rules_for
from hccl_tools.table.products import assume

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.rules.registry import Rule
    from hccl_tools.table.model import RankTable


def check(target: str, subject: Input, findings: Findings) -> str:
    """Apply the rules of a framework to the table, and return its name if all are chosen, else "".

    A file of another kind, which has readers of its own, is reported as one that the framework does not read.
    """
    if subject.kind is not RANK_TABLE and not _is_read_by(target, subject):
        findings.run(map(partial(_as_read_by, target), rules_for(NOT_FOR_TARGETS.name)), subject)
    rules = rules_for(target) if isinstance(subject, Subject) else []
    findings.run(rules, subject)
    return TARGETS[target] if rules and all(findings.chosen(rule.facts) for rule in rules) else ""


def _is_read_by(target: str, subject: Input) -> bool:
    """Whether the file is a service table of MindIE, whose own rules apply to it."""
    return target == "mindie" and isinstance(subject, ServiceInput) and subject.reader == "MindIE-Motor"


def _as_read_by(target: str, rule: Rule) -> Rule:
    """Return a rule on other files with the name of the framework that does not read them."""
    return rule._replace(facts=rule.facts._replace(reader=TARGETS[target]))


def for_target(table: RankTable, target: str, ignore: Sequence[str] = ()) -> tuple[Diagnostic, ...]:
    """Return what the rules of a framework (``file_kinds.TARGETS``) find in a table in memory.

    Raises:
        UsageError: A selector of ``ignore`` matches no rule.
    """
    findings = Findings(KEPT, chosen((), ignore))
    findings.run(rules_for(target), Subject(Input(InputFacts(assume(table.format)[0])), table))
    return tuple(findings.kept)
