"""Rules on the network levels and addresses of 2.0 tables (Ascend 950).

A valid table of 65,536 ranks has some 130,000 levels: each rule first asks the set of all values.
"""

from __future__ import annotations

from collections import deque
from itertools import chain, repeat
from socket import AF_INET, inet_pton
from typing import TYPE_CHECKING, Any

from hccl_tools.addresses import V2_CHECKS
from hccl_tools.rules.registry import Finding, Related, Subject, rule
from hccl_tools.table import read_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.diagnostics.diagnostic import Path

_FORMATS = ("2.0",)
#: A local_id that means a spare device (BACKUP_LOCAL_ID).
SPARE = 64
HIGHEST_LAYER = 7
_NET_TYPES = frozenset({"TOPO_FILE_DESC", "CLOS", "1DMESH", "2DMESH", "A3_SERVER", "A2_AX_SERVER"})
_LONGEST = {"net_instance_id": 1024, "plane_id": 1024, "addr": 256, "port": 32}
_MOST_PORTS = 16
_HIGHEST_LISTEN_PORT = 65536
_USUAL_LAYERS = ([0], [0, 1], [0, 1, 2], [0, 1, 2, 3])

_Entry = dict[str, Any]


def _levels(subject: Subject) -> list[_Entry]:
    known: list[_Entry] | None = subject.memo.get("levels")
    if known is None:
        known = subject.memo["levels"] = list(chain.from_iterable(subject.table.column("level_list")))
    return known


def _addresses(subject: Subject) -> list[_Entry]:
    known: list[_Entry] | None = subject.memo.get("level addresses")
    if known is None:
        lists = (level["rank_addr_list"] for level in _levels(subject))
        known = subject.memo["level addresses"] = list(chain.from_iterable(lists))
    return known


def _each_level(subject: Subject) -> Iterator[tuple[Path, _Entry]]:
    for row, levels in enumerate(subject.table.column("level_list")):
        for index, level in enumerate(levels):
            yield ("rank_list", row, "level_list", index), level


def _each_address(subject: Subject) -> Iterator[tuple[Path, _Entry]]:
    for path, level in _each_level(subject):
        for index, address in enumerate(level["rank_addr_list"]):
            yield (*path, "rank_addr_list", index), address


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@rule("HCC331", "local-id", "refused", formats=_FORMATS, source="new_rank_info.cc:47-63")
def local_id(subject: Subject) -> Iterator[Finding]:
    """A local_id is not within 0 to 64, or 64 (a spare device) has no replaced_local_id from 0 to 63.

    Example: /rank_list/0/local_id = 65
    Instead: /rank_list/0/local_id = 0
    """
    ids, replaced = subject.table.column("local_id"), subject.table.column("replaced_local_id")
    if set(ids) <= set(range(SPARE)):
        return
    for row, value in enumerate(ids):
        number = read_integer(value)
        if number is None or not 0 <= number <= SPARE:
            yield Finding(f"local_id {value} is not within 0 to 64", ("rank_list", row, "local_id"), "write the device's place in its node")
        elif number == SPARE:
            other = read_integer(replaced[row])
            if other is None or not 0 <= other < SPARE:
                key = ("replaced_local_id",) if replaced[row] is not None else ()
                message = "a spare device (local_id 64) needs replaced_local_id from 0 to 63"
                yield Finding(message, ("rank_list", row, *key), "add the local_id that the spare stands for")


@rule("HCC332", "spare-device", "refused", code="EI0014", formats=_FORMATS, stage="check", source="rank_table_info.cc:90-144")
def spare_device(subject: Subject) -> Iterator[Finding]:
    """The table has two spare devices, or a rank has the local_id that the spare replaces.

    Example: /rank_list/0/local_id = 64; /rank_list/0/replaced_local_id = 1
    Instead: /rank_list/0/local_id = 64; /rank_list/0/replaced_local_id = 5
    """
    numbers = [read_integer(value) for value in subject.table.column("local_id")]
    spares = [row for row, number in enumerate(numbers) if number == SPARE]
    for row in spares[1:]:
        related = (Related(("rank_list", spares[0], "local_id"), "the first"),)
        yield Finding("a second spare device (local_id 64)", ("rank_list", row, "local_id"), "a table may have one", related)
    replaced = read_integer(subject.table.column("replaced_local_id")[spares[0]]) if spares else None
    if replaced is not None and replaced in numbers:
        path = ("rank_list", numbers.index(replaced), "local_id")
        related = (Related(("rank_list", spares[0], "replaced_local_id"), "replaced here"),)
        yield Finding(f"local_id {replaced} is replaced by the spare device", path, "leave the replaced device out", related)


@rule("HCC451", "net-layer", "refused", formats=_FORMATS, source="rank_level_info.cc:39, new_rank_info.cc:77-103")
def net_layer(subject: Subject) -> Iterator[Finding]:
    """A net_layer is not within 0 to 7, or a rank's levels do not ascend.

    Example: /rank_list/0/level_list/0/net_layer = 8
    Instead: /rank_list/0/level_list/0/net_layer = 0
    """
    for row, levels in enumerate(subject.table.column("level_list")):
        layers = [level["net_layer"] for level in levels]
        if layers in _USUAL_LAYERS:
            continue
        previous = -1
        for index, value in enumerate(layers):
            path = ("rank_list", row, "level_list", index, "net_layer")
            number = read_integer(value)
            if number is None or not 0 <= number <= HIGHEST_LAYER:
                yield Finding(f"net_layer {value} is not within 0 to 7", path, "number the levels from 0")
                continue
            if number <= previous:
                yield Finding(f"net_layer {value} follows net_layer {previous}", path, "list the levels by ascending net_layer")
            previous = number


@rule("HCC452", "net-instance-id", "refused", formats=_FORMATS, source="rank_level_info.cc:43")
def net_instance_id(subject: Subject) -> Iterator[Finding]:
    """A net_instance_id is empty or has more than 1024 bytes.

    Example: /rank_list/0/level_list/0/net_instance_id = ""
    Instead: /rank_list/0/level_list/0/net_instance_id = "node0"
    """
    most = _LONGEST["net_instance_id"]
    if _all(_levels(subject), "net_instance_id", lambda name: 0 < _size(name) <= most):
        return
    for path, level in _each_level(subject):
        if not 0 < _size(level["net_instance_id"]) <= most:
            yield Finding(f"net_instance_id has not 1 to {most} bytes", (*path, "net_instance_id"), "give the network instance an id")


def _all(entries: list[_Entry], key: str, passes: Callable[[Any], bool], default: Any = None) -> bool:
    """Whether all values of a key pass, asked once per different value."""
    values = {entry.get(key, default) for entry in entries}
    return all(value is default or passes(value) for value in values)


@rule("HCC453", "net-type", "refused", formats=_FORMATS, source="rank_level_info.cc:22, :50")
def net_type(subject: Subject) -> Iterator[Finding]:
    """A net_type is none that HCCL knows.

    Example: /rank_list/0/level_list/0/net_type = "clos"
    Instead: /rank_list/0/level_list/0/net_type = "CLOS"
    """
    if _all(_levels(subject), "net_type", _NET_TYPES.__contains__):
        return
    for path, level in _each_level(subject):
        if "net_type" in level and level["net_type"] not in _NET_TYPES:
            yield Finding(f'net_type "{level["net_type"]}" is unknown', (*path, "net_type"), "write TOPO_FILE_DESC or CLOS")


@rule("HCC454", "uneven-rank-addresses", "refused", formats=_FORMATS, stage="check", source="rank_table_info.cc:127-196")
def uneven_rank_addresses(subject: Subject) -> Iterator[Finding]:
    """Ranks of one network instance have different numbers of addresses.

    Example: /rank_list/0/level_list/0/rank_addr_list = []
    Instead: table
    """
    sizes = {(level["net_layer"], level["net_instance_id"], len(level["rank_addr_list"])) for level in _levels(subject)}
    if len({key[:2] for key in sizes}) == len(sizes):
        return
    first: dict[tuple[int | None, str], tuple[int, Path]] = {}
    for path, level in _each_level(subject):
        layer = level["net_layer"]
        key = (layer if type(layer) is int else read_integer(layer), level["net_instance_id"])
        size = len(level["rank_addr_list"])
        known, where = first.setdefault(key, (size, path))
        if known != size:
            related = (Related((*where, "rank_addr_list"), f"{known} here"),)
            message = f'{size} addresses in network instance "{key[1]}", where the first rank has {known}'
            yield Finding(message, (*path, "rank_addr_list"), "list the same number of addresses for each rank of an instance", related)


@rule("HCC455", "addr-type", "refused", formats=_FORMATS, source="address_info.cc:25-37")
def addr_type(subject: Subject) -> Iterator[Finding]:
    """An addr_type is not EID, IPV4 or IPV6.

    The guide's table spells IPv4 and IPv6, which HCCL refuses: upper case only.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/addr_type = "IPv4"
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/addr_type = "IPV4"
    """
    for path, entry in _each_typed(subject):
        if entry["addr_type"] not in V2_CHECKS:
            yield Finding(f'addr_type "{entry["addr_type"]}" is unknown', (*path, "addr_type"), "write EID, IPV4 or IPV6 in upper case")


def _each_typed(subject: Subject) -> Iterator[tuple[Path, _Entry]]:
    """Yield everything with addr_type and addr: control planes, and addresses unless all types are known."""
    for row, plane in enumerate(subject.table.columns.get("control_plane", ())):
        if plane is not None:
            yield ("rank_list", row, "control_plane"), plane
    if not _all(_addresses(subject), "addr_type", V2_CHECKS.__contains__):
        yield from _each_address(subject)


@rule("HCC456", "addr", "refused", code="EI0014", formats=_FORMATS, source="address_info.cc:43-65")
def addr(subject: Subject) -> Iterator[Finding]:
    """An addr is no address of its addr_type: 32 hex digits for an EID, no leading zeros in IPv4.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/addr = "10.0.0.01"
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/addr = "10.0.0.1"
    """
    if not _all_are_ipv4(_addresses(subject)):
        for path, entry in _each_address(subject):
            yield from _addr_fault(path, entry)
    for row, plane in enumerate(subject.table.columns.get("control_plane", ())):
        if plane is not None:
            yield from _addr_fault(("rank_list", row, "control_plane"), plane)


def _all_are_ipv4(addresses: list[_Entry]) -> bool:
    """Whether all addresses are IPv4, which is usual, asked without Python code for each."""
    if {entry["addr_type"] for entry in addresses} - {"IPV4"}:
        return False
    texts = [entry["addr"] for entry in addresses]
    try:
        deque(map(inet_pton, repeat(AF_INET), texts), maxlen=0)
    except (OSError, UnicodeEncodeError, ValueError):
        return False
    return True


def _is_addr(kind: str, text: str) -> bool:
    return kind not in V2_CHECKS or (0 < _size(text) <= _LONGEST["addr"] and V2_CHECKS[kind](text))


def _addr_fault(path: Path, entry: _Entry) -> Iterator[Finding]:
    kind, text = entry["addr_type"], entry["addr"]
    if not _is_addr(kind, text):
        message = f'"{text}" is no {kind} address' if text else "addr is empty"
        yield Finding(message, (*path, "addr"), "write the address in the form of its addr_type")


@rule("HCC457", "backup-addr", "refused", formats=_FORMATS, source="address_info.cc:95-159")
def backup_addr(subject: Subject) -> Iterator[Finding]:
    """A backup_addr is no address of the entry's addr_type, or stands beside an EID.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/backup_addr = ["10.0.0"]
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/backup_addr = ["10.0.0.9"]
    """
    if not any("backup_addr" in entry for entry in _addresses(subject)):
        return
    for path, entry in _each_address(subject):
        kind = entry["addr_type"]
        for index, text in enumerate(entry.get("backup_addr", ())):
            if kind == "EID" or not _is_addr(kind, text):
                message = "an EID has no backup_addr" if kind == "EID" else f'"{text}" is no {kind} address'
                yield Finding(message, (*path, "backup_addr", index), "write an address of the same addr_type, or leave it out")


@rule("HCC458", "ports", "refused", formats=_FORMATS, source="address_info.cc:77-92")
def ports(subject: Subject) -> Iterator[Finding]:
    """An address has more than 16 different ports, or a port of no or more than 32 bytes.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/ports = [""]
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/ports = ["0/4"]
    """
    most = _LONGEST["port"]
    different = {tuple(entry["ports"]) for entry in _addresses(subject)}
    if all(len(names) <= _MOST_PORTS and all(0 < _size(name) <= most for name in names) for names in different):
        return
    for path, entry in _each_address(subject):
        names = entry["ports"]
        if len(names) > _MOST_PORTS and len(set(names)) > _MOST_PORTS:
            yield Finding(f"{len(set(names))} different ports, HCCL takes {_MOST_PORTS}", (*path, "ports"), "list at most 16 ports")
        for index, name in enumerate(names):
            if not 0 < len(name) <= most or not 0 < _size(name) <= most:
                yield Finding(f"a port has not 1 to {most} bytes", (*path, "ports", index), 'write it as die/port: "0/4"')


@rule("HCC459", "plane-id", "refused", formats=_FORMATS, source="address_info.cc:70")
def plane_id(subject: Subject) -> Iterator[Finding]:
    """A plane_id has more than 1024 bytes.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/plane_id = repeat "p" 1025
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/plane_id = "plane0"
    """
    most = _LONGEST["plane_id"]
    if _all(_addresses(subject), "plane_id", lambda name: _size(name) <= most):
        return
    for path, entry in _each_address(subject):
        if _size(entry.get("plane_id", "")) > most:
            yield Finding(f"plane_id has more than {most} bytes", (*path, "plane_id"), "give the plane a shorter id")


@rule("HCC460", "listen-port", "refused", formats=_FORMATS, source="control_plane.cc")
def listen_port(subject: Subject) -> Iterator[Finding]:
    """The listen_port of a control_plane is not within 1 to 65536.

    Example: /rank_list/0/control_plane = {"addr_type": "IPV4", "addr": "10.0.0.1", "listen_port": 0}
    Instead: /rank_list/0/control_plane = {"addr_type": "IPV4", "addr": "10.0.0.1", "listen_port": 50000}
    """
    for row, plane in enumerate(subject.table.columns.get("control_plane", ())):
        number = None if plane is None else read_integer(plane["listen_port"])
        if plane is not None and (number is None or not 1 <= number <= _HIGHEST_LISTEN_PORT):
            path = ("rank_list", row, "control_plane", "listen_port")
            yield Finding(f"listen_port {plane['listen_port']} is not within 1 to 65536", path, "choose a port")


@rule("HCC461", "detour", "refused", formats=_FORMATS, source="rank_table_info.cc:153")
def detour(subject: Subject) -> Iterator[Finding]:
    """detour is neither "true" nor "false".

    Example: /detour = "yes"
    Instead: /detour = "true"
    """
    value = subject.table.fields.get("detour", "")
    if value not in ("true", "false", ""):
        yield Finding(f'detour is "{value}"', ("detour",), 'write "true" or "false"')
