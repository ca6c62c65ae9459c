"""Hosts that are not there: the ids, addresses and subnets a well set up machine of each product has.

``910a`` is machine 1 of a simulated cluster, ``910a:2`` machine 2, with addresses in the same subnets; so two
tables of simulated machines can be merged.

Source: the sample tables of HCCL's rank table guides (rank_table_config_{910,a2,a3,300i_duo,a5}.md); for 910A
the addressing rule that devices 0/4, 1/5, 2/6, 3/7 share a subnet, 0 to 3 stand in four different ones, and
the same position on every machine is in the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.discover.facts import DeviceFacts
from hccl_tools.errors import UsageError
from hccl_tools.table.products import read_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.discover.dev_info import DeviceInfo

#: The address ranges below hold this many machines.
MOST_MACHINES = 70
#: Chassis of one super pod of simulated Ascend 950.
_CHASSIS = 16
_SOURCE = "simulated"


def _device_910a(machine: int, device_id: int) -> DeviceFacts:
    host = 100 + 2 * (machine - 1) + (1 if device_id < 4 else 0)
    return DeviceFacts(device_id, (f"192.168.{100 + device_id % 4}.{host}",), _SOURCE)


def _device_a2(machine: int, device_id: int) -> DeviceFacts:
    return DeviceFacts(device_id, (f"192.168.{machine}.{8 + device_id}",), _SOURCE)


def _device_a3(machine: int, device_id: int) -> DeviceFacts:
    # The driver's own composition: server index, NPU, die, physical id (seen in public logs).
    npu, die = divmod(device_id, 2)
    super_device_id = (machine - 1) << 22 | npu << 18 | die << 16 | device_id
    return DeviceFacts(device_id, (f"192.168.{machine}.{6 + device_id}",), _SOURCE, super_device_id)


def _device_a5(_machine: int, device_id: int) -> DeviceFacts:
    return DeviceFacts(device_id, (), _SOURCE, local_id=device_id)


#: Product -> its device count and how one of its devices is made.
_MACHINES: dict[str, tuple[int, Callable[[int, int], DeviceFacts]]] = {
    "910a": (8, _device_910a),
    "a2": (8, _device_a2),
    "a3": (16, _device_a3),
    "300i": (4, _device_a2),
    "a5": (8, _device_a5),
}
#: The ports of an Ascend 950 in a server of eight: seven to the others, on two dies, and four each outwards.
_INNER_PORTS = ((0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2))
_OUTER_PORTS = (4, 5, 6, 7)


def parse(text: str) -> tuple[str, int]:
    """Return product and machine number of ``910a`` or ``910a:2``.

    Raises:
        UsageError: There is no such simulated machine.
    """
    name, colon, number = text.strip().partition(":")
    product = read_name(name, origin="--simulate").product.name
    machine = int(number) if number.isascii() and number.isdecimal() and len(number) < 4 else 0
    if product not in _MACHINES or (colon and not 1 <= machine <= MOST_MACHINES):
        raise UsageError(
            f'--simulate knows no machine "{text}"',
            hint=f"products: {', '.join(_MACHINES)}; the second machine of a cluster is 910a:2, at most "
            f"{MOST_MACHINES}",
        )
    return product, machine if colon else 1


def devices(product: str, machine: int = 1, called: str | None = None) -> list[DeviceFacts]:
    """Return all devices of one simulated machine, by device id.

    Args:
        product: A product of :func:`parse`.
        machine: Its number, from 1.
        called: What the table calls the machine; an Ascend 950's layer 0 bears that name.
    """
    count, make = _MACHINES[product]
    made = [make(machine, device_id) for device_id in range(count)]
    if product != "a5":
        return made
    from hccl_tools.discover import levels  # noqa: PLC0415  (only an Ascend 950 pays for it)

    name = called or server_id(machine)
    told = [levels.of_eids(one.device_id, device_info(one.device_id, machine), name) for one in made]
    return [one._replace(levels=each.levels) for one, each in zip(made, told, strict=True)]


def device_info(device_id: int, machine: int = 1) -> DeviceInfo:
    """Return what ``hccn_tool`` says about a device of a simulated Ascend 950."""
    from hccl_tools.discover import dev_info, eid  # noqa: PLC0415  (only an Ascend 950 pays for it)

    super_pod, chassis = divmod(machine - 1, _CHASSIS)
    ports = sorted({*_INNER_PORTS, *((die, number) for die in (0, 1) for number in _OUTER_PORTS)})
    eids = [
        eid.make(0, device_id, die, port, chassis=chassis, super_pod=super_pod) for die, port in _INNER_PORTS
    ]
    eids += [eid.make(1, device_id, die, None, chassis=chassis, super_pod=super_pod) for die in (0, 1)]
    up = tuple(dev_info.Port(die, number, "UB", "UP") for die, number in ports)
    return dev_info.DeviceInfo(up, (f"192.168.2.{199 - device_id}",), tuple(eids))


def super_pod_id(product: str) -> str | None:
    """Return the super pod in which the simulated machines of a product stand."""
    return "0" if product == "a3" else None


def server_id(machine: int) -> str:
    """Return the address of a simulated machine: a loopback one, for it is nowhere."""
    return f"127.0.0.{machine}"
