"""The TCP ports that HCCL and the ranks of a job use on a host."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hccl_tools.inspection import hccl_variables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

#: HCCL's host ports unless HCCL_IF_BASE_PORT is set; each rank of a host uses one.
HCCL_PORTS = range(60000, 60016)
#: The port on which each device listens.
DEVICE_PORT = 16666
BASE_PORT = "HCCL_IF_BASE_PORT"
#: Seconds; a program that asks whether a port is free holds it for less.
_PAUSE = 0.05


def is_free(port: int, address: str = "") -> bool:
    """Return whether a TCP port is free to listen on.

    It is bound only: a socket that listens would accept a host that connects at this moment, and hang up.
    """
    import socket  # noqa: PLC0415  (2 ms, and `--start table` needs no port)

    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def busy(ports: Iterable[int]) -> tuple[int, ...]:
    """Return the ports that are in use, without repetitions.

    A port is in use for an instant while another program asks the same; such a port is asked for twice.
    """
    found = [port for port in dict.fromkeys(ports) if not is_free(port)]
    if found:
        time.sleep(_PAUSE)
    return tuple(port for port in found if not is_free(port))


def candidates(devices: Collection[int], environ: Mapping[str, str]) -> tuple[int, ...]:
    """Return the ports that HCCL may use on a host; none if HCCL_IF_BASE_PORT is invalid."""
    base = environ.get(BASE_PORT)
    if base is None:
        return tuple(HCCL_PORTS)
    return tuple(int(base) + device for device in devices) if hccl_variables.is_base_port(base) else ()
