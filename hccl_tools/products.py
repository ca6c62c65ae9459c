"""What an Ascend product allows: device ids, formats, groups. Data, so that rules hold no branches by name.

Source: the rank table guides of HCCL (rank_table_config_{910,a2,a3,300i_duo,a5}.md, constraints.md) and
what HCCL's parser enforces (hcomm device_capacity.cc:238, topoinfo_parse.cc:32,
hccl_communicator_attrs_host.cc:621).
"""

from __future__ import annotations

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
            "910a", "Atlas training series (Ascend 910A)", 8,
            group_size=4, counts_per_server=(1, 2, 4, 8), cluster_count=8,
            even_servers=True, checks_hccs_count=True, four_device_sets=_FOUR_OF_910A,
        ),
        Product("a2", "Atlas A2 (Ascend 910B)", 16, needs_device_ip="always"),
        Product(
            "a3", "Atlas A3 super pod (Ascend 910_93)", 16, default_format="1.2",
            needs_device_ip="never", super_pods=True, dies_per_npu=2,
        ),
        Product(
            "a3-server", "Atlas A3 outside super-pod mode (Ascend 910_93)", 16,
            needs_device_ip="never", dies_per_npu=2,
        ),
        Product("300i", "Atlas 300I Duo (Ascend 310P3)", 32, even_servers=True, single_server=True),
        Product("a5", "Ascend 950", 65, default_format="2.0", formats=("2.0",), loader="a5"),
    )
}  # fmt: skip

#: The product a table is judged for when nobody says which: the one its format is documented for.
DEFAULT_FOR_FORMAT = {"1.0": "910a", "group_list": "910a", "1.2": "a3", "2.0": "a5"}


def by_name(name: str) -> Product:
    """Return a product by the name that ``--product`` takes.

    Raises:
        UsageError: There is no such product; the message names the closest.
    """
    product = PRODUCTS.get(name.strip().lower())
    if product is None:
        from difflib import get_close_matches  # noqa: PLC0415  (only for a name that is wrong)

        close = get_close_matches(name.lower(), PRODUCTS, n=1, cutoff=0.5)
        meant = f'did you mean "{close[0]}"? ' if close else ""
        raise UsageError(f'there is no product "{name}"', hint=f"{meant}products: {', '.join(PRODUCTS)}")
    return product
