"""Observe this host. Needs nothing outside the standard library, and no root."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.discover import host, host_state, visible
from hccl_tools.discover.local_addresses import is_local
from hccl_tools.errors import DiscoveryError
from hccl_tools.inspection import (
    contents,
    device_holders,
    device_network,
    hccl_variables,
    host_ports,
    machine,
    npu_overview,
    pings,
    port_users,
)
from hccl_tools.inspection.observation import (
    HCCS,
    DeviceObservation,
    DeviceProcess,
    Observation,
    ObservationRequest,
    PingObservation,
    PortUse,
    Unknown,
)
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.discover.facts import HostState
    from hccl_tools.discover.site import Site

_LARGEST_TABLE = 1 << 28
#: The greatest number of entries with unknown facts; a tool that fails for every query gives many.
_MOST_UNKNOWN = 500


def observe(request: ObservationRequest, site: Site) -> Observation:
    """Return what can be seen of this host.

    Raises:
        InputError: A tool or file that the user specified cannot be used.
    """
    site = site._replace(tool_timeout=request.tool_timeout)
    return (_pings_in_super_pod if request.ping_over == HCCS else _host)(request, site)


def _host(request: ObservationRequest, site: Site) -> Observation:
    environ, log = site.environ, machine.log_folder(site.environ)
    product, why = _product(site)
    levels = request.levels or (product is not None and PRODUCTS[product].default_format == "2.0")
    state = host_state.read_host_state(request.device_ids, site, super_pod=request.super_pod, levels=levels)
    devices = _devices(state)
    unknown: list[Unknown] = []
    if not levels:  # the tool of Ascend 950 has other queries
        queried = [one for one in devices if one.device in state.nodes or not state.nodes]
        devices, unknown = device_network.read_network(queried, site, super_pod=request.super_pod)
    if product is None:
        unknown.append(Unknown("the product", why))
    own = (*request.addresses, environ.get(hccl_variables.ADDRESS, ""))
    local = tuple(ip for ip in own if is_local(ip))
    answers, unanswered = _pings(request, frozenset(local) | state.names, devices, site)
    npus, processes, no_npus = npu_overview.read_npus(site)
    ids = state.nodes or request.device_ids
    versions = machine.versions(site)
    return Observation(
        names=tuple(sorted(state.names)),
        nodes=state.nodes,
        closed_nodes=device_holders.closed_nodes(state.nodes, site),
        manager_nodes=machine.managers(site),
        product=product,
        devices=tuple(devices),
        npus=tuple(npus),
        processes=_processes(processes, state.nodes, site),
        local_addresses=local,
        stated=tuple(sorted(state.stated)),
        interfaces=interfaces(),
        conf=state.conf,
        problems=state.problems,
        unknown=(*unknown, *no_npus, *unanswered)[:_MOST_UNKNOWN],
        hccl_ports=_hccl_ports(ids, local, versions.get("CANN", ""), site),
        busy_ports=port_users.in_use((host_ports.DEVICE_PORT, *request.ports), "", site),
        limits=machine.limits(site),
        sizes=machine.sizes(site, log),
        log_folder=log,
        log_writable=machine.is_writable(log),
        kernel=machine.kernel(site),
        versions=versions,
        variables=machine.variables(environ),
        in_container=machine.in_container(site),
        files=machine.files(site),
        table_sha256=_sha256(request.table),
        clock=time.time(),
        code={path: contents.code(path) for path in request.code},
        data={path: contents.data(path) for path in request.data},
        pings=tuple(answers),
    )


def _pings(
    request: ObservationRequest, names: frozenset[str], devices: Sequence[DeviceObservation], site: Site
) -> tuple[list[PingObservation], list[Unknown]]:
    own = pings.own_server(request.ping, names, devices) if request.ping else None
    if own is None:
        return [], []
    over = request.ping_over
    wanted = pings.targets(request.ping, own, every=request.ping_all, over=over)
    return pings.read_pings(wanted, request.ping_time, site, over=over)


def _pings_in_super_pod(request: ObservationRequest, site: Site) -> Observation:
    names = host_state.own_names(site) | frozenset(filter(is_local, request.addresses))
    answers, unanswered = _pings(request, names, (), site)
    return Observation(pings=tuple(answers), unknown=tuple(unanswered))


def observe_settings(
    devices: Sequence[int], environ: Mapping[str, str], site: Site, addresses: Sequence[str] = ()
) -> Observation:
    """Return what the checks before a start need; no tool is called, so this takes milliseconds.

    Args:
        addresses: Names and addresses of this host in the table.
    """
    nodes = visible.present(site)
    local = tuple(filter(is_local, (*addresses, environ.get(hccl_variables.ADDRESS, ""))))
    cann = machine.cann_version(site)
    return Observation(
        nodes=nodes,
        closed_nodes=device_holders.closed_nodes(devices, site),
        processes=_processes((), devices, site),
        hccl_ports=_hccl_ports(devices, local, cann, site),
        interfaces=interfaces(),
        local_addresses=local,
        versions={"CANN": cann},
        variables=machine.variables(environ),
    )


def _hccl_ports(devices: Sequence[int], local: Sequence[str], cann: str, site: Site) -> tuple[PortUse, ...]:
    """Return HCCL's host ports in use; ``local`` has the addresses that HCCL_IF_IP and the table state."""
    address = port_users.hccl_address(site.environ, local, interfaces())
    return port_users.in_use(host_ports.candidates(devices, site.environ, cann), address, site)


def interfaces() -> tuple[str, ...]:
    """Return the names of the network interfaces of this host."""
    try:
        return tuple(sorted(name for _index, name in socket.if_nameindex()))
    except OSError:
        return ()


def _devices(state: HostState) -> list[DeviceObservation]:
    return [
        DeviceObservation(device, one.ips, one.configured, one.problem, one.super_device_id)
        for device, one in sorted(state.devices.items())
    ]


def _product(site: Site) -> tuple[str | None, str]:
    try:
        return host.find_product(site)
    except DiscoveryError as error:
        return None, error.message


def _processes(
    listed: Sequence[DeviceProcess], devices: Sequence[int], site: Site
) -> tuple[DeviceProcess, ...]:
    """Return the processes on the devices: those of npu-smi, with what /proc has of them, and the others."""
    found = {(one.pid, one.device): one for one in listed}
    for one in device_holders.holders(devices, site):
        known = found.get((one.pid, one.device))
        found[one.pid, one.device] = DeviceProcess(
            one.pid, one.device, one.command or (known.command if known else ""), one.user,
            known.memory if known else None, one.age, one.run,
        )  # fmt: skip
    return tuple(found[key] for key in sorted(found))


def _sha256(path: str) -> str:
    if not path:
        return ""
    import hashlib  # noqa: PLC0415  (it loads OpenSSL: 3.6 MB)

    with suppress(OSError), open(path, "rb") as file:
        return hashlib.sha256(file.read(_LARGEST_TABLE)).hexdigest()
    return ""
