"""Hosts that are not there: the ids, addresses and subnets a well set up machine of each product has.

``910a`` is machine 1 of a simulated cluster, ``910a:2`` machine 2, with addresses in the same subnets; so two
tables of simulated machines can be merged.

Source: the sample tables of HCCL's rank table guides (rank_table_config_{910,a2,a3,300i_duo}.md); for 910A
the addressing rule that devices 0/4, 1/5, 2/6, 3/7 share a subnet, 0 to 3 stand in four different ones, and
the same position on every machine is in the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.discover.facts import DeviceFacts
from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

#: The address ranges below hold this many machines.
MOST_MACHINES = 70
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


#: Product -> its device count and how one of its devices is made.
_MACHINES: dict[str, tuple[int, Callable[[int, int], DeviceFacts]]] = {
    "910a": (8, _device_910a),
    "a2": (8, _device_a2),
    "a3": (16, _device_a3),
    "300i": (4, _device_a2),
}


def parse(text: str) -> tuple[str, int]:
    """Return product and machine number of ``910a`` or ``910a:2``.

    Raises:
        UsageError: There is no such simulated machine.
    """
    product, colon, number = text.strip().lower().partition(":")
    machine = int(number) if number.isascii() and number.isdecimal() and len(number) < 4 else 0
    if product not in _MACHINES or (colon and not 1 <= machine <= MOST_MACHINES):
        raise UsageError(
            f'--simulate knows no machine "{text}"',
            hint=f"products: {', '.join(_MACHINES)}; the second machine of a cluster is 910a:2, at most "
            f"{MOST_MACHINES}",
        )
    return product, machine if colon else 1


def devices(product: str, machine: int = 1) -> list[DeviceFacts]:
    """Return all devices of one simulated machine, by device id."""
    count, make = _MACHINES[product]
    return [make(machine, device_id) for device_id in range(count)]


def super_pod_id(product: str) -> str | None:
    """Return the super pod in which the simulated machines of a product stand."""
    return "0" if product == "a3" else None


def server_id(machine: int) -> str:
    """Return the address of a simulated machine: a loopback one, for it is nowhere."""
    return f"127.0.0.{machine}"
