"""Choose the product for which to check a table: the user's choice, else the assumed product."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.rules.registry import Subject
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.product_names import read_name
from hccl_tools.table.products import PRODUCT_VARIABLE, PRODUCTS, assume

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

#: The format of tables on machines that have endpoint files and a root info.
_FORMAT_OF_HOST_FILES = "2.0"


def product_of(table: RankTable, name: str | None = None) -> Product:
    """Return the product for which ``check_table`` checks a table; ``name`` is the user's choice."""
    subject = Subject(assume(table.format)[0], table=table)
    choose(subject, name, table.format)
    refine(subject)
    return subject.product


def choose(subject: Subject, name: str | None, table_format: str | None) -> None:
    """Set the product to the user's choice, else to the product assumed for the format."""
    variable = os.environ.get(PRODUCT_VARIABLE)
    if name:
        reading, reason = read_name(name), "as given"
    elif variable:
        reading, reason = read_name(variable, origin=PRODUCT_VARIABLE), f"from {PRODUCT_VARIABLE}"
    else:
        if subject.kind in (None, SERVICE):
            subject.product, subject.product_reason = assume(table_format)
        else:
            subject.product = assume(_FORMAT_OF_HOST_FILES)[0]
            subject.product_reason = "assumed for such files"
        subject.product_is_assumed = True
        return
    subject.product = reading.product
    subject.product_reason = f"{reason}: {reading.note}" if reading.note else reason


def refine(subject: Subject) -> None:
    """Update the assumed product after reading the number of devices of each server."""
    table_format = subject.table.format
    takers = sum(table_format in product.formats for product in PRODUCTS.values())
    if subject.product_is_assumed and takers > 1:
        from hccl_tools.rules.topology import device_sets  # noqa: PLC0415  (loaded for such tables anyway)

        sizes = {len(set(devices)) for devices in set(device_sets(subject).values())}
        subject.product, subject.product_reason = assume(table_format, max(sizes, default=0))
