"""``--product`` of every command: the product's own name, or that of its chip or machine."""

from __future__ import annotations

import os

import click

from hccl_tools.table.products import PRODUCT_VARIABLE, PRODUCTS, read_name

_NAMES = f'{", ".join(PRODUCTS)}, or a chip or machine: 910B4, "Atlas 800T A2".'


def help_text(default: str) -> str:
    """Return the help of ``--product``; ``default`` is what holds where nothing names a product."""
    return f"{_NAMES} Default: {PRODUCT_VARIABLE}, else {default}."


def read(_ctx: click.Context, _param: click.Parameter, name: str | None) -> str | None:
    """Return the product's own name for the rest of the command, and print how another name was read.

    A name in the variable is read where it is used; here it is only checked and printed.

    Raises:
        UsageError: The name means no product.
    """
    stated = os.environ.get(PRODUCT_VARIABLE)
    if name is None and not stated:
        return None
    reading = read_name(name) if name is not None else read_name(stated or "", origin=PRODUCT_VARIABLE)
    if reading.note:
        where = f"{PRODUCT_VARIABLE}: " if name is None else ""
        click.echo(f"note: {where}{reading.note}", err=True)
    return None if name is None else reading.product.name
