"""The TCP ports that HCCL and the ranks of a job use on a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.inspection import hccl_variables

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: HCCL's host ports unless HCCL_IF_BASE_PORT is set; each rank of a host uses one.
HCCL_PORTS = range(60000, 60016)
#: The port on which each device listens.
DEVICE_PORT = 16666
BASE_PORT = "HCCL_IF_BASE_PORT"


def is_free(port: int, address: str = "") -> bool:
    """Return whether a TCP port is free to listen on."""
    import socket  # noqa: PLC0415  (2 ms, and `--start table` needs no port)

    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def candidates(devices: Collection[int], environ: Mapping[str, str]) -> tuple[int, ...]:
    """Return the ports that HCCL may use on a host; none if HCCL_IF_BASE_PORT is invalid."""
    base = environ.get(BASE_PORT)
    if base is None:
        return tuple(HCCL_PORTS)
    return tuple(int(base) + device for device in devices) if hccl_variables.is_base_port(base) else ()
