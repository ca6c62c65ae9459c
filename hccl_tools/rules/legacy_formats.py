"""Rules on the undocumented "lab" form of group_list tables (key ``deploy_mode`` present).

Such tables are obsolete, but HCCL still reads them, so ``validate`` reports its verdict.

Source: hcomm topoinfo_ranktableStandard.cc, GetHcomInfo, GetLabSingleGroup, GetDevList.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from hccl_tools.rules.registry import Finding, Subject, rule
from hccl_tools.table.addresses import family, is_unset
from hccl_tools.table.hccl_numbers import byte_length, read_uint
from hccl_tools.table.model import Group, RankTable, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.model import Column

_AVERAGES = (1, 2, 4, 8, 16)
_LIMIT = 32
_HOST_PROCESS = (1 << 32) - 1
_LONGEST_NAME = 127


@rule("HCC115", "lab-table", "refused", source="topoinfo_ranktableStandard.cc:152-167, :364-412")
def lab_table(subject: Subject) -> Iterator[Finding]:
    """A table of the old "lab" form (deploy_mode) is incomplete or contradicts itself.

    Base: lab
    Example: /para_plane_nic_location = "host"
    Instead: /para_plane_nic_location = "device"
    Hint: make a 1.0 table instead; HCCL no longer documents this form
    """
    hint = "make a 1.0 table instead; HCCL no longer documents this form"
    for path, message in _Lab(subject).faults():
        yield Finding(f"lab table (deploy_mode): {message}", path, hint)


def as_table(value: dict[str, Any]) -> RankTable:
    """Convert a valid lab table to the table that HCCL's topology check uses."""
    instances = [instance for group in value["group_list"] for instance in group["instance_list"]]
    devices = [instance["devices"][0] for instance in instances]
    servers = [Server(instance["server_id"], range(row, row + 1)) for row, instance in enumerate(instances)]
    columns: dict[str, Column] = {
        "device_id": [device["device_id"] for device in devices],
        "device_ip": [device["device_ip"] for device in devices],
        "rank_id": [instance["rank_id"] for instance in instances],
    }
    sizes = accumulate((len(group["instance_list"]) for group in value["group_list"]), initial=0)
    groups = [
        Group(group["group_name"], range(*bounds))
        for group, bounds in zip(value["group_list"], pairwise(sizes), strict=True)
    ]
    return RankTable(
        "group_list", servers, columns, groups=groups, fields={"deploy_mode": value["deploy_mode"]}
    )


class _Lab:
    """Checks a lab table in one pass and collects the values that are compared at the end."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.rank_ids: list[int] = []
        self.server_ids: list[str] = []
        self.servers = 0
        self.ips: set[str] = set()
        self.names: set[str] = set()

    def faults(self) -> Iterator[tuple[Path, str]]:
        value = self.subject.value
        if not isinstance(value.get("status"), str):
            yield (), "status is missing or not a string"
        if value.get("version", "Standard") != "Standard":
            yield ("version",), 'version is not "Standard"; a lab table needs no version'
        if value.get("para_plane_nic_location") != "device":
            yield ("para_plane_nic_location",), 'para_plane_nic_location is not "device"'
        groups = value.get("group_list")
        if not isinstance(groups, list) or not groups:
            yield ("group_list",), "group_list is missing, empty or not a list"
            return
        if _count(value.get("group_count")) != len(groups):
            yield ("group_count",), f"group_count is not {len(groups)}"
        for index, group in enumerate(groups):
            path: Path = ("group_list", index)
            if not isinstance(group, dict):
                yield path, "a group is not an object"
                continue
            yield from self._group(group, path)
        if sorted(self.rank_ids) != list(range(len(self.rank_ids))):
            yield ("group_list",), "the rank ids are not 0 to N-1"
        if len(set(self.server_ids)) != self.servers:
            yield (
                ("group_list",),
                f"the server_num values add up to {self.servers}, but the instances have {len(set(self.server_ids))} server_ids",
            )

    def _group(self, group: dict[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
        yield from self._name(group, path)
        devices, servers = _count(group.get("device_num")), _count(group.get("server_num"))
        if not devices or not servers:
            yield path, "device_num or server_num is missing or zero"
            return
        self.servers += servers
        average = devices / servers
        if not self.subject.product.single_server and average not in _AVERAGES:
            yield (*path, "device_num"), "device_num divided by server_num is not 1, 2, 4, 8 or 16"
        instances = group.get("instance_list")
        if not isinstance(instances, list) or not instances:
            yield path, "instance_list is missing, empty or not a list"
            return
        if _count(group.get("instance_count")) != devices or len(instances) != devices:
            yield (*path, "instance_count"), "instance_count, device_num and the number of instances differ"
        for index, instance in enumerate(instances):
            yield from self._instance(instance, (*path, "instance_list", index))

    def _name(self, group: dict[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
        name = group.get("group_name")
        if not isinstance(name, str):
            yield path, "group_name is missing or not a string"
        elif byte_length(name) > _LONGEST_NAME:
            yield (*path, "group_name"), f"group_name is longer than {_LONGEST_NAME} bytes"
        elif name in self.names:
            yield (*path, "group_name"), f'group_name "{name}" is used twice'
        else:
            self.names.add(name)

    def _instance(self, instance: Any, path: Path) -> Iterator[tuple[Path, str]]:
        keys = ("server_id", "rank_id")
        if not isinstance(instance, dict) or not all(isinstance(instance.get(key), str) for key in keys):
            yield path, "server_id or rank_id is missing or not a string"
            return
        self.server_ids.append(instance["server_id"])
        rank = read_uint(instance["rank_id"])
        if rank is None or not 1 <= byte_length(instance["server_id"]) <= 64:
            yield path, "rank_id is not a number, or server_id is not 1 to 64 bytes long"
        else:
            self.rank_ids.append(rank)
        devices = instance.get("devices")
        if not isinstance(devices, list) or len(devices) != 1 or not isinstance(devices[0], dict):
            yield path, "an instance must have exactly one device"
            return
        yield from self._device(devices[0], (*path, "devices", 0))

    def _device(self, device: dict[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
        number = _count(device.get("device_id"))
        limit = self.subject.product.lab_device_limit or _LIMIT
        # With the general limit HCCL compares signed numbers, and -1 means a host process.
        signed = number is not None and limit == _LIMIT and number >= 1 << 31 and number != _HOST_PROCESS
        if number is None or (number >= limit and not signed):
            yield path, f"device_id is missing or not below {limit}"
        ip = device.get("device_ip")
        if not isinstance(ip, str):
            yield path, "device_ip is missing"
        elif ip:
            if family(ip) is None or is_unset(ip) or ip in self.ips:
                yield (*path, "device_ip"), f'device_ip "{ip}" is not an address, or is used twice'
            self.ips.add(ip)


def _count(text: Any) -> int | None:
    return read_uint(text) if isinstance(text, str) else None
