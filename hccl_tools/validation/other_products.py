"""Judge a table for the other products, if the product for which it was checked is only assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.rules.findings import Findings
from hccl_tools.rules.registry import Input, Subject, rule_by_id, rules_for
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from hccl_tools.table.products import Product


def accepted_on(subject: Subject, findings: Findings) -> str:
    """Return the name of a product on which a table has no error; "" if none, or if the product is known.

    Args:
        subject: The table after the check for the assumed product.
        findings: What that check found.
    """
    errors = [rule for rule in findings.counts if rule.severity == "error" and findings.chosen(rule)]
    if not errors or not subject.product_is_assumed or subject.damaged:
        return ""
    if any(not rule_by_id(rule.id).kind.is_judged for rule in errors):
        return ""  # Another reader's rules do not depend on the product.
    if any(rule_by_id(rule.id).stage == "structure" for rule in errors):
        return ""  # A table that violates its schema was repaired for the other rules.
    if _is_of_a3(subject):
        return ""  # Another product accepts it only because it does not read what is wrong.
    for product in PRODUCTS.values():
        if product is subject.product or subject.table.format not in product.formats:
            continue
        if _accepts(product, subject, [rule.id for rule in errors], findings):
            return product.name
    return ""


def _is_of_a3(subject: Subject) -> bool:
    """Return whether a table says that it is of an A3: by version 1.2, super pods or their ids."""
    table = subject.table
    there = isinstance(subject.value, dict) and "super_pod_list" in subject.value
    return table.format == "1.2" or there or "super_device_id" in table.columns


def _accepts(product: Product, subject: Subject, failed: list[str], findings: Findings) -> bool:
    facts = subject.facts._replace(product=product, product_is_assumed=False)
    other = Subject(Input(facts), subject.table)
    # Most faults are faults on each product: the rules that failed decide, by their first finding.
    if any(next(iter(rule_by_id(one).check(other)), None) is not None for one in failed):
        return False
    trial = Findings(0, findings.chosen)
    trial.run(rules_for(None), other)
    trial.run(rules_for(subject.table.format), other)
    return not any(rule.severity == "error" and findings.chosen(rule) for rule in trial.counts)
