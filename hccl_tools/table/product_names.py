"""The names of products, and of their chips, machines and SoCs in their usual spellings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.records import NamedTuple
from hccl_tools.table.products import PRODUCTS, Product, with_article

if TYPE_CHECKING:
    from collections.abc import Iterator


class Reading(NamedTuple):
    """The product of a name; ``note`` explains the choice unless the name is the product's own name."""

    product: Product
    note: str | None = None


def read_name(name: str, *, origin: str | None = None) -> Reading:
    """Return the product for a name of a product, chip or machine.

    Case, blanks, hyphens, underscores and a leading "Ascend" or "Atlas" do not matter. Only a SoC name in
    HCCL's spelling is matched exactly: "Ascend910B" is a 910a, any other spelling of 910B is an a2.

    Args:
        origin: The source of the name, for the message.

    Raises:
        UsageError: No product has the name; the hint lists the products with their chips.
    """
    if name in PRODUCTS:
        return Reading(PRODUCTS[name])
    loose, exact = _by_any_name(_key(name)), _by_soc_name(name.strip())
    product = exact or loose
    if product is None:
        where = f"{origin}: " if origin else ""
        raise UsageError(f'{where}unknown product "{name}"', hint=f"products: {'; '.join(listed())}")
    if _key(name) == _key(product.name):
        return Reading(product)
    note = f"{name.strip()} is {with_article(product)}"
    if exact and loose and exact is not loose:
        note += f" (HCCL's SoC name); for an {loose.title}, specify --product {loose.name}"
    return Reading(product, note)


def by_chip(name: str, *, has_physical_id: bool = False) -> Product | None:
    """Return the product of a chip by the name that ``npu-smi`` prints; None if unknown or ambiguous.

    Args:
        has_physical_id: Whether the chip's row has a physical id, as ``npu_smi_names`` requires.
    """
    loose, exact = _by_any_name(_key(name)), _by_soc_name(name.replace(" ", ""))
    if loose is None and exact is None and has_physical_id:
        return next((one for one in PRODUCTS.values() if name in one.npu_smi_names), None)
    return loose if exact in (None, loose) else None


def listed() -> list[str]:
    """Return each product with its chips: ``a3 (910C, 910_93)``."""
    chips = ((one, ", ".join(chip.rstrip("*") for chip in one.chips)) for one in PRODUCTS.values())
    return [f"{one.name} ({names or one.title})" for one, names in chips]


def machine(name: str) -> str | None:
    """Return the machine of a name, as in ``Product.machines``; None if the name is not that of a machine."""
    if name in PRODUCTS or _by_soc_name(name.strip()) or _by_chip(_key(name)):
        return None
    return next((one for _, one in _machines_of(_key(name))), None)


def _by_any_name(key: str) -> Product | None:
    return _by_chip(key) or next((product for product, _ in _machines_of(key)), None)


def _by_chip(key: str) -> Product | None:
    for product in PRODUCTS.values():
        if key == _key(product.name) or any(_fits(key, chip) for chip in product.chips):
            return product
    return None


def _machines_of(key: str) -> Iterator[tuple[Product, str]]:
    """Yield each machine with which a name begins, and its product."""
    for product in PRODUCTS.values():
        for one in product.machines:
            if key.startswith(_key(one)):
                yield product, one


def _by_soc_name(name: str) -> Product | None:
    return next((product for product in PRODUCTS.values() if name in product.soc_names), None)


def _fits(key: str, chip: str) -> bool:
    return key.startswith(_key(chip[:-1])) if chip.endswith("*") else key == _key(chip)


def _key(name: str) -> str:
    """Return a name without the parts that vary: case, gaps, "Ascend", "Atlas", "model"."""
    return re.sub(r"[\s_()-]+|ascend|atlas|model", "", name.casefold())
