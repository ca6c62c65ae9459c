"""Tables whose lists and entries are those of another format, or stand in another entry. This module declares no rules.

Such a table lacks several keys, and writing each of them would not help. One finding says what the entries are and
where they belong; the violations that follow from it are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import Finding, shared

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.shapes import Violation
    from hccl_tools.rules.registry import DamagedInput

_MOST_NAMED = 8


class OtherShape(NamedTuple):
    """What is wrong with the shape of a table.

    Attributes:
        finding: The finding that says it.
        key: The required key that is missing for it: the finding is reported in its place.
        depth: The length of the paths of the objects that lack keys for it.
        within: The beginnings of the paths of these objects; all objects of the depth if it is empty.
        keys: The keys that they lack for it.
    """

    finding: Finding
    depth: int
    within: frozenset[Path]
    keys: frozenset[str]

    def covers(self, violation: Violation) -> bool:
        """Return whether a violation follows from the shape."""
        path = violation.path
        if violation.key not in self.keys or len(path) != self.depth:
            return False
        return not self.within or path in self.within


@shared
def other_shapes(subject: DamagedInput) -> list[OtherShape]:
    """Return what is wrong with the shape of a table that lacks required keys."""
    value, table_format = subject.value, subject.violations.table_format
    if not isinstance(value, dict):
        return []
    if table_format == "2.0":
        found = [_ranks_in_servers(value), _ranks_of_1_0(value)]
    elif table_format == "group_list":
        found = [_instances_as_groups(value)]
    else:
        found = [
            _devices_in_pods(value),
            _servers_as_devices(value),
            _devices_as_servers(value),
            _stray_devices(subject),
        ]
    return [one for one in found if one is not None]


def _entries(value: Any, key: str) -> list[Any]:
    """Return the entries of a list in an object; none if it is not one."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _ranks_in_servers(value: dict[str, Any]) -> OtherShape | None:
    """A 2.0 table whose ranks are in the entries of a server_list, or of another list."""
    if "rank_list" in value:
        return None
    for key in value:
        lists = [_entries(one, "rank_list") for one in _entries(value, key)]
        if lists and all(lists):
            number = sum(map(len, lists))
            hint = (
                f'write one "rank_list" beside "version", with the {number} entries of all of them '
                f'in their order, delete "{key}", and write "rank_count": {number}'
            )
            finding = Finding(
                f'"rank_list" is in the entries of "{key}": a table of version 2.0 has one rank_list',
                (key, 0, "rank_list"), hint, at_key=True,
            )  # fmt: skip
            return OtherShape(finding, 0, frozenset(), frozenset({"rank_list", "rank_count"}))
    return None


def _ranks_of_1_0(value: dict[str, Any]) -> OtherShape | None:
    """Entries of rank_list that have the keys of a device of version 1.0."""
    ranks = _entries(value, "rank_list")
    own = [
        index
        for index, one in enumerate(ranks)
        if isinstance(one, dict) and "level_list" not in one and ("device_ip" in one or "server_id" in one)
    ]
    if not own:
        return None
    names = [ranks[index].get("rank_id", index) for index in own]
    numbers = [int(name) for name in names if str(name).isdecimal() and len(str(name)) < _MOST_NAMED]
    who = rank_list(numbers) if len(numbers) == len(own) else count(len(own), "rank")
    finding = Finding(
        f"the entries of {who} are those of a table of version 1.0 (device_ip, and no level_list)",
        ("rank_list", own[0]),
        f"write {who} with the level_list of their host: `hccl-tools gen` on it prints these entries; then number their "
        "rank_ids as here",
    )
    within: frozenset[Path] = frozenset(("rank_list", index) for index in own)
    return OtherShape(finding, 2, within, frozenset({"local_id", "level_list", "device_id"}))


def _instances_as_groups(value: dict[str, Any]) -> OtherShape | None:
    """Instances that are the entries of group_list itself."""
    groups = _entries(value, "group_list")
    if not groups or not all(
        isinstance(one, dict) and "instance_list" not in one and "devices" in one for one in groups
    ):
        return None
    devices = sum(len(_entries(one, "devices")) for one in groups)
    outer = f'[{{"group_name": "", "device_count": "{devices}", "instance_count": "{len(groups)}", "instance_list": [...]}}]'
    change = "" if value.get("group_count") == "1" else ', and write "group_count": "1"'
    finding = Finding(
        "the entries of group_list are instances (server_id, devices), and the group with their instance_list is missing",
        ("group_list", 0),
        f'put all entries into the instance_list of one group: "group_list": {outer}{change}',
    )
    keys = frozenset({"group_name", "device_count", "instance_count", "instance_list"})
    return OtherShape(finding, 2, frozenset(), keys)


def _devices_in_pods(value: dict[str, Any]) -> OtherShape | None:
    """Servers with their devices that are in super_pod_list alone."""
    if "server_list" in value:
        return None
    servers = [one for pod in _entries(value, "super_pod_list") for one in _entries(pod, "server_list")]
    if not servers or not all(isinstance(one, dict) and "device" in one for one in servers):
        return None
    finding = Finding(
        '"server_list" is missing, and the entries of super_pod_list have its servers with their devices',
        ("super_pod_list",),
        f'move these {count(len(servers), "server")} with their devices to "server_list", and leave {{"server_id": "..."}} of '
        "each in super_pod_list",
        at_key=True,
    )
    return OtherShape(finding, 0, frozenset(), frozenset({"server_list"}))


def _servers_as_devices(value: dict[str, Any]) -> OtherShape | None:
    """Servers that are entries in the list of devices of another server."""
    within: list[Path] = []
    names = list[str]()
    for index, server in enumerate(_entries(value, "server_list")):
        for place, one in enumerate(_entries(server, "device")):
            if isinstance(one, dict) and isinstance(one.get("device"), list) and "device_id" not in one:
                within.append(("server_list", index, "device", place))
                names.append(str(one.get("server_id", "?"))[:64])
    if not within:
        return None
    outer = _entries(value, "server_list")[int(within[0][1])].get("server_id")
    named = "" if outer is None else f" ({quoted(str(outer))})"
    shown = f"server{'' if len(names) == 1 else 's'} {and_more([quoted(name) for name in names])}"
    are = "is in the list of devices" if len(names) == 1 else "are in lists of devices"
    finding = Finding(
        f"{shown} {are} of another server{named}: its ] and }} are missing before it",
        within[0],
        f"move {'it' if len(names) == 1 else 'them'} to server_list, behind that server; server_count counts it there",
    )
    return OtherShape(finding, 4, frozenset(within), frozenset({"device_id", "rank_id"}))


def _devices_as_servers(value: dict[str, Any]) -> OtherShape | None:
    """Devices with the server_id of their server that are the entries of server_list, as rows of a spreadsheet."""
    servers = _entries(value, "server_list")
    if not servers or not all(
        isinstance(one, dict) and "device_id" in one and "server_id" in one and "device" not in one
        for one in servers
    ):
        return None
    number = len({str(one["server_id"]) for one in servers})
    keys = ", ".join(f'"{key}": ...' for key in ("device_id", "device_ip", "rank_id") if key in servers[0])
    entry = f'{{"server_id": "{str(servers[0]["server_id"])[:64]}", "device": [{{{keys}}}, ...]}}'
    finding = Finding(
        "the entries of server_list are devices with their server_ids, not servers",
        ("server_list", 0),
        f"write one entry for each server_id, {number} in all, with its "
        f'devices: {entry}, and write "server_count": "{number}"',
    )
    return OtherShape(finding, 2, frozenset(), frozenset({"device"}))


def _stray_devices(subject: DamagedInput) -> OtherShape | None:
    """Devices without a server_id between the servers of server_list: the list of a server ended too early."""
    servers = _entries(subject.value, "server_list")
    within = [
        index
        for index, one in enumerate(servers)
        if isinstance(one, dict)
        and "device_id" in one
        and not {"server_id", "device", "devices"} & one.keys()
    ]
    if not within or len(within) == len(servers):
        return None
    first = within[0]
    lacking = [
        (index, str(one.get("server_id")))
        for index, one in enumerate(servers)
        if index not in within and isinstance(one, dict) and _lacks(one, servers[first]["device_id"])
    ]
    is_one = len(within) == 1
    where = "of the server whose devices they are"
    if len(lacking) == 1:
        where = f"of server {lacking[0][0] + 1} ({quoted(lacking[0][1])}), which does not list {'it' if is_one else 'them'}"
    elif is_one:
        where = "of the server whose device it is"
    what = (
        f"entry {first + 1} of server_list is a device"
        if is_one
        else f"{len(within)} entries of server_list are devices"
    )
    finding = Finding(
        f"{what}, not {'a server' if is_one else 'servers'}: device_id {quoted(str(servers[first]['device_id']))}",
        ("server_list", first),
        f'move {"it" if is_one else "them"} into the "device" list {where}',
    )
    paths: frozenset[Path] = frozenset(("server_list", index) for index in within)
    return OtherShape(finding, 2, paths, frozenset({"server_id", "device"}))


def _lacks(server: dict[str, Any], device: Any) -> bool:
    """Return whether a server lists devices, and not this one."""
    own = [one.get("device_id") for one in _entries(server, "device") if isinstance(one, dict)]
    return bool(own) and device not in own
