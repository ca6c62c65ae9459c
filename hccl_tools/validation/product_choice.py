"""Choose the product for which to check a table.

The order is the same for every command: the option, the variable, the product of this host's NPUs if it
reads the format, that of simulated machines by their addresses, else the product that is assumed for the
table. For a job on this host its product counts anyway.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import simulated, site_defaults
from hccl_tools.host.visible import present
from hccl_tools.rules.findings import Findings
from hccl_tools.rules.registry import BESIDE_HCCL, Subject, rule_by_id, rules_for
from hccl_tools.rules.topology import device_sets
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.product_names import read_name
from hccl_tools.table.products import PRODUCT_VARIABLE, PRODUCTS, assume

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

#: The format of tables on machines that have endpoint files and a root info.
_FORMAT_OF_HOST_FILES = "2.0"
#: Why the product of a table of simulated machines is known.
BY_SIMULATION = "by the addresses, which are those of simulated machines"


def product_of(table: RankTable, name: str | None = None) -> Product:
    """Return the product for which ``check_table`` checks a table; ``name`` is the user's choice."""
    subject = Subject(assume(table.format)[0], table=table)
    choose(subject, name, table.format)
    refine(subject)
    return subject.product


def choose(
    subject: Subject, name: str | None, table_format: str | None, *, on_this_host: bool = False
) -> None:
    """Set the product for a document of a format.

    Args:
        name: The user's choice.
        on_this_host: Whether the table is for this host, whose product may not read the format.
    """
    variable = os.environ.get(PRODUCT_VARIABLE)
    if name:
        reading, reason = read_name(name), "as given"
    elif variable:
        source = site_defaults.origin(PRODUCT_VARIABLE, os.environ)
        reading, reason = read_name(variable, origin=PRODUCT_VARIABLE), f"from {source}"
    else:
        _choose_by_host(subject, table_format, on_this_host=on_this_host)
        return
    subject.product = reading.product
    subject.product_reason = f"{reason}: {reading.note}" if reading.note else reason


def _choose_by_host(subject: Subject, table_format: str | None, *, on_this_host: bool) -> None:
    if subject.kind not in (None, SERVICE):
        subject.product, subject.product_reason = assume(_FORMAT_OF_HOST_FILES)[0], "assumed for such files"
    elif (own := _own_product()) is not None and (on_this_host or table_format in own[0].formats):
        subject.product, source = own
        subject.product_reason = f"the product of this host, by {source}"
        return
    else:
        subject.product, subject.product_reason = assume(table_format)
    subject.product_is_assumed = True


def _own_product() -> tuple[Product, str] | None:
    """Return the product of this host's NPUs and its source."""
    nodes = present(site_defaults.Site())
    variables = (os.environ.get(site_defaults.ROOT_VARIABLE, ""), os.environ.get("PATH", ""))
    return _product_with(nodes, variables) if nodes else None


@lru_cache(maxsize=4)
def _product_with(_nodes: tuple[int, ...], _variables: tuple[str, str]) -> tuple[Product, str] | None:
    """Ask the host once, as a command may read thousands of tables; the answer depends on the arguments."""
    from hccl_tools.host import host  # noqa: PLC0415  (2 ms; only with NPUs)

    try:
        found, source = host.find_product(site_defaults.Site())
    except DiscoveryError:  # Cards of several products.
        return None
    return (PRODUCTS[found], source) if found is not None else None


def refine(subject: Subject) -> None:
    """Update the assumed product after reading the addresses, and the number of devices of each server."""
    if not subject.product_is_assumed:
        return
    table_format = subject.table.format
    if (known := simulated.product_of(subject.table)) is not None:
        subject.product, subject.product_reason = known, BY_SIMULATION
        subject.product_is_assumed = False
        return
    takers = sum(table_format in product.formats for product in PRODUCTS.values())
    if takers > 1:
        sizes = {len(set(devices)) for devices in set(device_sets(subject).values())}
        subject.product, subject.product_reason = assume(table_format, max(sizes, default=0))


def accepted_on(subject: Subject, findings: Findings) -> str:
    """Return the name of a product on which a table has no error; "" if none, or if the product is known.

    Args:
        subject: The table after the check for the assumed product.
        findings: What that check found.
    """
    errors = [rule for rule in findings.counts if rule.severity == "error" and findings.chosen(rule)]
    if not errors or not subject.product_is_assumed or subject.table is None or subject.damaged:
        return ""
    if any(rule_by_id(rule.id).formats in BESIDE_HCCL for rule in errors):
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
    other = Subject(
        product, subject.value, subject.document, subject.path, table=subject.table, env=subject.env
    )
    # Most faults are faults on each product: the rules that failed decide, by their first finding.
    if any(next(iter(rule_by_id(one).check(other)), None) is not None for one in failed):
        return False
    trial = Findings(0, findings.chosen)
    trial.run(rules_for(None), other)
    trial.run(rules_for(subject.table.format), other)
    return not any(rule.severity == "error" and findings.chosen(rule) for rule in trial.counts)
