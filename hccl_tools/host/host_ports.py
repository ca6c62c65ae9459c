"""The TCP ports that HCCL and the ranks of a job use on a host."""

from __future__ import annotations

import _socket  # The C part of `socket` alone: a launch is 2 ms faster and 1 MB smaller.
import re
from contextlib import closing
from typing import TYPE_CHECKING

from hccl_tools.notation import number_list
from hccl_tools.variables.rows import BASE_PORT, FIRST_PORT, HOST_RANGE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: HCCL's host ports unless HCCL_IF_BASE_PORT is set; each rank of a host uses one.
HCCL_PORTS = range(60000, 60016)
#: The same from CANN 8.5 on (hiascend canncommercial/850, HCCL_IF_BASE_PORT).
_HCCL_PORTS_8_5 = range(60000, 60032)
#: The number of ports from HCCL_IF_BASE_PORT on that HCCL may use.
_FROM_BASE = 16
#: The port on which each device listens.
DEVICE_PORT = 16666
_VERSION = r"(?a)(\d{1,4})\.(\d{1,4})"
_LAST_PORT = 65535


def is_free(port: int, address: str = "") -> bool:
    """Return whether a TCP port is free to listen on.

    It is bound only: a socket that listens would accept a host that connects at this moment, and hang up.
    """
    family = _socket.AF_INET6 if ":" in address else _socket.AF_INET
    with closing(_socket.socket(family, _socket.SOCK_STREAM)) as probe:
        probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def hccl_range(environ: Mapping[str, str], cann: str = "") -> range:
    """Return the range of HCCL's host ports; empty if HCCL_IF_BASE_PORT is invalid.

    Args:
        cann: The version of CANN; if it is unknown, the ports that every version uses are returned.
    """
    if (text := environ.get(BASE_PORT)) is not None:
        base = FIRST_PORT.value(text)
        return range(0) if base is None else range(base, base + _FROM_BASE)
    found = re.match(_VERSION, cann)
    is_new = found is not None and (int(found[1]), int(found[2])) >= (8, 5)
    return _HCCL_PORTS_8_5 if is_new else HCCL_PORTS


def to_open(assigned: Mapping[str, str]) -> str:
    """Return the host ports of every version of CANN, as a phrase for those who set up a firewall.

    The ranges of both variables are in it: it does not depend on which of them HCCL prefers. HCCL must take
    their values.

    >>> to_open({})
    '60000-60031'
    >>> to_open({"HCCL_IF_BASE_PORT": "50000"})
    '50000-50031'
    """
    own = "".join(assigned.get(HOST_RANGE, "").split())
    if own == "auto":
        return f"any free port, because {HOST_RANGE} is auto"
    if own and BASE_PORT not in assigned:
        return own
    first = hccl_range(assigned, "8.5")[0]
    last = min(first + len(_HCCL_PORTS_8_5) - 1, _LAST_PORT)
    return ", ".join(filter(None, (f"{first}-{last}", own)))


def candidates(devices: Collection[int], environ: Mapping[str, str], cann: str = "") -> tuple[int, ...]:
    """Return the ports that HCCL may use on a host for these devices: those of the range, or one for each."""
    ports = hccl_range(environ, cann)
    if not ports or BASE_PORT not in environ:
        return tuple(ports)
    return tuple(ports[0] + device for device in devices)


def unreserved(ports: Collection[int], reserved: str) -> tuple[int, ...]:
    """Return the ports that ``reserved``, as in ip_local_reserved_ports, does not contain."""
    kept = number_list.distinct(reserved, _LAST_PORT)
    return tuple(port for port in ports if port not in kept)


def with_reserved(ports: Collection[int], reserved: str) -> str:
    """Return the value of ip_local_reserved_ports that also contains these ports.

    >>> with_reserved(range(60000, 60016), "8080,9100-9101")
    '8080,9100-9101,60000-60015'
    """
    return number_list.fold(sorted(number_list.distinct(reserved, _LAST_PORT).union(ports)))
