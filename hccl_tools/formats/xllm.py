"""xLLM's mixture of ``server_list`` and ``group_list[].server_list`` in one file, which no HCCL format has.

xLLM looks up the host of a rank in ``server_list``, then in the ``server_list`` of each group. A rank_id is a
string or an integer; of several entries with one rank, the first one counts. HCCL reads ``server_list`` only.

Source: xllm 87e8d6ed, collective_communicator.cpp:44-136.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import RankTable


_Object = dict[str, Any]
_VERSIONS = ("1.0", "1.2")


class Listed(NamedTuple):
    """The servers of a mixture in one ``server_list``, as a document.

    Attributes:
        value: The document. Entries of one host are one server; damaged entries stay as they are.
        servers: The path of each server in the mixture: that of its first entry.
        devices: The path of each device of each server in the mixture; empty if the entry stays as it is.
    """

    value: _Object
    servers: list[Path]
    devices: list[list[Path]]

    def path_in_mixture(self, path: Path) -> Path:
        """Return the path in the mixture of a path in ``value``."""
        if path[:1] != ("server_list",) or len(path) == 1:
            return path
        index = int(path[1])
        if path[2:3] == ("device",) and len(path) > 3 and (devices := self.devices[index]):
            return (*devices[int(path[3])], *path[4:])
        return (*self.servers[index], *path[2:])


def is_mixture(value: Any) -> TypeGuard[_Object]:
    """Return whether a document has a group with a ``server_list``."""
    groups = value.get("group_list") if isinstance(value, dict) else None
    return isinstance(groups, list) and any(isinstance(one, dict) and "server_list" in one for one in groups)


def ranks(value: _Object) -> tuple[set[int], set[int]]:
    """Return the ranks that HCCL reads and those that xLLM finds.

    HCCL reads ``server_list`` only with a version that has it.
    """
    own = {rank for rank, _ in _devices_of(_servers(value)) if rank is not None}
    everything = {rank for rank, _ in _devices_of(_all_servers(value)) if rank is not None}
    return own if value.get("version") in _VERSIONS else set(), everything


def read(value: _Object) -> RankTable:
    """Return the table of a mixture as xLLM reads it: servers in the order of the search.

    Entries for a host become one server. Devices with a rank that an earlier entry has are left out.

    Raises:
        StructureError: An entry violates the schema of 1.0, or of 1.2 if that is the version.
    """
    hosts: dict[str, _Object] = {}
    seen: set[int] = set()
    for server in _all_servers(value):
        kept = []
        for rank, device in _devices_of(iter((server,))):
            if rank is not None and rank not in seen:
                seen.add(rank)
                kept.append({**device, "rank_id": str(rank)})
        if kept:
            host = server["server_id"]
            first = hosts.setdefault(host, {**server, "device": []})
            first["device"] = [*first["device"], *kept] if first["device"] else kept
    head = _head(value)
    return formats.read({**head, "server_list": list(hosts.values())}, head["version"])


def listed(value: _Object) -> Listed:
    """Return all servers of a mixture in one list. A device that an earlier entry repeats is left out."""
    servers: list[Any] = []
    found = Listed({**_head(value), "server_list": servers}, [], [])
    hosts: dict[str, int] = {}
    seen: set[tuple[str, str, str]] = set()
    for path, entry in _entries(value):
        name = entry.get("server_id") if isinstance(entry, dict) else None
        devices = entry.get("device") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not isinstance(devices, list):
            servers.append(entry)
            found.servers.append(path)
            found.devices.append([])
            continue
        index = hosts.setdefault(name, len(servers))
        if index == len(servers):
            servers.append({**entry, "device": []})
            found.servers.append(path)
            found.devices.append([])
        for place, device in enumerate(devices):
            known = _with_text(device)
            key = (name, str(known.get("rank_id")), str(known.get("device_id"))) if known else None
            if key is None or key not in seen:
                servers[index]["device"].append(known or device)
                found.devices[index].append((*path, "device", place))
            if key is not None:
                seen.add(key)
    return found


def _with_text(device: Any) -> _Object | None:
    """Return a device with its rank as text; ``None`` for an entry that is not an object."""
    if not isinstance(device, dict):
        return None
    rank = device.get("rank_id")
    return {**device, "rank_id": str(rank)} if type(rank) is int else device


def _entries(value: _Object) -> Iterator[tuple[Path, Any]]:
    """Yield path and content of each entry of a ``server_list``, in the order of the search."""
    groups = value.get("group_list")
    holders: list[tuple[Path, Any]] = [((), value)]
    if isinstance(groups, list):
        holders += ((("group_list", index), group) for index, group in enumerate(groups))
    for path, holder in holders:
        entries = holder.get("server_list") if isinstance(holder, dict) else None
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            yield (*path, "server_list", index), entry


def _head(value: _Object) -> _Object:
    """Return the keys of the table beside its lists of servers."""
    version: Format = "1.2" if value.get("version") == "1.2" else "1.0"
    rest = {key: value[key] for key in ("super_pod_list",) if version == "1.2" and key in value}
    return {"version": version, "status": value.get("status", "completed"), **rest}


def _all_servers(value: _Object) -> Iterator[_Object]:
    groups = value.get("group_list")
    in_groups = (_servers(one) for one in (groups if isinstance(groups, list) else ()))
    return chain(_servers(value), chain.from_iterable(in_groups))


def _servers(holder: Any) -> Iterator[_Object]:
    """Yield the entries that xLLM searches: objects with a server_id and a device list."""
    entries = holder.get("server_list") if isinstance(holder, dict) else None
    for one in entries if isinstance(entries, list) else ():
        if isinstance(one, dict) and isinstance(one.get("server_id"), str) and one["server_id"]:
            yield one


def _devices_of(servers: Iterator[_Object]) -> Iterator[tuple[int | None, _Object]]:
    for server in servers:
        devices = server.get("device")
        for device in devices if isinstance(devices, list) else ():
            if isinstance(device, dict):
                yield _rank(device.get("rank_id")), device


def _rank(value: Any) -> int | None:
    """Return the rank that xLLM compares: it writes its own rank as text, so "07" is not rank 7."""
    if type(value) is int and 0 <= value < 1 << 31:
        return value
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 9:
        return int(value) if str(int(value)) == value else None
    return None
