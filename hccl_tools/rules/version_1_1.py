"""HCCL's checks of version 1.1 (heterogeneous) tables.

Source: hcomm topoinfo_ranktableHeterog.cc, config.cc:71-79, hccl_communicator_attrs_host.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.rules.registry import Finding, Input, rule
from hccl_tools.table.addresses import family, is_unset
from hccl_tools.table.hccl_numbers import byte_length, read_int, read_uint
from hccl_tools.table.model import RankTable, Server

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Path

    _Faults = Iterator[tuple[Path, str]]

_Object = dict[str, Any]
_LONGEST_ID = 127
_LONGEST_ADDRESS = 127
#: hccl_communicator_attrs_host.cc, SetLocalRankInfo and CheckDevPhyId: refuse host processes and ids above 31.
_HOST_PROCESS = -1
_HIGHEST_DEVICE = 31
#: The first port that HCCL assigns to ranks without a port (HCCL_IF_BASE_PORT is not set).
_BASE_PORT, _NO_PORT, _HIGHEST_PORT = 60008, 65536, 65535
#: The rules of 1.0 that HCCL's later checks apply to version 1.1, and the 1.1 key for each 1.0 key.
LATER = frozenset({"HCC202", "HCC203", "HCC303", "HCC304", "HCC305", "HCC406", "HCC408", "HCC410"})
_OWN_KEYS: dict[str | int, str] = {
    "server_list": "node_list", "device": "ranks", "server_id": "node_addr", "host_ip": "node_addr",
    "device_ip": "rank_ip",
}  # fmt: skip


@rule("HCC114", "heterogeneous-table", "refused", source="topoinfo_ranktableHeterog.cc")
def heterogeneous_table(subject: Input) -> Iterator[Finding]:
    """The version is 1.1, but the table is not a valid heterogeneous table.

    Version 1.1 describes host processes and devices (collective_id, node_list); no training job uses it. A
    table with server_list has version 1.0.

    Base: 1.0
    Example: /version = "1.1"
    Instead: /version = "1.0"
    Hint: write "version": "1.0" for a table with server_list
    """
    hint = (
        'write "version": "1.0" for a table with server_list'
        if "server_list" in subject.value
        else "correct the value, or make a 1.0 table for a training job"
    )
    if "server_list" in subject.value and "node_list" not in subject.value:
        message = "version 1.1 is the heterogeneous format, with node_list, and this table has server_list"
        yield Finding(message, ("version",), hint)
        return
    for path, message in _faults(subject.value):
        yield Finding(f"version 1.1: {message}", path, hint)


def as_table(value: _Object) -> RankTable:
    """Convert a valid table to the 1.0 table that HCCL's later checks use: a negative id wraps around."""
    servers: list[Server] = []
    columns: dict[str, list[Any]] = {"rank_id": [], "device_id": [], "device_ip": []}
    for node in value["node_list"]:
        first = len(columns["rank_id"])
        for rank in node["ranks"]:
            address = rank.get("rank_ip")
            columns["rank_id"].append(rank["rank_id"])
            columns["device_id"].append(str((read_int(rank["device_id"]) or 0) % (1 << 32)))
            columns["device_ip"].append(
                address if address and isinstance(address, str) else node["node_addr"]
            )
        rows = range(first, len(columns["rank_id"]))
        servers.append(Server(node["node_addr"], rows, node["node_addr"]))
    return RankTable("1.0", servers, columns)


def in_own_keys(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return findings of 1.0 rules with the paths of the same keys in version 1.1."""
    return [
        one._replace(
            path=_own(one.path), related=tuple(other._replace(path=_own(other.path)) for other in one.related)
        )
        for one in diagnostics
    ]


def _own(path: Path) -> Path:
    return tuple(_OWN_KEYS.get(key, key) for key in path)


def _faults(value: _Object) -> _Faults:
    """Yield the faults that HCCL's parser refuses, each with its path."""
    yield from _head(value)
    nodes = value.get("node_list")
    if not isinstance(nodes, list) or not nodes:
        yield ("node_list",) if "node_list" in value else (), "node_list is missing, empty or not a list"
        return
    with_sdid = "heterog_sub_version" in value
    seen: set[str] = set()
    for index, node in enumerate(nodes):
        path: Path = ("node_list", index)
        address = node.get("node_addr") if isinstance(node, dict) else None
        if not isinstance(address, str) or family(address) is None or address in seen:
            yield path, "node_addr is missing, not an address, or used twice"
            continue
        if byte_length(address) > _LONGEST_ADDRESS:
            yield (*path, "node_addr"), f"node_addr is longer than {_LONGEST_ADDRESS} bytes"
        seen.add(address)
        yield from _ranks(node, path, with_sdid=with_sdid)
    unset = [is_unset(address) for address in seen]
    if any(unset) and not all(unset):
        yield ("node_list",), "some node_addr values are 0.0.0.0, others are not"


def _head(value: _Object) -> _Faults:
    if not isinstance(value.get("status"), str):
        yield ("status",) if "status" in value else (), "status is missing or not a string"
    collective_id = value.get("collective_id")
    if not isinstance(collective_id, str) or byte_length(collective_id) > _LONGEST_ID:
        yield (
            ("collective_id",) if "collective_id" in value else (),
            "collective_id is missing, not a string or too long",
        )
    if "mode" in value and value["mode"] not in ("tcp", "rdma"):
        yield ("mode",), 'mode is neither "tcp" nor "rdma"'
    if "heterog_sub_version" in value and value["heterog_sub_version"] != "1.2":
        yield ("heterog_sub_version",), 'heterog_sub_version is not "1.2"'


def _ranks(node: _Object, path: Path, *, with_sdid: bool) -> _Faults:
    ranks = node.get("ranks")
    if not isinstance(ranks, list) or not ranks:
        yield path, "ranks is missing, empty or not a list"
        return
    ports: list[int | None] = []
    for index, rank in enumerate(ranks):
        own: Path = (*path, "ranks", index)
        rank_id = rank.get("rank_id") if isinstance(rank, dict) else None
        if not isinstance(rank_id, str) or read_uint(rank_id) is None:
            yield own, "rank_id is missing or not a number in a string"
            continue
        yield from _device(rank, own)
        yield from _port(rank, own, ports)
        yield from _address(rank, own)
        yield from _needed(rank, own) if with_sdid else ()
    yield from _missing_ports(ports, path)


def _device(rank: _Object, path: Path) -> _Faults:
    number = _number(rank, "device_id", _HOST_PROCESS)
    if number is None:
        yield (*path, "device_id"), "device_id is not a number in a string"
    elif number == _HOST_PROCESS:
        yield path, "device_id is missing or -1; HCCL does not start a rank without a device"
    elif number > _HIGHEST_DEVICE:
        yield (*path, "device_id"), f"device_id {number} is above {_HIGHEST_DEVICE}"


def _port(rank: _Object, path: Path, ports: list[int | None]) -> _Faults:
    number = _number(rank, "port", _NO_PORT)
    if number is None:
        yield (*path, "port"), "port is not a number in a string"
    ports.append(None if number in (0, _NO_PORT) else number)


def _address(rank: _Object, path: Path) -> _Faults:
    """Check rank_ip; if it is absent, empty or not a string, HCCL uses the address of the node."""
    address = rank.get("rank_ip")
    if isinstance(address, str) and address and family(address) is None:
        yield (*path, "rank_ip"), f'rank_ip "{address}" is not an address'


def _needed(rank: _Object, path: Path) -> _Faults:
    for key in ("device_id", "port", "rank_ip", "sdid"):
        if not isinstance(rank.get(key), str):
            yield path, f"{key} is missing or not a string, which heterog_sub_version requires"
    if isinstance(rank.get("sdid"), str) and read_int(rank["sdid"]) is None:
        yield (*path, "sdid"), f'sdid "{rank["sdid"]}" is not a 32-bit number'


def _missing_ports(ports: list[int | None], path: Path) -> _Faults:
    """Yield the first rank of a node without a port to which HCCL cannot assign a free one."""
    used = set(ports)
    beyond = next(
        (port for port in range(_HIGHEST_PORT, _BASE_PORT - 1, -1) if port not in used), _BASE_PORT - 1
    )
    for index, port in enumerate(ports):
        if port is None and _BASE_PORT + index > beyond:
            yield (
                (*path, "ranks", index),
                f"no port from {_BASE_PORT + index} to {_HIGHEST_PORT} is free for this rank",
            )
            return


def _number(rank: _Object, key: str, default: int) -> int | None:
    """Return the signed number under a key; ``None`` if HCCL cannot read it."""
    if key not in rank:
        return default
    return read_int(rank[key]) if isinstance(rank[key], str) else None
