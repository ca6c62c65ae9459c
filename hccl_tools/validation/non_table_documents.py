"""Check documents that are not rank tables for hccl-tools.

HCCL reads version 1.1 and the old "lab" form of a group_list. Each has its own rules; a table without faults
is then checked as the table that HCCL derives from it. Service tables have rules of their own alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.formats.xllm import is_mixture
from hccl_tools.rules import version_1_1
from hccl_tools.rules.legacy_formats import as_table
from hccl_tools.rules.registry import DamagedInput, Input, InputFacts, Subject, rules_for
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


def is_one(subject: Input, found: Detection) -> bool:
    """Return whether a document is a table in one of these forms and the product reads it."""
    if found.format == "group_list":
        return "deploy_mode" in subject.value and found.format in subject.product.formats
    return found.heterogeneous and subject.product.loader == "legacy"


def check(subject: Input, found: Detection, findings: Findings) -> Input:
    """Collect the findings on a table in one of the forms, and return a valid lab table as a ``Subject``."""
    if not found.heterogeneous:
        return _judge_lab(subject, findings)
    _judge_heterogeneous(subject, findings)
    return subject


def _judge_heterogeneous(subject: Input, findings: Findings) -> None:
    if findings.run(rules_for("1.1"), subject):
        return
    table = version_1_1.as_table(subject.value)
    seen_as = Subject(Input(InputFacts(subject.product)), table, is_version_1_1=True)
    before = len(findings.kept)
    findings.run((rule for rule in rules_for("1.0") if rule.facts.id in version_1_1.LATER), seen_as)
    findings.kept[before:] = version_1_1.in_own_keys(findings.kept[before:])


def _judge_lab(given: Input, findings: Findings) -> Input:
    if findings.run(rules_for("lab"), given):
        return given
    subject = Subject(given, as_table(given.value))
    later = (rule for rule in rules_for("group_list") if rule.stage in ("check", "topology"))
    findings.run(later, subject)
    return subject


def check_mixture(
    subject: Input, findings: Findings, judge: Callable[[Input, Format, Findings], Input]
) -> None:
    """Collect the findings on the servers in ``group_list`` of xLLM's mixture; see ``mixtures.check``."""
    if "group_list" not in subject.value:
        return
    if is_mixture(subject.value):
        mixtures.check(subject, findings, judge)


def check_service(subject: Input, findings: Findings) -> None:
    """Collect the findings on a service table."""
    from hccl_tools.formats.service import is_well_formed  # noqa: PLC0415  (0.8 ms; rarely needed)
    from hccl_tools.rules.service_structure import service_table  # noqa: PLC0415  (2 ms; rarely needed)

    findings.run((rule for rule in rules_for(None) if rule.facts.id not in _FOR_HCCL), subject)
    if not is_well_formed(subject.value, service_table(subject)):
        from hccl_tools.formats.schema import Violations  # noqa: PLC0415  (13 ms; only for damaged service tables)

        subject = DamagedInput(subject, Violations(subject.value, SERVICE, findings.limit))
    findings.run(rules_for(SERVICE), subject)


def reader(subject: Input) -> Reader:
    """Return the program for which a service table was made."""
    from hccl_tools.rules.service_structure import service_table  # noqa: PLC0415  (1.2 ms; rarely needed)

    return service_table(subject).reader
