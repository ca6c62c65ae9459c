"""Simulate a machine of a product: the ids, addresses and subnets of a well-configured machine.

``910a`` is machine 1 of a simulated cluster, ``910a:2`` is machine 2 with addresses in the same subnets, so
that tables of simulated machines can be merged.

Source: the sample tables of HCCL's rank table guides (rank_table_config_{910,a2,a3,300i_duo,a5}.md). On a
product with groups, devices at the same position of all groups and machines share a subnet, and the devices
of one group are in different subnets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.host import dev_info, eid, levels
from hccl_tools.host.facts import DeviceFacts
from hccl_tools.host.simulated_addresses import address, server_id
from hccl_tools.table.product_names import read_name
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from hccl_tools.host.dev_info import DeviceInfo
    from hccl_tools.table.products import Product

#: The number of machines for which the address ranges below suffice.
MOST_MACHINES = 70
#: Chassis of one super pod of simulated Ascend 950.
_CHASSIS = 16
#: The source of the addresses of simulated devices.
SOURCE = "simulated"


#: The ports of an Ascend 950 in a server of eight: seven to the other NPUs, four per die to other servers.
_INNER_PORTS = ((0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2))
_OUTER_PORTS = (4, 5, 6, 7)


def parse(text: str) -> tuple[Product, int]:
    """Return product and machine number of ``910a`` or ``910a:2``.

    Raises:
        UsageError: The text is not a machine that can be simulated.
    """
    name, colon, number = text.strip().partition(":")
    product = read_name(name, origin="--simulate").product
    machine = int(number) if number.isascii() and number.isdecimal() and len(number) < 4 else 0
    if product.simulated is None or (colon and not 1 <= machine <= MOST_MACHINES):
        names = [one.name for one in PRODUCTS.values() if one.simulated]
        raise UsageError(
            f'--simulate "{text}" is not a machine that can be simulated',
            hint=f"products: {', '.join(names)}; the second machine of a cluster is {names[0]}:2, at most "
            f"{MOST_MACHINES}",
        )
    return product, machine if colon else 1


def devices(product: Product, machine: int = 1, called: str | None = None) -> list[DeviceFacts]:
    """Return all devices of one simulated machine, by device id.

    Args:
        machine: The number of the machine, from 1.
        called: The name of layer 0 in a 2.0 table.
    """
    count = product.simulated.devices if product.simulated else 0
    if "2.0" in product.formats:
        return [_with_levels(device_id, machine, called or server_id(machine)) for device_id in range(count)]
    return [_device(product, machine, device_id) for device_id in range(count)]


def _device(product: Product, machine: int, device_id: int) -> DeviceFacts:
    super_device_id = None
    if product.super_pods:
        # The driver's own composition: server index, NPU, die, physical id (seen in public logs).
        npu, die = divmod(device_id, product.dies_per_npu)
        super_device_id = (machine - 1) << 22 | npu << 18 | die << 16 | device_id
    return DeviceFacts(device_id, (address(product, machine, device_id),), SOURCE, super_device_id)


def _with_levels(device_id: int, machine: int, called: str) -> DeviceFacts:
    found = levels.of_eids(device_id, device_info(device_id, machine), called)
    return DeviceFacts(device_id, (), SOURCE, local_id=device_id, levels=found.levels)


def device_info(device_id: int, machine: int = 1) -> DeviceInfo:
    """Return what ``hccn_tool`` prints about a simulated device with network levels."""
    super_pod, chassis = divmod(machine - 1, _CHASSIS)
    ports = sorted({*_INNER_PORTS, *((die, number) for die in (0, 1) for number in _OUTER_PORTS)})
    eids = [
        eid.make(0, device_id, die, port, chassis=chassis, super_pod=super_pod) for die, port in _INNER_PORTS
    ]
    eids += [eid.make(1, device_id, die, None, chassis=chassis, super_pod=super_pod) for die in (0, 1)]
    up = tuple(dev_info.Port(die, number, "UB", "UP") for die, number in ports)
    return dev_info.DeviceInfo(up, (f"192.168.2.{199 - device_id}",), tuple(eids))
