"""What an Ascend product allows: device ids, formats, groups. Data, so that rules hold no branches by name.

Source: the rank table guides of HCCL (rank_table_config_{910,a2,a3,300i_duo,a5}.md, constraints.md) and
what HCCL's parser enforces (hcomm device_capacity.cc:238, topoinfo_parse.cc:32,
hccl_communicator_attrs_host.cc:621). Names of chips: HCCL's own map from SoC names (hcomm, SOC_VER_CONVERT);
names of machines: the product lists of HCCL's and MindCluster's documentation.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from hccl_tools.errors import UsageError

#: Which of HCCL's two loaders reads the table: the one of 910 to A3 and 310P, or the one of Ascend 950.
Loader = Literal["legacy", "a5"]


class Product(NamedTuple):
    """One kind of machine as HCCL tells them apart.

    Attributes:
        name: What ``--product`` takes.
        title: The product's own name, for messages.
        device_limit: Device ids are 0 to ``device_limit - 1``.
        default_format: The table format that ``gen`` writes.
        formats: The formats that HCCL takes on this product.
        loader: Which of HCCL's loaders reads the table.
        group_size: Devices per group joined by HCCS, where the guide forbids sets across groups, else None.
        counts_per_server: The device counts the guide allows on one machine, or None for any.
        cluster_count: Devices per machine the guide demands across machines, or None for any.
        even_servers: Whether HCCL refuses servers with different numbers of devices.
        checks_hccs_count: Whether HCCL refuses a count over 2 that is no power of two (``devNum``).
        four_device_sets: The only sets of exactly four devices that HCCL takes, or None for any.
        needs_device_ip: When a device of a table with several servers must have an address: ``always``,
            ``without-host-ip`` (an empty one still passes the parser), or ``never``.
        super_pods: Whether ``super_pod_list`` is read.
        dies_per_npu: Devices that are dies of one NPU, joined by SIO.
        single_server: Whether the guide allows one machine only.
        server_size: Devices of a whole server as it is usually sold, or None where sizes vary.
        chips: Names of its chips, without "Ascend"; ``*`` at the end stands for any ending.
        machines: Beginnings of the names of its machines, without "Atlas".
        soc_names: SoC names that are this product's although their chip name is another product's.
    """

    name: str
    title: str
    device_limit: int
    default_format: str = "1.0"
    formats: tuple[str, ...] = ("1.0", "1.2", "group_list")
    loader: Loader = "legacy"
    group_size: int | None = None
    counts_per_server: tuple[int, ...] | None = None
    cluster_count: int | None = None
    even_servers: bool = False
    checks_hccs_count: bool = False
    four_device_sets: frozenset[tuple[int, ...]] | None = None
    needs_device_ip: Literal["always", "without-host-ip", "never"] = "without-host-ip"
    super_pods: bool = False
    dies_per_npu: int = 1
    single_server: bool = False
    server_size: int | None = None
    chips: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    soc_names: tuple[str, ...] = ()


class Reading(NamedTuple):
    """The product that a name means; ``note`` says so where the name is not the product's own."""

    product: Product
    note: str | None = None


#: topoinfo_parse.cc:32: two groups whole, or two pairs that face each other across the groups.
_FOUR_OF_910A = frozenset(
    {
        (0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 4, 5), (0, 2, 4, 6),
        (0, 3, 4, 7), (1, 2, 5, 6), (1, 3, 5, 7), (2, 3, 6, 7),
    }
)  # fmt: skip

PRODUCTS = {
    product.name: product
    for product in (
        Product(
            "910a", "Atlas training series (Ascend 910A)", 8, server_size=8,
            group_size=4, counts_per_server=(1, 2, 4, 8), cluster_count=8,
            even_servers=True, checks_hccs_count=True, four_device_sets=_FOUR_OF_910A,
            chips=("910A", "910ProA", "910ProB", "910PremiumA"),
            machines=("800 9000", "800 9010", "900 PoD", "900T PoD", "300T 9000", "300T Pro"),
            # A first-generation chip with fewer cores; the chips of an A2 are Ascend910B1 to Ascend910B4.
            soc_names=("Ascend910B",),
        ),
        Product(
            "a2", "Atlas A2 (Ascend 910B)", 16, server_size=8, needs_device_ip="always",
            chips=("910B", "910B1", "910B2", "910B2C", "910B3", "910B4", "910B4-1"),
            machines=("800T A2", "800I A2", "900 A2", "200T A2 Box16", "200I A2 Box16", "300T A2"),
        ),
        Product(
            "a3", "Atlas A3 super pod (Ascend 910_93)", 16, server_size=16, default_format="1.2",
            needs_device_ip="never", super_pods=True, dies_per_npu=2,
            chips=("910C*", "910_93*"),
            machines=("800 A3", "800T A3", "800I A3", "900 A3", "A200T A3 Box8"),
        ),
        Product(
            "a3-server", "Atlas A3 outside super-pod mode (Ascend 910_93)", 16, server_size=16,
            needs_device_ip="never", dies_per_npu=2,
        ),
        Product(
            "300i", "Atlas 300I Duo (Ascend 310P3)", 32, even_servers=True, single_server=True,
            chips=("310P*",), machines=("300I Duo",),
        ),
        Product(
            "a5", "Ascend 950", 65, default_format="2.0", formats=("2.0",), loader="a5",
            chips=("950*", "910_95*"),
        ),
    )
}  # fmt: skip

#: Names the product where ``--product`` does not.
PRODUCT_VARIABLE = "HCCL_TOOLS_PRODUCT"
#: The product a table is judged for when nobody says which: the one its format is documented for.
DEFAULT_FOR_FORMAT = {"1.0": "910a", "group_list": "910a", "1.2": "a3", "2.0": "a5"}


def read_name(name: str, *, origin: str | None = None) -> Reading:
    """Return the product that a name means: its own, or that of a chip or a machine.

    Case, blanks, hyphens and underscores do not matter, nor does "Ascend" or "Atlas" in front. Only a SoC
    name in HCCL's own spelling is taken as it is: "Ascend910B" is a 910a, any other spelling of 910B an a2.

    Args:
        name: What was typed.
        origin: Where, for the message; None where the name says enough.

    Raises:
        UsageError: It means no product; the hint lists the products with their chips.
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
    note = f"{name.strip()} is {_with_article(product)}"
    if exact and loose and exact is not loose:
        note += f" as a SoC name of HCCL; an {loose.title} is --product {loose.name}"
    return Reading(product, note)


def assume(table_format: str | None, largest_server: int = 0) -> tuple[Product, str]:
    """Return the product to judge a table for when nobody names one, and why, as a phrase.

    It is the one that the format is documented for. Where a server of the table has more devices than that
    product has, it is the only other one of the format whose whole servers have that many.
    """
    if table_format is None:
        return PRODUCTS["910a"], "assumed"
    usual = PRODUCTS[DEFAULT_FOR_FORMAT[table_format]]
    if largest_server > usual.device_limit:
        holding = [
            one
            for one in PRODUCTS.values()
            if one.default_format == table_format and one.device_limit >= largest_server
        ]
        whole = [one for one in holding if one.server_size == largest_server]
        if len(whole) == 1:
            others = " or ".join(_with_article(one) for one in holding if one is not whole[0])
            return whole[0], (
                f"assumed: a server has {largest_server} devices, too many for {_with_article(usual)}"
                + (f"; if it is {others}, name it with --product" if others else "")
            )
    return usual, f"assumed for format {table_format}"


def by_name(name: str) -> Product:
    """Return the product that a name means; see ``read_name``.

    Raises:
        UsageError: It means no product.
    """
    return read_name(name).product


def by_chip(name: str) -> Product | None:
    """Return the product of a chip by the name that a tool prints; None where it is unknown or ambiguous."""
    loose, exact = _by_any_name(_key(name)), _by_soc_name(name.replace(" ", ""))
    return loose if exact in (None, loose) else None


def listed() -> list[str]:
    """Return each product with its chips: ``a3 (910C, 910_93)``."""
    chips = ((one, ", ".join(chip.rstrip("*") for chip in one.chips)) for one in PRODUCTS.values())
    return [f"{one.name} ({names or one.title})" for one, names in chips]


def _by_any_name(key: str) -> Product | None:
    for product in PRODUCTS.values():
        if key == _key(product.name) or any(_fits(key, chip) for chip in product.chips):
            return product
    starts = ((product, _key(machine)) for product in PRODUCTS.values() for machine in product.machines)
    return next((product for product, start in starts if key.startswith(start)), None)


def _by_soc_name(name: str) -> Product | None:
    return next((product for product in PRODUCTS.values() if name in product.soc_names), None)


def _fits(key: str, chip: str) -> bool:
    return key.startswith(_key(chip[:-1])) if chip.endswith("*") else key == _key(chip)


def _key(name: str) -> str:
    """Return a name without what people spell in several ways: case, gaps, "Ascend", "(model ...)"."""
    return re.sub(r"[\s_()-]+|ascend|atlas|model", "", name.casefold())


def _with_article(product: Product) -> str:
    return f"{'an' if product.name.startswith('a') else 'a'} {product.name}"
