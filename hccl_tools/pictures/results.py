"""Read what ``doctor -f json`` and ``explain -f json`` have printed, as marks on a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.discover.recognition import listed_addresses, same
from hccl_tools.document.document import Document
from hccl_tools.document.reading import read_file, shown_name
from hccl_tools.errors import InputError
from hccl_tools.pictures.marks import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.table.model import RankTable

#: The version of both outputs that this module reads.
SCHEMA_VERSION = 1
#: explain lists at most so many consequences; with as many, ranks without a record are not known.
_MOST_CONSEQUENCES = 1000
_KIND_OF = {"stops": "error", "may-stop": "warning", "slows": "warning", "note": "note"}


def of_doctor(path: str, table: RankTable) -> list[Mark]:
    """Return the findings of ``doctor`` as marks.

    Raises:
        InputError: The file cannot be read, or is not the JSON of ``doctor``.
    """
    value = _read(path, "doctor", "hosts", "findings")
    devices = _Devices(table)
    return [_of_check(one, devices) for one in _records(value["findings"])]


def _of_check(one: Mapping[str, Any], devices: _Devices) -> Mark:
    hosts = [str(host) for host in _list(one.get("hosts"))]
    ids = [number for number in _list(one.get("devices")) if type(number) is int]
    servers = tuple(dict.fromkeys(index for host in hosts for index in devices.servers(host)))
    rows = tuple(row for index in servers for row in devices.of_server(index, ids))
    unknown = [host for host in hosts if not devices.servers(host)]
    where = f"{', '.join(unknown[:2])}: " if unknown else ""
    kind = "note" if one.get("not_examined") else _KIND_OF.get(_text(one.get("consequence")), "note")
    return Mark(
        kind,
        _text(one.get("check")),
        where + _text(one.get("message")),
        rows,
        () if rows else servers,
        _text(one.get("place")),
    )


def of_explain(path: str, table: RankTable) -> list[Mark]:
    """Return the causes and consequences that ``explain`` has found, and the ranks without a record.

    Raises:
        InputError: The file cannot be read, or is not the JSON of ``explain``.
    """
    value = _read(path, "explain", "causes", "consequences")
    devices = _Devices(table)
    causes, consequences = list(_records(value["causes"])), list(_records(value["consequences"]))
    found = [_of_record("cause", one, devices) for one in causes]
    found += [_of_record("consequence", one, devices) for one in consequences]
    if causes and len(consequences) < _MOST_CONSEQUENCES:
        heard = {row for mark in found for row in mark.rows}
        heard |= {row for mark in found for index in mark.servers for row in table.servers[index].rows}
        silent = tuple(row for row in range(len(table)) if row not in heard)
        found += [Mark("silent", "", "no record in the logs", silent)] if silent and heard else []
    return found


def _of_record(kind: str, one: Mapping[str, Any], devices: _Devices) -> Mark:
    ranks = [number for number in _list(one.get("ranks")) if type(number) is int]
    rows = tuple(row for rank in ranks if (row := devices.of_rank(rank)) is not None)
    rows = rows or tuple(devices.of_place(one))
    peer = one.get("peer")
    others = list(devices.of_place(peer)) if isinstance(peer, dict) else []
    line = one.get("at")
    return Mark(
        kind,
        _text(one.get("message")),
        _text(one.get("sentence")),
        rows,
        () if rows else tuple(devices.servers(_text(one.get("host")))),
        f"{_text(line.get('file'))}:{line.get('line') or ''}".rstrip(":") if isinstance(line, dict) else "",
        ((rows[0], others[0]),) if rows and others and rows[0] != others[0] else (),
    )


class _Devices:
    """The devices of a table by rank, by address, and by host and device id."""

    def __init__(self, table: RankTable) -> None:
        self._table = table
        self._by_rank = {rank: row for row, rank in enumerate(table.rank_numbers) if rank is not None}
        self._by_address = {
            same(text): row for row in range(len(table)) for _, text in listed_addresses(table, row)
        }
        self._by_host: dict[str, list[int]] = {}
        for index, server in enumerate(table.servers):
            named = (server.host_ip, server.fields.get("pod_name"), server.fields.get("container_ip"))
            for name in {server.server_id, *(one for one in named if isinstance(one, str))}:
                self._by_host.setdefault(name, []).append(index)

    def servers(self, host: str) -> list[int]:
        """Return the servers of a host; the only server of a table is any host."""
        return self._by_host.get(host, [0] if host and len(self._table.servers) == 1 else [])

    def of_server(self, index: int, ids: list[int]) -> Iterator[int]:
        """Yield the devices of a server with the given physical ids."""
        wanted = set(ids)
        numbers = self._table.device_numbers
        yield from (row for row in self._table.servers[index].rows if numbers[row] in wanted)

    def of_rank(self, rank: Any) -> int | None:
        """Return the device of a rank."""
        return self._by_rank.get(rank) if type(rank) is int else None

    def of_place(self, place: Mapping[str, Any]) -> Iterator[int]:
        """Yield the device of a place: by its rank, else its address, else its host and device id."""
        row = self.of_rank(place.get("rank"))
        row = self._by_address.get(same(_text(place.get("address")))) if row is None else row
        if row is not None:
            yield row
        elif type(place.get("device")) is int:
            for index in self.servers(_text(place.get("host"))):
                yield from self.of_server(index, [place["device"]])


def _read(path: str, command: str, *keys: str) -> dict[str, Any]:
    document = Document.parse(read_file(path), shown_name(path))
    value = document.value
    hint = f"write it with `hccl-tools {command} ... -f json > {command}.json`"
    if not isinstance(value, dict) or not all(isinstance(value.get(key), list) for key in keys):
        raise InputError(f"{document.name} is not the JSON of `hccl-tools {command}`", hint=hint)
    if value.get("schema_version") != SCHEMA_VERSION:
        raise InputError(f"{document.name} is not of schema_version {SCHEMA_VERSION}", hint=hint)
    return value


def _records(values: list[Any]) -> Iterator[dict[str, Any]]:
    yield from (one for one in values if isinstance(one, dict))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
