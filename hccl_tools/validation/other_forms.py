"""Check tables that HCCL reads but hccl-tools does not: version 1.1, and the old "lab" form of a group_list.

Each form has its own rules. A table without faults is then checked as the table that HCCL derives from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.rules.registry import Subject, rules_for

if TYPE_CHECKING:
    from hccl_tools.formats import Detection
    from hccl_tools.rules.findings import Findings


def is_one(subject: Subject, found: Detection) -> bool:
    """Return whether a document is a table in one of these forms and the product reads it."""
    if found.format == "group_list":
        return "deploy_mode" in subject.value and found.format in subject.product.formats
    return found.heterogeneous and subject.product.loader == "legacy"


def check(subject: Subject, found: Detection, findings: Findings) -> None:
    """Collect the findings on a table in one of the forms; ``subject.table`` is set for a valid lab table."""
    if found.heterogeneous:
        _judge_heterogeneous(subject, findings)
    else:
        _judge_lab(subject, findings)


def _judge_heterogeneous(subject: Subject, findings: Findings) -> None:
    from hccl_tools.rules import version_1_1  # noqa: PLC0415  (rarely needed)

    if findings.run(rules_for("1.1"), subject):
        return
    seen_as = Subject(subject.product, table=version_1_1.as_table(subject.value))
    seen_as.memo = {"rank_0_uses_host": False}  # version 1.1 never uses the host network
    before = len(findings.kept)
    findings.run((rule for rule in rules_for("1.0") if rule.facts.id in version_1_1.LATER), seen_as)
    findings.kept[before:] = version_1_1.in_own_keys(findings.kept[before:])


def _judge_lab(subject: Subject, findings: Findings) -> None:
    from hccl_tools.rules.legacy_formats import as_table  # noqa: PLC0415  (rarely needed)

    if findings.run(rules_for("lab"), subject):
        return
    subject.table = as_table(subject.value)
    later = (rule for rule in rules_for("group_list") if rule.stage in ("check", "topology"))
    findings.run(later, subject)
