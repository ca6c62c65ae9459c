"""Tables whose lists and entries are those of another format, or stand in another entry. This module declares no rules.

Such a table lacks several keys, and writing each of them would not help. One finding says what the entries are and
where they belong; the violations that follow from it are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple
from hccl_tools.rules import misplaced_findings, misplaced_targets
from hccl_tools.rules.misplaced_entries import is_in
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.table.format_names import SERVICE

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.shapes import Violation
    from hccl_tools.rules.registry import DamagedInput

_MOST_NAMED = 8


class OtherShape(NamedTuple):
    """What is wrong with the shape of a table.

    Attributes:
        finding: The finding that says it.
        depth: The length of the paths of the objects that lack keys for it.
        within: The paths of these objects; all objects of the depth if it is empty.
        keys: The keys that they lack for it; if it is empty, all that is wrong in these objects follows from it.
        keyword: The keyword of the schema whose rule reports it.
    """

    finding: Finding
    depth: int
    within: frozenset[Path]
    keys: frozenset[str]
    keyword: str = "required"

    def covers(self, violation: Violation) -> bool:
        """Return whether a violation follows from the shape."""
        path = violation.path
        if not self.keys:
            return is_in(path, self.within)
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
        found: list[OtherShape | None] = [_ranks_in_servers(value), _ranks_of_1_0(value)]
    elif table_format == "group_list":
        found = [_instances_as_groups(value)]
    elif table_format == SERVICE:
        found = []
    else:
        found = [_devices_in_pods(value), _devices_as_servers(value)]
    return [one for one in found if one is not None] or _misplaced(subject, table_format)


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


def _misplaced(subject: DamagedInput, table_format: str) -> list[OtherShape]:
    """Entries that are in a list of another level of the table than their own."""
    return [
        OtherShape(
            misplaced_findings.finding(group), 0, group.paths | misplaced_targets.emptied(group), frozenset(),
            "type" if group.is_list else "required",
        )
        for group in misplaced_targets.groups(subject, table_format)
        if group.place.path[0] != "super_pod_list"  # HCC521 reports it.
    ]  # fmt: skip
