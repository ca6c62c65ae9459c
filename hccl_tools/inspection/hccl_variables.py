"""Report the values of HCCL's variables that HCCL would refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.discover.local_addresses import interface_address
from hccl_tools.notation.whole_number import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

#: HCCL_CONNECT_TIMEOUT, whole seconds: HCCL refuses other values instead of clamping them (externalinput.cc).
_CONNECT_RANGE = (120, 7200)
_CONNECT_DEFAULT, _EXEC_DEFAULT = 120, 1836
#: HCCL_IF_BASE_PORT: the first of 16 ports.
_BASE_PORT_RANGE = (1024, 65520)


#: The variable with the address of this host that HCCL is to use.
ADDRESS = "HCCL_IF_IP"
#: The variable that chooses among the interfaces of this host.
INTERFACE = "HCCL_SOCKET_IFNAME"
#: Those with lists of names: of torch's gloo and of its tensorpipe.
INTERFACES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def problems(
    environ: Mapping[str, str], *, is_local: Callable[[str], bool], interfaces: Collection[str]
) -> Iterator[str]:
    """Yield a message for each invalid HCCL variable on this host."""
    yield from _timeouts(environ)
    if (text := environ.get("HCCL_WHITELIST_DISABLE")) not in {None, "0", "1"}:
        yield f'HCCL_WHITELIST_DISABLE="{text}": HCCL accepts only 0 or 1'
    if (address := environ.get(ADDRESS)) and not is_local(address):
        yield f"{ADDRESS}={address} is not an address of this host"
    if (text := environ.get(INTERFACE)) and not matching(text, interfaces):
        yield f"{INTERFACE}={text} matches no interface of this host ({', '.join(sorted(interfaces))})"
    if (text := environ.get("HCCL_IF_BASE_PORT")) is not None and not is_base_port(text):
        yield f'HCCL_IF_BASE_PORT="{text}": HCCL accepts {_BASE_PORT_RANGE[0]} to {_BASE_PORT_RANGE[1]}'


def is_base_port(text: str) -> bool:
    """Return whether HCCL accepts a text as HCCL_IF_BASE_PORT."""
    return _is_between(text, *_BASE_PORT_RANGE)


def _timeouts(environ: Mapping[str, str]) -> Iterator[str]:
    first, last = _CONNECT_RANGE
    connect, execute = environ.get("HCCL_CONNECT_TIMEOUT"), environ.get("HCCL_EXEC_TIMEOUT")
    if connect is not None and not _is_between(connect, first, last):
        yield f'HCCL_CONNECT_TIMEOUT="{connect}": HCCL accepts only {first} to {last} seconds'
        return
    if execute is not None and whole_number(execute) is None:
        yield f'HCCL_EXEC_TIMEOUT="{execute}" is not a number of seconds'
        return
    if connect is None and execute is None:
        return
    waits, limit = int(connect or _CONNECT_DEFAULT), int(execute or _EXEC_DEFAULT)
    # HCCL_EXEC_TIMEOUT=0 means no timeout.
    if limit and waits >= limit:
        yield (
            f"HCCL_CONNECT_TIMEOUT ({waits} s) is not below HCCL_EXEC_TIMEOUT ({limit} s): an "
            "operation would give up before its connection does"
        )


def _is_between(text: str, first: int, last: int) -> bool:
    number = whole_number(text)
    return number is not None and first <= number <= last


def interface_addresses(environ: Mapping[str, str], interfaces: Collection[str]) -> dict[str, str]:
    """Return the address of the first interface that each variable chooses, by variable.

    HCCL_IF_IP comes before HCCL_SOCKET_IFNAME, which is left out then.
    """
    chosen = {name: _listed(environ.get(name, "")) for name in INTERFACES}
    if (text := environ.get(INTERFACE)) and not environ.get(ADDRESS):
        chosen[INTERFACE] = matching(text, interfaces)
    found = {name: next(filter(None, map(interface_address, names)), None) for name, names in chosen.items()}
    return {name: address for name, address in found.items() if address}


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def matching(text: str, interfaces: Collection[str]) -> list[str]:
    """Return the interfaces that a value of HCCL_SOCKET_IFNAME chooses.

    It has prefixes (``eth``) or exact names (``=eth0``); ``^`` excludes the matches.
    """
    excluded, exact = text.startswith("^"), text.lstrip("^").startswith("=")
    names = [name.strip() for name in text.lstrip("^").lstrip("=").split(",")]

    def named(interface: str) -> bool:
        return any(interface == name if exact else interface.startswith(name) for name in names)

    return [interface for interface in interfaces if named(interface) != excluded]
