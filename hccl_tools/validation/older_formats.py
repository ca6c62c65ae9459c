"""Check two older formats that HCCL still reads: version 1.1, and the "lab" form of a group_list.

Each has its own rules; a table without faults is then checked as the table that HCCL derives from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.formats.file_kinds import LAB, VERSION_1_1
from hccl_tools.rules import version_1_1
from hccl_tools.rules.legacy_formats import as_table
from hccl_tools.rules.registry import Input, InputFacts, Subject, rules_for

if TYPE_CHECKING:
    from hccl_tools.rules.findings import Findings


def judge_version_1_1(subject: Input, findings: Findings) -> None:
    """Collect the findings on a table of version 1.1, in its own keys."""
    if findings.run(rules_for(VERSION_1_1.name), subject):
        return
    table = version_1_1.as_table(subject.value)
    seen_as = Subject(Input(InputFacts(subject.product)), table, is_version_1_1=True)
    before = len(findings.kept)
    findings.run((rule for rule in rules_for("1.0") if rule.facts.id in version_1_1.LATER), seen_as)
    findings.kept[before:] = version_1_1.in_own_keys(findings.kept[before:])


def judge_lab(given: Input, findings: Findings) -> Input:
    """Collect the findings on a lab table; return a valid one as a ``Subject``."""
    if findings.run(rules_for(LAB.name), given):
        return given
    subject = Subject(given, as_table(given.value))
    later = (rule for rule in rules_for("group_list") if rule.stage in ("check", "topology"))
    findings.run(later, subject)
    return subject
