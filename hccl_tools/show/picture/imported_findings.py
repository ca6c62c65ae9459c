"""Read what ``doctor -f json`` and ``explain -f json`` have printed, as marks on a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.codec import DecodeError, decode, parse
from hccl_tools.document.reading import read_file, shown_name
from hccl_tools.errors import InputError
from hccl_tools.formats import misfits
from hccl_tools.host.recognition import listed_addresses, same
from hccl_tools.records import NamedTuple
from hccl_tools.show.picture.marks import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeVar

    from hccl_tools.records import Count, Index, LongText, OsText
    from hccl_tools.table.model import RankTable

    _T = TypeVar("_T")

#: The version of both outputs that this module reads.
SCHEMA_VERSION = 1
#: explain lists at most so many consequences; with as many, ranks without a record are not known.
_MOST_CONSEQUENCES = 1000
#: The most servers that a name of a host stands for: instances of a service on one machine.
_MOST_OF_NAME = 64
_KIND_OF = {"stops": "error", "may-stop": "warning", "slows": "warning", "note": "note"}


class _Check(NamedTuple):
    """A finding of doctor."""

    check: str = ""
    consequence: str | None = None
    message: LongText = ""
    hosts: tuple[str, ...] | None = None
    devices: tuple[Index, ...] | None = None
    place: OsText | None = None
    not_examined: bool = False


class _Diagnosis(NamedTuple):
    """The JSON of doctor."""

    schema_version: int
    hosts: tuple[str, ...]
    findings: tuple[_Check, ...]


class _Line(NamedTuple):
    """A line of a log."""

    file: OsText = ""
    line: Count | None = None


class _Place(NamedTuple):
    """What a message of a log names."""

    rank: Index | None = None
    address: str | None = None
    host: str | None = None
    device: Index | None = None


class _Record(NamedTuple):
    """A cause or a consequence."""

    message: str = ""
    sentence: LongText = ""
    ranks: tuple[Index, ...] | None = None
    rank: Index | None = None
    address: str | None = None
    host: str | None = None
    device: Index | None = None
    peer: _Place | None = None
    at: _Line | None = None


class _Explanation(NamedTuple):
    """The JSON of explain."""

    schema_version: int
    causes: tuple[_Record, ...]
    consequences: tuple[_Record, ...]


def of_doctor(path: str, table: RankTable) -> list[Mark]:
    """Return the findings of ``doctor`` as marks.

    Raises:
        InputError: The file cannot be read, or is not the JSON of ``doctor``.
    """
    devices = _Devices(table)
    return [_of_check(one, devices) for one in _read(path, "doctor", _Diagnosis).findings]


def _of_check(one: _Check, devices: _Devices) -> Mark:
    hosts = tuple(dict.fromkeys(one.hosts or ()))
    servers = tuple(dict.fromkeys(index for host in hosts for index in devices.servers(host)))
    rows = tuple(row for index in servers for row in devices.of_server(index, one.devices or ()))
    unknown = [host for host in hosts if not devices.servers(host)]
    where = f"{', '.join(unknown[:2])}: " if unknown else ""
    kind = "note" if one.not_examined else _KIND_OF.get(one.consequence or "", "note")
    return Mark(kind, one.check, where + one.message, rows, () if rows else servers, one.place or "")


def of_explain(path: str, table: RankTable) -> list[Mark]:
    """Return the causes and consequences that ``explain`` has found, and the ranks without either.

    Raises:
        InputError: The file cannot be read, or is not the JSON of ``explain``.
    """
    answer = _read(path, "explain", _Explanation)
    devices = _Devices(table)
    found = [_of_record("cause", one, devices) for one in answer.causes]
    found += [_of_record("consequence", one, devices) for one in answer.consequences]
    if answer.causes and len(answer.consequences) < _MOST_CONSEQUENCES:
        heard = {row for mark in found for row in mark.rows}
        heard |= {row for mark in found for index in mark.servers for row in table.servers[index].rows}
        silent = tuple(row for row in range(len(table)) if row not in heard)
        found += [Mark("silent", "", "no error in the logs", silent)] if silent and heard else []
    return found


def _of_record(kind: str, one: _Record, devices: _Devices) -> Mark:
    rows = tuple(row for rank in one.ranks or () if (row := devices.of_rank(rank)) is not None)
    rows = rows or tuple(devices.of_place(one))
    others = list(devices.of_place(one.peer)) if one.peer else []
    return Mark(
        kind,
        one.message,
        one.sentence,
        rows,
        () if rows else tuple(devices.servers(one.host or "")),
        f"{one.at.file}:{one.at.line or ''}".rstrip(":") if one.at else "",
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
        #: For each server that was looked for: its devices by their physical ids.
        self._by_device: dict[int, dict[int | None, int]] = {}
        for index, server in enumerate(table.servers):
            named = (server.host_ip, server.fields.get("pod_name"), server.fields.get("container_ip"))
            for name in {server.server_id, *(one for one in named if isinstance(one, str))}:
                if len(servers := self._by_host.setdefault(name, [])) < _MOST_OF_NAME:
                    servers.append(index)

    def servers(self, host: str) -> list[int]:
        """Return the servers of a host, of which a job has few; the only server of a table is any host."""
        return self._by_host.get(host, [0] if host and len(self._table.servers) == 1 else [])

    def of_server(self, index: int, ids: Sequence[int]) -> Iterator[int]:
        """Yield the devices of a server with the given physical ids."""
        own = self._by_device.get(index)
        if own is None:
            numbers = self._table.device_numbers
            own = self._by_device[index] = {numbers[row]: row for row in self._table.servers[index].rows}
        yield from sorted({own[one] for one in ids if one in own})

    def of_rank(self, rank: int | None) -> int | None:
        """Return the device of a rank."""
        return None if rank is None else self._by_rank.get(rank)

    def of_place(self, place: _Place | _Record) -> Iterator[int]:
        """Yield the device of a place: by its rank, else its address, else its host and device id."""
        row = self.of_rank(place.rank)
        row = self._by_address.get(same(place.address or "")) if row is None else row
        if row is not None:
            yield row
        elif place.device is not None:
            for index in self.servers(place.host or ""):
                yield from self.of_server(index, (place.device,))


def _read(path: str, command: str, kind: type[_T]) -> _T:
    name = shown_name(path)
    hint = f"write it with `hccl-tools {command} ... -f json > FILE`"
    try:
        value = parse(read_file(path))
        if isinstance(value, dict) and value.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
            raise InputError(f"{name} is not of schema_version {SCHEMA_VERSION}", hint=hint)
        misfit = misfits.first(value, command, of_any_release=True)
        if misfit is None:
            return decode(kind, value, strict=False)
        reason = misfit.sentence
    except DecodeError as error:
        reason = error.message
    raise InputError(f"{name} is not the JSON of `hccl-tools {command}`: {reason}", hint=hint)
