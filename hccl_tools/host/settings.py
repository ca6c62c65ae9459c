"""Observe the settings of this host that decide whether a job can start. No tool is called."""

from __future__ import annotations

import _socket  # Without the other half of `socket`, 2 ms and 1 MB of a launch.
from typing import TYPE_CHECKING

from hccl_tools.host import device_holders, host_ports, machine, port_users, visible
from hccl_tools.host.local_addresses import is_local
from hccl_tools.host.observation import DeviceProcess, Observation, Unknown
from hccl_tools.variables.rows import OWN_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.host.observation import PortUse
    from hccl_tools.host.site_defaults import Site


def observe_settings(
    devices: Sequence[int], environ: Mapping[str, str], site: Site, addresses: Sequence[str] = ()
) -> Observation:
    """Return what the checks before a start need; no tool is called, so this takes milliseconds.

    Args:
        addresses: Names and addresses of this host in the table.
    """
    nodes = visible.present(site)
    local = tuple(filter(is_local, (*addresses, environ.get(OWN_ADDRESS, ""))))
    cann = machine.cann_version(site)
    processes, unknown = processes_on((), devices, site)
    return Observation(
        nodes=nodes,
        closed_nodes=device_holders.closed_nodes(devices, site),
        processes=processes,
        unknown=unknown,
        hccl_ports=hccl_ports_in_use(devices, local, cann, site),
        interfaces=interfaces(),
        local_addresses=local,
        versions={"CANN": cann},
        variables=machine.variables(environ),
        in_container=machine.in_container(site),
    )


def hccl_ports_in_use(
    devices: Sequence[int], local: Sequence[str], cann: str, site: Site
) -> tuple[PortUse, ...]:
    """Return HCCL's host ports in use; ``local`` has the addresses that HCCL_IF_IP and the table state."""
    address = port_users.hccl_address(site.environ, local, interfaces())
    return port_users.in_use(host_ports.candidates(devices, site.environ, cann), address, site)


def interfaces() -> tuple[str, ...]:
    """Return the names of the network interfaces of this host."""
    try:
        return tuple(sorted(name for _index, name in _socket.if_nameindex()))
    except OSError:
        return ()


def processes_on(
    listed: Sequence[DeviceProcess], devices: Sequence[int], site: Site
) -> tuple[tuple[DeviceProcess, ...], tuple[Unknown, ...]]:
    """Return the processes on the devices: those of npu-smi, with what /proc has of them, and the others.

    The second value is which of them could not be looked at.
    """
    found = {(one.pid, one.device): one for one in listed}
    holders, left_out = device_holders.holders(devices, site)
    for one in holders:
        known = found.get((one.pid, one.device))
        found[one.pid, one.device] = DeviceProcess(
            one.pid, one.device, one.command or (known.command if known else ""), one.user,
            known.memory if known else None, one.age, one.run,
        )  # fmt: skip
    unknown = (Unknown("all processes on the devices", left_out),) if left_out else ()
    return tuple(found[key] for key in sorted(found)), unknown
