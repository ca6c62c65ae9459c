"""Choose the product for which to check a table. The rules are not needed for that.

The order is the same for every command: the option, the variable, the product of this host's NPUs if it
reads the format, that of simulated machines by their addresses, else the product that is assumed for the
table. For a job on this host its product counts anyway.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.formats.file_kinds import RANK_TABLE
from hccl_tools.host import simulated_addresses, site_defaults
from hccl_tools.host.visible import present
from hccl_tools.records import NamedTuple
from hccl_tools.table.product_names import read_name
from hccl_tools.table.products import PRODUCT_VARIABLE, PRODUCTS, assume

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.formats.file_kinds import FileKind
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

#: The format of tables on machines that have endpoint files and a root info.
_FORMAT_OF_HOST_FILES = "2.0"
#: Why the product of a table of simulated machines is known.
BY_SIMULATION = "by the addresses, which are those of simulated machines"


class Choice(NamedTuple):
    """The product for which to check a table, the reason as a phrase, and whether it is only assumed."""

    product: Product
    reason: str
    is_assumed: bool = False


def choose(
    name: str | None, table_format: str | None, *, on_this_host: bool = False, kind: FileKind = RANK_TABLE
) -> Choice:
    """Return the product for a document of a format.

    Args:
        name: The user's choice.
        on_this_host: Whether the table is for this host, whose product may not read the format.
        kind: The kind of the file.

    Raises:
        UsageError: The name, or the variable, is not a product.
    """
    variable = os.environ.get(PRODUCT_VARIABLE)
    if name:
        reading, reason = read_name(name), "as given"
    elif variable:
        source = site_defaults.origin(PRODUCT_VARIABLE, os.environ)
        reading, reason = read_name(variable, origin=PRODUCT_VARIABLE), f"from {source}"
    else:
        return _by_host(table_format, kind, on_this_host=on_this_host)
    return Choice(reading.product, f"{reason}: {reading.note}" if reading.note else reason)


def _by_host(table_format: str | None, kind: FileKind, *, on_this_host: bool) -> Choice:
    if kind.is_of_host:
        return Choice(assume(_FORMAT_OF_HOST_FILES)[0], "assumed for such files", is_assumed=True)
    if (own := _own_product()) is not None and (on_this_host or table_format in own[0].formats):
        return Choice(own[0], f"the product of this host, by {own[1]}")
    return Choice(*assume(table_format), is_assumed=True)


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


def refined(choice: Choice, table: RankTable, largest_server: Callable[[], int]) -> Choice:
    """Return an assumed product as the addresses of the table and the size of its servers show it.

    ``largest_server`` returns the number of devices of the largest server.
    """
    if not choice.is_assumed:
        return choice
    if (known := simulated_addresses.product_of(table)) is not None:
        return Choice(known, BY_SIMULATION)
    if sum(table.format in product.formats for product in PRODUCTS.values()) > 1:
        return Choice(*assume(table.format, largest_server()), is_assumed=True)
    return choice
