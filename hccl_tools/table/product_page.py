"""Write docs/products.md: ``python -m hccl_tools.table.product_page docs/products.md``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from hccl_tools.table.products import Product

_HEAD = """# Products

Made from the table of products by `python -m hccl_tools.table.product_page docs/products.md`.

`--product` and `HCCL_TOOLS_PRODUCT` take a product's name, or the name of its chip or machine in any
spelling. `...` stands for any ending. `gen` writes the first format; HCCL takes all of them. If no product is
named, a table is judged for the product that has its format in the column "assumed for". "Simulated" is the
device count of `--simulate`.

| product | title | chips | machines | device ids | formats | assumed for | simulated |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    """Return the text of docs/products.md."""
    return _HEAD + "".join(f"| {' | '.join(_cells(product))} |\n" for product in PRODUCTS.values())


def _cells(product: Product) -> list[str]:
    chips = [chip.replace("*", "...") for chip in product.chips]
    formats = sorted(product.formats, key=lambda name: name != product.default_format)
    return [
        f"`{product.name}`",
        product.title,
        ", ".join([*chips, *(f"SoC name `{name}`" for name in product.soc_names)]),
        ", ".join(product.machines),
        f"0 to {product.device_limit - 1}",
        ", ".join(formats),
        ", ".join(product.assumed_for),
        str(product.simulated.devices) if product.simulated else "",
    ]


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(page())
