"""The address of this host on which HCCL listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.discover.local_addresses import interface_address, is_reachable
from hccl_tools.inspection import hccl_variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def hccl_address(environ: Mapping[str, str], local: Sequence[str], interfaces: Sequence[str]) -> str:
    """Return the address on which HCCL listens, ``""`` if it is unknown.

    HCCL_IF_IP is first, then HCCL_SOCKET_IFNAME, then the table, then the interfaces in HCCL's order: by
    name, those of Docker and the loopback interface last.

    Args:
        local: The addresses of this host that HCCL_IF_IP and the table state.
        interfaces: The names of the interfaces of this host.
    """
    if (stated := environ.get(hccl_variables.ADDRESS, "")) in local:
        return stated
    chosen = environ.get(hccl_variables.INTERFACE)
    if chosen:
        return _first_address(hccl_variables.matching(chosen, interfaces))
    return next(filter(is_reachable, local), "") or _first_address(sorted(interfaces, key=_place))


def _place(interface: str) -> tuple[bool, bool, str]:
    return interface == "lo", interface.startswith("docker"), interface


def _first_address(interfaces: Sequence[str]) -> str:
    return next(filter(None, map(interface_address, interfaces)), "")
