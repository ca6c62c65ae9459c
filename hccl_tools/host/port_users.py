"""Find what uses TCP ports of this host at the address on which HCCL listens: a listener, or a connection.

The kernel gives an outgoing connection a port of ip_local_port_range, which contains HCCL's ports by default.
The host is sound then: the port is free again at most a minute after the connection has ended.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.host import hccl_variables
from hccl_tools.host.host_ports import is_free
from hccl_tools.host.local_addresses import interface_address, is_reachable
from hccl_tools.host.observation import PortUse
from hccl_tools.host.open_descriptors import OpenDescriptors
from hccl_tools.processes import procfs
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import packed
from hccl_tools.variables.rows import OWN_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from hccl_tools.host.site_defaults import Site

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
#: TCP_LISTEN in these files.
_LISTENS = "0A"
#: An IPv6 address with this beginning is an IPv4 address.
_IPV4_IN_IPV6 = b"\0" * 10 + b"\xff\xff"


class _Socket(NamedTuple):
    """A line of the kernel's tables: local address (4 or 16 bytes), port, and the inode of a listener."""

    address: bytes
    port: int
    listens: bool
    inode: str


def hccl_address(environ: Mapping[str, str], local: Sequence[str], interfaces: Sequence[str]) -> str:
    """Return the address on which HCCL listens, ``""`` if it is unknown.

    HCCL_IF_IP is first, then HCCL_SOCKET_IFNAME, then the table, then the interfaces in HCCL's order: by
    name, those of Docker and the loopback interface last.

    Args:
        local: The addresses of this host that HCCL_IF_IP and the table state.
        interfaces: The names of the interfaces of this host.
    """
    if (stated := environ.get(OWN_ADDRESS, "")) in local:
        return stated
    chosen = environ.get(hccl_variables.INTERFACE)
    if chosen:
        return _first_address(hccl_variables.matching(chosen, interfaces))
    return next(filter(is_reachable, local), "") or _first_address(sorted(interfaces, key=_place))


def interface_of(address: str, interfaces: Sequence[str]) -> str:
    """Return the interface with an IPv4 address, ``""`` if none has it."""
    return next((one for one in interfaces if address and interface_address(one) == address), "")


def _place(interface: str) -> tuple[bool, bool, str]:
    return interface == "lo", interface.startswith("docker"), interface


def _first_address(interfaces: Sequence[str]) -> str:
    return next(filter(None, map(interface_address, interfaces)), "")


def in_use(ports: Iterable[int], address: str, site: Site) -> tuple[PortUse, ...]:
    """Return the ports that a program cannot listen on at an address, without repetitions.

    A port is in use if it cannot be bound and a socket listens there or is connected. One that is only bound
    is left out: that is another program that asks whether the port is free, and takes an instant.

    Args:
        address: An address of this host; ``""`` stands for all of them.
    """
    taken = [port for port in dict.fromkeys(ports) if not is_free(port, address)]
    if not taken:
        return ()
    sockets = [one for one in _sockets(taken, site) if _is_at(one.address, address)]
    listeners = {one.port: one.inode for one in sockets if one.listens}
    programs = _programs(set(listeners.values()))
    others = {one.port for one in sockets}.difference(listeners)
    return tuple(
        PortUse(port, True, *programs.get(listeners[port], ())) if port in listeners else PortUse(port)
        for port in taken
        if port in listeners or port in others
    )


def _sockets(ports: Collection[int], site: Site) -> Iterator[_Socket]:
    """Yield the sockets of this host at some ports."""
    wanted = {f"{port:04X}" for port in ports}
    for table in _TABLES:
        for line in _lines(table, site):
            fields = line.split()
            if len(fields) > 9 and (local := fields[1].partition(":"))[2] in wanted:
                is_listener = fields[3] == _LISTENS
                yield _Socket(_address(local[0]), int(local[2], 16), is_listener, fields[9])


def _lines(table: str, site: Site) -> Iterator[str]:
    # HCCL_TOOLS_ROOT need not have /proc; the sockets are those of this process's network in any case.
    for path in dict.fromkeys((site.path(table), table)):
        with suppress(OSError), open(path, encoding="ascii") as file:
            yield from file
            return


def _address(text: str) -> bytes:
    """Return an address of the kernel's tables, which has words of 32 bits in the order of this machine."""
    words = (text[start : start + 8] for start in range(0, len(text), 8))
    raw = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    return raw[12:] if raw.startswith(_IPV4_IN_IPV6) else raw


def _is_at(own: bytes, address: str) -> bool:
    """Return whether a socket's address keeps others from an address: it is the same, or either is all."""
    return not address or not any(own) or own == packed(address)


def _programs(inodes: Collection[str]) -> dict[str, tuple[int, str]]:
    """Return process id and command of the owners of sockets, as far as this user may see them."""
    links = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[str, tuple[int, str]] = {}
    for pid, descriptors in OpenDescriptors().each() if links else ():
        for _name, target in descriptors:
            if (inode := links.get(target)) is not None and inode not in found:
                found[inode] = (pid, procfs.command(pid))
    return found
