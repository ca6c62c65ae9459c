"""Observe this host. Needs nothing outside the standard library, and no root."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import (
    connections,
    contents,
    device_holders,
    device_network,
    hccl_variables,
    health_command,
    host,
    host_ports,
    host_state,
    large_packets,
    machine,
    naming,
    npu_overview,
    pings,
    port_users,
    table_copies,
)
from hccl_tools.host.local_addresses import interface_mtu, is_local
from hccl_tools.host.machine import state
from hccl_tools.host.observation import (
    HCCS,
    DeviceObservation,
    Observation,
    ObservationRequest,
    PingObservation,
    Unknown,
)
from hccl_tools.host.settings import hccl_ports_in_use, interfaces, processes_on
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple
from hccl_tools.table.products import PRODUCTS
from hccl_tools.variables.rows import OWN_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.host.facts import HostState
    from hccl_tools.host.site_defaults import Site

#: The greatest number of entries with unknown facts; a tool that fails for every query gives many.
_MOST_UNKNOWN = 500

#: The variable with the path, and the one that turns the list on with 0.
FILE_VARIABLE, SWITCH_VARIABLE = "HCCL_WHITELIST_FILE", "HCCL_WHITELIST_DISABLE"
_LARGEST = 1 << 24


def observe(request: ObservationRequest, site: Site) -> Observation:
    """Return what can be seen of this host.

    Raises:
        InputError: A tool or file that the user specified cannot be used.
    """
    site = site._replace(tool_timeout=request.tool_timeout)
    if request.ping_over == HCCS:
        return _pings_in_super_pod(request, site)
    seen = _without_devices(site) if request.command_only else _host(request, site)
    return _with_command(seen, request) if request.command else seen


def _with_command(seen: Observation, request: ObservationRequest) -> Observation:
    code, said = health_command.run(request.command, request.command_time)
    return seen._replace(command_code=code, command_said=said)


def _host(request: ObservationRequest, site: Site) -> Observation:
    seen = _without_devices(site) if request.cpu else _devices(request, site)
    environ, log = site.environ, machine.log_folder(site.environ)
    versions = machine.versions(site)
    cann = versions.get("CANN", "")
    own = (*request.addresses, environ.get(OWN_ADDRESS, ""))
    local = tuple(ip for ip in own if is_local(ip))
    all_interfaces = interfaces()
    nic = port_users.interface_of(port_users.hccl_address(environ, local, all_interfaces), all_interfaces)
    variables, listed = machine.variables(environ), read(environ)
    zone, offset = machine.time_zone()
    seen = seen._replace(
        local_addresses=local,
        interfaces=all_interfaces,
        nic=nic,
        mtu=interface_mtu(nic) if nic not in {"", "lo"} else None,
        hccl_ports=hccl_ports_in_use(seen.nodes or request.device_ids, local, cann, site),
        busy_ports=port_users.in_use(_ports(request, variables), "", site),
        limits=machine.limits(site),
        sizes=machine.sizes(site, log),
        log_folder=log,
        log_writable=machine.is_writable(log),
        kernel=machine.kernel(site),
        versions=versions,
        variables=variables,
        interface_addresses=hccl_variables.interface_addresses(environ, all_interfaces),
        white_list=listed.state,
        white_listed=listed.hosts,
        in_container=machine.in_container(site),
        files=machine.files(site),
        libraries=machine.libraries(site),
        named_tables=table_copies.states_of_variables(environ),
        proxies=machine.proxies(environ),
        cpus=len(os.sched_getaffinity(0)),
        table_sha256=table_copies.sha256(request.table),
        table_hashes=table_copies.hashes_of_variables(environ),
        code={path: contents.code(path) for path in request.code},
        data={path: contents.data(path) for path in request.data},
        time_zone=zone,
        utc_offset=offset,
        clock=time.time(),
    )
    return _with_other_hosts(seen, request, site)


def _ports(request: ObservationRequest, variables: Mapping[str, str]) -> tuple[int, ...]:
    """Return the ports that the job needs here beside HCCL's: those of variables as well."""
    named = (whole_number(one.port) for one in naming.named_hosts(variables))
    known = (port for port in named if port is not None and 0 < port < 65536)
    return (host_ports.DEVICE_PORT, *request.ports, *known)


def _devices(request: ObservationRequest, site: Site) -> Observation:
    """Return what the nodes, the tools and hccn.conf tell of the devices of this host."""
    product, why = _product(site)
    levels = request.levels or (product is not None and PRODUCTS[product].default_format == "2.0")
    state = host_state.read_host_state(request.device_ids, site, super_pod=request.super_pod, levels=levels)
    devices = _of_state(state)
    unknown: list[Unknown] = []
    if not levels:  # the tool of Ascend 950 has other queries
        queried = [one for one in devices if one.device in state.nodes or not state.nodes]
        devices, unknown = device_network.read_network(queried, site, super_pod=request.super_pod)
    if product is None:
        unknown.append(Unknown("the product", why))
    local = frozenset(filter(is_local, request.addresses))
    answers, unanswered = _pings(request, local | state.names, devices, site)
    npus, listed, no_npus = npu_overview.read_npus(site)
    processes, not_seen = processes_on(listed, state.nodes, site)
    return Observation(
        names=tuple(sorted(state.names)),
        nodes=state.nodes,
        closed_nodes=device_holders.closed_nodes(state.nodes, site),
        manager_nodes=machine.managers(site),
        product=product,
        devices=tuple(devices),
        npus=tuple(npus),
        processes=processes,
        stated=tuple(sorted(state.stated)),
        conf=state.conf,
        problems=state.problems,
        super_pod=state.super_pod,
        unknown=(*unknown, *no_npus, *not_seen, *unanswered)[:_MOST_UNKNOWN],
        pings=tuple(answers),
    )


def _without_devices(site: Site) -> Observation:
    return Observation(names=tuple(sorted(host_state.own_names(site))))


def _with_other_hosts(seen: Observation, request: ObservationRequest, site: Site) -> Observation:
    """Return an observation with what this host knows and reaches of the others."""
    name, named = os.uname().nodename, tuple(naming.named_hosts(seen.variables))
    known = naming.looked_up([name, *(one.host for one in named)])
    wanted = connections.places(
        request.reach, request.start_port, site.environ, seen.versions.get("CANN", "")
    )
    leaders = _leaders(named, known, wanted)
    lost, slow = connections.reach([*wanted, *leaders.values()])
    reasons = {(one.address, one.port): one.reason for one in lost}
    return seen._replace(
        own_addresses=known.get(name),
        leaders={
            one.variable: known[one.host]
            for one in named
            if one.variable in naming.LEADERS and known.get(one.host)
        },
        named_hosts={
            **{one.variable: "its name has no address here" for one in named if known.get(one.host) == ()},
            **{variable: reasons[place] for variable, place in leaders.items() if place in reasons},
        },
        tried=len({one.address for one in wanted}),
        unreached=tuple(one for one in lost if (one.address, one.port) in wanted),
        slow=slow,
        cut=large_packets.cut(
            {one.address for one in wanted if ":" not in one.address}.difference(one.address for one in lost),
            seen.mtu or 0,
        ),
    )


def _leaders(
    named: Sequence[naming.HostInVariable],
    known: Mapping[str, tuple[str, ...]],
    wanted: Sequence[connections.Place],
) -> dict[str, connections.Place]:
    """Return the places of the hosts that lead the job, by variable, at their port or that of the others."""
    found = {}
    for one in named if wanted else ():
        port = whole_number(one.port)
        usual = wanted[0].port if port is None or not 0 < port < 65536 else port
        address = next(iter(known.get(one.host, ())), "")
        if one.variable in naming.LEADERS and address and not is_local(address):
            found[one.variable] = connections.Place(address, usual)
    return found


def _pings(
    request: ObservationRequest, names: frozenset[str], devices: Sequence[DeviceObservation], site: Site
) -> tuple[list[PingObservation], list[Unknown]]:
    if not request.ping:
        return [], []
    own = pings.own_server(request.ping, names, devices)
    if own is None:
        return [], [pings.unanswered(request.ping_over, "none of the servers, or several, are this host")]
    over = request.ping_over
    wanted = pings.targets(request.ping, own, every=request.ping_all, over=over)
    return pings.read_pings(wanted, request.ping_time, site, over=over)


def _pings_in_super_pod(request: ObservationRequest, site: Site) -> Observation:
    names = host_state.own_names(site) | frozenset(filter(is_local, request.addresses))
    answers, unanswered = _pings(request, names, (), site)
    return Observation(pings=tuple(answers), unknown=tuple(unanswered))


def _of_state(state: HostState) -> list[DeviceObservation]:
    return [
        DeviceObservation(device, one.ips, one.configured, one.problem, one.super_device_id)
        for device, one in sorted(state.devices.items())
    ]


def _product(site: Site) -> tuple[str | None, str]:
    try:
        return host.find_product(site)
    except DiscoveryError as error:
        return None, error.message


class WhiteList(NamedTuple):
    """The state of the file, as ``Observation.white_list`` has it, and the addresses of hosts in it."""

    state: str = ""
    hosts: tuple[str, ...] = ()


def read(environ: Mapping[str, str]) -> WhiteList:
    """Return the white list that HCCL would read. A relative path depends on the folder of the job."""
    path = environ.get(FILE_VARIABLE, "")
    if environ.get(SWITCH_VARIABLE) != "0" or not os.path.isabs(path) or "\0" in path:
        return WhiteList()
    if not os.path.isfile(path):
        return WhiteList(state(path))
    try:
        with open(path, "rb") as file:
            hosts = json.loads(file.read(_LARGEST))["host_ip"]
    except OSError:
        return WhiteList("unreadable")
    except (ValueError, KeyError, TypeError, RecursionError):
        return WhiteList("invalid")
    if not isinstance(hosts, list) or not all(isinstance(one, str) for one in hosts):
        return WhiteList("invalid")
    return WhiteList("file", tuple(hosts))
