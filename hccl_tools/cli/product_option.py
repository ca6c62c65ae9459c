"""``--product`` of every command, and the help texts that list products."""

from __future__ import annotations

import os

import click

from hccl_tools.notation.phrases import EXAMPLE_CHIP
from hccl_tools.notation.printable import tell
from hccl_tools.table.product_names import read_name
from hccl_tools.table.products import PRODUCT_VARIABLE, PRODUCTS, default

#: The key of the option's words in ``click.Context.meta``.
_TYPED = "hccl_tools.typed_product"


def help_text(otherwise: str) -> str:
    """Return the help of ``--product``; ``otherwise`` describes the default product."""
    names = ", ".join(PRODUCTS)
    return (
        f'{names}, or a chip or machine: {EXAMPLE_CHIP}, "Atlas 800T A2". '
        f"Default: {PRODUCT_VARIABLE}, else {otherwise}."
    )


def format_help() -> str:
    """Return the help of ``gen --format``, with the products whose default format differs."""
    usual = default().default_format
    others = [
        f"{product.default_format} on {product.name}"
        for product in PRODUCTS.values()
        if product.default_format != usual
    ]
    return f"The table's format. Default: {', '.join(others)}, else {usual}."


def simulate_help() -> str:
    """Return the help of ``gen --simulate``."""
    names = ", ".join(product.name for product in PRODUCTS.values() if product.simulated)
    second = f"{default().name}:2"
    return (
        f"A simulated machine instead of this host: {names}; {second} is the second machine of a cluster, "
        "--servers N a whole cluster."
    )


def read(ctx: click.Context, _param: click.Parameter, name: str | None) -> str | None:
    """Return the canonical name of the product, and print how a name that is not canonical was interpreted.

    A name in the environment variable is only checked and printed; the return value is then ``None``.

    Raises:
        UsageError: The name is not a product.
    """
    stated = os.environ.get(PRODUCT_VARIABLE)
    if name is None and not stated:
        return None
    reading = read_name(name) if name is not None else read_name(stated or "", origin=PRODUCT_VARIABLE)
    if reading.note:
        where = f"{PRODUCT_VARIABLE}: " if name is None else ""
        tell(f"note: {where}{reading.note}")
    ctx.meta[_TYPED] = name
    return None if name is None else reading.product.name


def typed() -> str | None:
    """Return the product in the user's own words, which may name a machine: the option, else the variable."""
    return click.get_current_context().meta.get(_TYPED) or os.environ.get(PRODUCT_VARIABLE) or None
