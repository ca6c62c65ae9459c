"""Compare the values of HCCL's variables with this host and with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.host.local_addresses import interface_address
from hccl_tools.variables.rows import (
    CONNECT_SECONDS,
    CONNECT_TIMEOUT,
    EXEC_SECONDS,
    EXEC_TIMEOUT,
    OWN_ADDRESS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

_CONNECT_DEFAULT, _EXEC_DEFAULT = 120, 1836

#: The variable that chooses among the interfaces of this host.
INTERFACE = "HCCL_SOCKET_IFNAME"
#: Those with lists of names: of torch's gloo and of its tensorpipe.
INTERFACES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def problems(
    environ: Mapping[str, str], *, is_local: Callable[[str], bool], interfaces: Collection[str]
) -> Iterator[str]:
    """Yield a message for each value that is wrong on this host; ``variables`` has what HCCL refuses."""
    yield from _timeouts(environ)
    if (address := environ.get(OWN_ADDRESS)) and not is_local(address):
        yield f"{OWN_ADDRESS}={address} is not an address of this host"
    if (text := environ.get(INTERFACE)) and not matching(text, interfaces):
        yield f"{INTERFACE}={text} matches no interface of this host ({', '.join(sorted(interfaces))})"


def _timeouts(environ: Mapping[str, str]) -> Iterator[str]:
    if CONNECT_TIMEOUT not in environ and EXEC_TIMEOUT not in environ:
        return
    waits = CONNECT_SECONDS.value(environ.get(CONNECT_TIMEOUT, str(_CONNECT_DEFAULT)))
    limit = EXEC_SECONDS.value(environ.get(EXEC_TIMEOUT, str(_EXEC_DEFAULT)))
    # HCCL_EXEC_TIMEOUT=0 means no timeout. HCCL refuses what is not a number.
    if waits is not None and limit and waits >= limit:
        yield (
            f"{CONNECT_TIMEOUT} ({waits} s) is not below {EXEC_TIMEOUT} ({limit:g} s): an "
            "operation would give up before its connection does"
        )


def interface_addresses(environ: Mapping[str, str], interfaces: Collection[str]) -> dict[str, str]:
    """Return the address of the first interface that each variable chooses, by variable.

    HCCL_IF_IP comes before HCCL_SOCKET_IFNAME, which is left out then.
    """
    chosen = {name: _listed(environ.get(name, "")) for name in INTERFACES}
    if (text := environ.get(INTERFACE)) and not environ.get(OWN_ADDRESS):
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
    names = {name.strip() for name in text.lstrip("^").lstrip("=").split(",")}
    lengths = sorted({len(name) for name in names})

    def named(interface: str) -> bool:
        return interface in names if exact else any(interface[:length] in names for length in lengths)

    return [interface for interface in interfaces if named(interface) != excluded]
