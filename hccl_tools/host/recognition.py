"""Recognise which server of a table is this host.

The criteria are tried in turn, the most reliable first; the first criterion that matches any server decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import is_loopback, packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.host.facts import HostState
    from hccl_tools.table.model import RankTable, Server


class Recognised(NamedTuple):
    """The indices of the servers that match this host, and the criterion that matched."""

    servers: tuple[int, ...] = ()
    way: str = ""


def recognise(table: RankTable, host: HostState, *, loopback: bool = True) -> Recognised:
    """Return the servers of a table that match this host by the first successful criterion.

    With ``loopback``, a loopback address identifies the only server of a table.
    """
    devices = _Devices(table, host)
    own_ip, own_name = host.is_local, host.names.__contains__
    ways: tuple[tuple[str, Callable[[int, Server], bool]], ...] = (
        ("the addresses of its devices", lambda index, _: devices.all_fit(index)),
        ("host_ip", lambda _, server: _is_own(server.host_ip, own_ip)),
        ("container_ip", lambda _, server: _is_own(_field(server, "container_ip"), own_ip)),
        ("the local address in server_id", lambda _, server: _is_own(server.server_id, own_ip)),
        ("the host name in server_id", lambda _, server: own_name(server.server_id)),
        ("pod_name", lambda _, server: own_name(_field(server, "pod_name") or "")),
        (
            "an address in a platform variable",
            lambda _, server: bool(host.stated & {server.server_id, server.host_ip}),
        ),
        ("the address of one of its devices", lambda index, _: devices.some_fit(index)),
    )
    for way, fits in ways:
        found = tuple(index for index, server in enumerate(table.servers) if fits(index, server))
        if found:
            return Recognised(found, way)
    only = table.servers[0].address
    if loopback and len(table.servers) == 1 and is_loopback(only):
        return Recognised((0,), "the loopback address of the only server")
    return Recognised()


def listed_addresses(table: RankTable, row: int) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the addresses of one device in a table, each with its path below the device's entry."""
    if table.format != "2.0":
        value = table.device_ips[row]
        for text in value.split(",") if isinstance(value, str) else ():
            if text:
                yield ("device_ip",), text
        return
    for number, level in enumerate(table.columns["level_list"][row]):
        for place, address in enumerate(level["rank_addr_list"]):
            yield ("level_list", number, "rank_addr_list", place, "addr"), address["addr"]


def same(text: str) -> bytes | str:
    """Return the normal form of an address: its bytes, or an EID in lower case."""
    return packed(text) or text.replace(":", "").lower()


class _Devices:
    def __init__(self, table: RankTable, host: HostState) -> None:
        self._table = table
        known = ((device_id, state.ips) for device_id, state in host.devices.items() if state.ips)
        self._real: dict[int | None, set[bytes | str]] = {
            device_id: set(map(same, ips)) for device_id, ips in known
        }

    def all_fit(self, index: int) -> bool:
        """Return whether all listed addresses of a server match its devices."""
        found = list(self._fits(index))
        return bool(found) and all(found)

    def some_fit(self, index: int) -> bool:
        """Return whether any listed address of a server matches its device."""
        return any(self._fits(index))

    def _fits(self, index: int) -> Iterator[bool]:
        if not self._real:
            return
        numbers = self._table.device_numbers
        for row in self._table.servers[index].rows:
            real = self._real.get(numbers[row], set())
            for _, text in listed_addresses(self._table, row):
                yield same(text) in real


def _is_own(text: str | None, is_local: Callable[[str], bool]) -> bool:
    return bool(text) and not is_loopback(text or "") and is_local(text or "")


def _field(server: Server, key: str) -> str | None:
    value = server.fields.get(key)
    return value if isinstance(value, str) else None
