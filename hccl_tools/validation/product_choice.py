"""For which product a table is judged: the one that is named, else the one to be assumed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.rules.registry import Subject
from hccl_tools.table.products import PRODUCT_VARIABLE, assume, read_name

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

#: The formats of more than one product.
_LEGACY = ("1.0", "1.2", "group_list")


def product_of(table: RankTable, name: str | None = None) -> Product:
    """Return for which product ``check_table`` judges a table; ``name`` is the one that was named."""
    subject = Subject(assume(table.format)[0], table=table)
    choose(subject, name, table.format)
    assume_anew(subject)
    return subject.product


def choose(subject: Subject, name: str | None, table_format: str | None) -> None:
    """Set for which product a table is judged: the one that was named, else the one to be assumed."""
    variable = os.environ.get(PRODUCT_VARIABLE)
    if name:
        reading, reason = read_name(name), "as told"
    elif variable:
        reading, reason = read_name(variable, origin=PRODUCT_VARIABLE), f"from {PRODUCT_VARIABLE}"
    else:
        subject.product, subject.product_reason = assume(table_format)
        subject.product_is_assumed = True
        return
    subject.product = reading.product
    subject.product_reason = f"{reason}: {reading.note}" if reading.note else reason


def assume_anew(subject: Subject) -> None:
    """Assume a product again, now that it is known how many devices the servers of the table have."""
    if subject.product_is_assumed and subject.table.format in _LEGACY:
        from hccl_tools.rules.topology import device_sets  # noqa: PLC0415  (loaded for such tables anyway)

        sizes = {len(set(devices)) for devices in set(device_sets(subject).values())}
        subject.product, subject.product_reason = assume(subject.table.format, max(sizes, default=0))
