"""The addresses of simulated machines, by which a table shows for which product it was made.

Each check of a table looks at them, and needs nothing else of a simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.whole_number import whole_number
from hccl_tools.table.addresses import SIMULATED_NETWORK
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable, Server
    from hccl_tools.table.products import Product

#: The first three numbers of the address of a single machine; a cluster has ``SIMULATED_NETWORK``.
_LOOPBACK = "127.0.0."


def server_id(machine: int, *, of_cluster: bool = False) -> str:
    """Return the address of a simulated machine: of a cluster, else a loopback address.

    >>> server_id(1), server_id(5, of_cluster=True)
    ('127.0.0.1', '192.0.2.5')
    """
    return f"{SIMULATED_NETWORK if of_cluster else _LOOPBACK}{machine}"


def address(product: Product, machine: int, device_id: int) -> str:
    """Return the address of a device of a simulated machine."""
    if product.group_size:
        group, position = divmod(device_id, product.group_size)
        return f"192.168.{100 + position}.{100 + 2 * (machine - 1) + 1 - group}"
    first = product.simulated.first_address if product.simulated else 0
    return f"192.168.{machine}.{first + device_id}"


def product_of(table: RankTable) -> Product | None:
    """Return the product of a table of simulated machines, by the addresses of servers and their devices.

    The first and the last device of each server are looked at; another one may be damaged. ``None`` is
    returned for other tables, and where several products have these addresses.
    """
    found = [
        product
        for product in PRODUCTS.values()
        if product.simulated
        and table.format in product.formats
        and not (product.single_server and len(table.servers) > 1)
        and all(_is_machine(table, server, product) for server in table.servers)
    ]
    return found[0] if len(found) == 1 else None


def _is_machine(table: RankTable, server: Server, product: Product) -> bool:
    network, _, number = server.server_id.rpartition(".")
    if f"{network}." not in {SIMULATED_NETWORK, _LOOPBACK} or (machine := whole_number(number)) is None:
        return False
    rows = (*server.rows[:1], *server.rows[-1:])
    ids = [(table.device_numbers[row], table.device_ips[row]) for row in rows]
    return bool(rows) and all(
        one is not None and shown == address(product, machine, one) for one, shown in ids
    )
