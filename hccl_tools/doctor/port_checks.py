"""Checks of the TCP ports of a host: those of HCCL and those of the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import Consequence, Example, Finding, check
from hccl_tools.host import host_ports, naming
from hccl_tools.host.machine import LOCAL_PORTS
from hccl_tools.notation import number_list
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.variables.rows import BASE_PORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.host.observation import PortUse

_RESERVED = "net.ipv4.ip_local_reserved_ports"
_RESERVE = (
    "reserve HCCL's ports, as root: `sysctl -w {setting}`, and write the setting to /etc/sysctl.d/90-hccl.conf to "
    "keep it; for a container with the host's network, on the host"
)
_WAIT = "start the job again in a minute, when the connection is closed"


@check(
    "HCD301",
    "hccl-port-in-use",
    "stops",
    remedy="end the other job on this host, or set HCCL_IF_BASE_PORT to other ports",
    source="HCCL_IF_BASE_PORT; EJ0003",
    example=Example("observed", "hccl_ports", '[{"port": 60000, "listens": true}]'),
    quick=True,
    of_npus=True,
)
def hccl_port_in_use(case: Case) -> Iterator[Finding]:
    """Are enough of HCCL's host ports free (60000 to 60015, to 60031 from CANN 8.5; HCCL_IF_BASE_PORT and on)?

    Without HCCL_IF_BASE_PORT each rank takes the next free port of the range. A port in use is then a note, as
    long as the host has a free port for each rank. With it, the port of a rank is HCCL_IF_BASE_PORT + device id.

    The ports are tested on the address on which HCCL listens. A connection holds its port until a minute after
    its end. If the version of CANN is not known, too few ports beside connections are a note.
    """
    used = case.devices or case.seen.nodes
    ports = host_ports.candidates(used, case.environ, case.cann)
    taken = [one for one in case.seen.hccl_ports if one.port in ports]
    if not taken or not used:
        return
    if BASE_PORT in case.environ:
        yield from _for_fixed_ports(case, taken)
    else:
        yield _for_next_free_port(case, taken, len(ports), len(used))


def _for_fixed_ports(case: Case, taken: Sequence[PortUse]) -> Iterator[Finding]:
    needed = "HCCL needs the port HCCL_IF_BASE_PORT + device (EJ0003)"
    if listeners := [one for one in taken if one.listens]:
        yield Finding(f"{needed}, but {_described(listeners)}")
    if connections := [one for one in taken if not one.listens]:
        yield _to_reserve(case, f"{needed}, but {_described(connections)}", "may-stop")


def _for_next_free_port(case: Case, taken: Sequence[PortUse], total: int, needed: int) -> Finding:
    listeners = sum(one.listens for one in taken)
    free, ports = total - len(taken), number_list.fold(host_ports.hccl_range(case.environ, case.cann))
    if free >= needed:
        message = f"{_described(taken)}; HCCL takes other ports, as {free} of {ports} are free"
        if listeners:
            return Finding(message, consequence="note")
        return _to_reserve(case, message, "note")
    are = "is" if free == 1 else "are"
    message = (
        f"HCCL needs a port per rank, {needed} in total, but only {free} of {ports} {are} free (EJ0003): "
        f"{_described(taken)}"
    )
    if total - listeners < needed:
        return Finding(message)
    if not case.cann:
        return _to_reserve(case, f"{message}; from CANN 8.5 HCCL takes 60016-60031 as well", "note")
    return _to_reserve(case, message, "may-stop")


@check(
    "HCD302",
    "device-port-in-use",
    "may-stop",
    remedy="end the other program, or set HCCL_NPU_SOCKET_PORT_RANGE",
    source="HCCL listens on port 16666 of each device",
    example=Example("observed", "busy_ports", f'[{{"port": {host_ports.DEVICE_PORT}, "listens": true}}]'),
    of_npus=True,
)
def device_port_in_use(case: Case) -> Iterator[Finding]:
    """Is port 16666, on which HCCL listens for the other devices, free on the host?"""
    taken = [one for one in case.seen.busy_ports if one.port == host_ports.DEVICE_PORT]
    if taken and "HCCL_NPU_SOCKET_PORT_RANGE" not in case.environ:
        yield Finding(
            f"HCCL listens for other devices on port {host_ports.DEVICE_PORT}, but {_described(taken)}"
        )


@check(
    "HCD303",
    "start-port-in-use",
    "stops",
    remedy="end the program that listens there, or choose another port with --start-port",
    source="the rendezvous port of the ranks, and one port per rank for paddle",
)
def start_port_in_use(case: Case) -> Iterator[Finding]:
    """Are the start port and the next ports, one for each rank of the host, free?

    The first port stops the job if a program listens there. The next ports are needed by paddle alone.
    """
    yield from _ports_of_leader(case)
    if case.start_port is None:
        return
    ports = range(case.start_port, case.start_port + max(1, len(case.devices or case.seen.nodes)))
    taken = [one for one in case.seen.busy_ports if one.port in ports]
    if taken:
        stops = any(one.listens and one.port == case.start_port for one in taken)
        yield Finding(
            f"the ranks use the ports from --start-port {case.start_port}, but {_described(taken)}",
            consequence=None if stops else "may-stop",
        )


def _ports_of_leader(case: Case) -> Iterator[Finding]:
    """Yield the ports of MASTER_ADDR and the like that are in use, if this is the host that they name."""
    own = {*case.seen.names, *case.seen.local_addresses}
    for one in naming.named_hosts(case.environ):
        port = whole_number(one.port)
        taken = [use for use in case.seen.busy_ports if use.port == port and use.listens]
        if taken and one.variable in naming.PORTS and one.host in own and port != case.start_port:
            yield Finding(
                f"{naming.PORTS[one.variable]}={one.port}, but {_described(taken)}", consequence="may-stop"
            )


@check(
    "HCD314",
    "hccl-ports-not-reserved",
    "note",
    remedy="reserve HCCL's ports in net.ipv4.ip_local_reserved_ports",
    source="HCCL_IF_BASE_PORT; ip_local_reserved_ports in the kernel's ip-sysctl",
    example=Example("file", LOCAL_PORTS, "32768\t60999\n"),
    of_npus=True,
)
def hccl_ports_not_reserved(case: Case) -> Iterator[Finding]:
    """Does the kernel keep outgoing connections off HCCL's host ports?

    An outgoing connection gets any free port of ip_local_port_range that is not in ip_local_reserved_ports.
    """
    span = number_list.span(case.seen.kernel.get("local_ports", ""))
    if span is None or not (case.devices or case.seen.nodes):
        return
    ports = host_ports.hccl_range(case.environ, case.cann)
    shared = [port for port in ports if span[0] <= port <= span[1]]
    if host_ports.unreserved(shared, case.seen.kernel.get("reserved_ports", "")):
        message = (
            f"an outgoing connection may get one of HCCL's ports {number_list.fold(ports)}: they are in "
            f"{span[0]}-{span[1]} (ip_local_port_range) and not reserved"
        )
        yield _to_reserve(case, message, "note")


def _to_reserve(case: Case, message: str, consequence: Consequence) -> Finding:
    """Return a finding on HCCL's ports whose remedy is to keep outgoing connections off them."""
    reserved = case.seen.kernel.get("reserved_ports", "")
    ports = host_ports.unreserved(host_ports.hccl_range(case.environ, case.cann), reserved)
    if not ports:
        return Finding(message, consequence=consequence, remedy=_WAIT)
    setting = f"{_RESERVED}={host_ports.with_reserved(ports, reserved)}"
    return Finding(
        message,
        consequence=consequence,
        remedy=_RESERVE.format(setting=setting),
        commands=(("sysctl", "-w", setting),),
    )


def _described(uses: Iterable[PortUse]) -> str:
    """Say what uses ports: first each program that listens, then the connections."""
    groups: dict[tuple[bool, int | None, str], list[int]] = {}
    for one in sorted(uses, key=lambda one: not one.listens):
        groups.setdefault((one.listens, one.pid, one.command), []).append(one.port)
    return "; ".join(_of_group(*use, sorted(ports)) for use, ports in groups.items())


def _of_group(listens: bool, pid: int | None, command: str, ports: Sequence[int]) -> str:
    is_one = len(ports) == 1
    listed = f"port{'' if is_one else 's'} {' and '.join(number_list.fold(ports, ', ').rsplit(', ', 1))}"
    if not listens:
        owner = "belongs to an outgoing connection" if is_one else "belong to outgoing connections"
        return f"{listed} {owner} at the moment"
    owner = f"process {pid} ({command})" if pid is not None else "another program"
    return f"{listed} {'is' if is_one else 'are'} in use by {owner}"
