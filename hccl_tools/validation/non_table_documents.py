"""Check documents that are not rank tables for hccl-tools.

HCCL reads version 1.1 and the old "lab" form of a group_list. Each has its own rules; a table without faults
is then checked as the table that HCCL derives from it. Service tables have rules of their own alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.formats.xllm import is_mixture
from hccl_tools.rules import version_1_1
from hccl_tools.rules.legacy_formats import as_table
from hccl_tools.rules.registry import Subject, rules_for
from hccl_tools.table.format_names import SERVICE
from hccl_tools.validation import mixtures

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.formats import Detection
    from hccl_tools.rules.findings import Findings
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.service_table import Reader

#: The rules on documents that are HCCL's alone: file name, size, variables, format, and text after the table.
_FOR_HCCL = frozenset(
    {"HCC102", "HCC103", "HCC109", "HCC110", "HCC116", "HCC602", "HCC617", "HCC618", "HCC660"}
)


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
    if findings.run(rules_for("1.1"), subject):
        return
    seen_as = Subject(subject.product, table=version_1_1.as_table(subject.value))
    # Version 1.1 never uses the host network, and the rules that report copied entries do not apply to it.
    seen_as.memo = {"rank_0_uses_host": False, "repeated_entries": {}, "servers_again": {}}
    before = len(findings.kept)
    findings.run((rule for rule in rules_for("1.0") if rule.facts.id in version_1_1.LATER), seen_as)
    findings.kept[before:] = version_1_1.in_own_keys(findings.kept[before:])


def _judge_lab(subject: Subject, findings: Findings) -> None:
    if findings.run(rules_for("lab"), subject):
        return
    subject.table = as_table(subject.value)
    later = (rule for rule in rules_for("group_list") if rule.stage in ("check", "topology"))
    findings.run(later, subject)


def check_mixture(
    subject: Subject, findings: Findings, judge: Callable[[Subject, Format, Findings], None]
) -> None:
    """Collect the findings on the servers in ``group_list`` of xLLM's mixture; see ``mixtures.check``."""
    if "group_list" not in subject.value:
        return
    if is_mixture(subject.value):
        mixtures.check(subject, findings, judge)


def check_service(subject: Subject, findings: Findings) -> None:
    """Collect the findings on a service table."""
    from hccl_tools.formats.service import is_well_formed  # noqa: PLC0415  (0.8 ms; rarely needed)
    from hccl_tools.rules.service_structure import service_table  # noqa: PLC0415  (2 ms; rarely needed)

    findings.run((rule for rule in rules_for(None) if rule.facts.id not in _FOR_HCCL), subject)
    if not is_well_formed(subject.value, service_table(subject)):
        from hccl_tools.formats.schema import Violations  # noqa: PLC0415  (13 ms; only for damaged service tables)

        subject.memo["violations"] = Violations(subject.value, SERVICE, findings.limit)
    findings.run(rules_for(SERVICE), subject)


def reader(subject: Subject) -> Reader:
    """Return the program for which a service table was made."""
    from hccl_tools.rules.service_structure import service_table  # noqa: PLC0415  (1.2 ms; rarely needed)

    return service_table(subject).reader
