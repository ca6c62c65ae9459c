"""Rules on the undocumented "lab" form of group_list tables (key ``deploy_mode`` present).

Such tables are obsolete, but HCCL still reads them, so ``validate`` reports its verdict.

Source: hcomm topoinfo_ranktableStandard.cc, GetHcomInfo, GetLabSingleGroup, GetDevList.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.records import NamedTuple
from hccl_tools.rules import lab_hosts
from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.registry import Finding, Input, rule
from hccl_tools.table.addresses import family, is_unset, query
from hccl_tools.table.hccl_numbers import byte_length, read_uint
from hccl_tools.table.model import Group, RankTable, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.model import Column

_AVERAGES = (1, 2, 4, 8, 16)
_LIMIT = 32
_TWO = 2
_HOST_PROCESS = (1 << 32) - 1
_LONGEST_NAME = 127


@rule("HCC115", "lab-table", "refused", source="topoinfo_ranktableStandard.cc:152-167, :364-412")
def lab_table(subject: Input) -> Iterator[Finding]:
    """A table of the old "lab" form (deploy_mode) is incomplete or contradicts itself.

    Base: lab
    Example: /para_plane_nic_location = "host"
    Instead: /para_plane_nic_location = "device"
    Hint: write "para_plane_nic_location": "device", or make a 1.0 table with `hccl-tools gen`: HCCL no longer documents this form
    """
    for path, message, remedy, first in _Lab(subject).faults():
        hint = f"{remedy or 'correct it here'}, or make a 1.0 table with `hccl-tools gen`: HCCL no longer documents this form"
        related = () if first is None else (Related(first, "first used here"),)
        yield Finding(f"lab table (deploy_mode): {message}", path, hint, related)


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


class _Fault(NamedTuple):
    """A fault of a lab table: its place, a sentence, and its remedy; "" if it follows from the sentence.

    The last one is the place of a value that is used twice, if there is one.
    """

    path: Path
    message: str
    remedy: str = ""
    first: Path | None = None


class _Lab:
    """Checks a lab table in one pass and collects the values that are compared at the end."""

    def __init__(self, subject: Input) -> None:
        self.subject = subject
        self.rank_ids: list[int] = []
        self.places: list[tuple[Path, str]] = []
        self.server_ids: list[str] = []
        self.servers = 0
        self.ips: dict[str, Path] = {}
        self.names: set[str] = set()
        self.listed: list[lab_hosts.Instance] = []
        self.lost: list[tuple[str, int]] = []
        self.copies: dict[Any, lab_hosts.Copy] | None = None

    def faults(self) -> Iterator[_Fault]:
        value = self.subject.value
        if not isinstance(value.get("status"), str):
            yield _Fault((), "status is missing or not a string", 'write "status": "completed"')
        if value.get("version", "Standard") != "Standard":
            yield _Fault(("version",), 'version is not "Standard"; a lab table needs no version')
        if value.get("para_plane_nic_location") != "device":
            yield _Fault(
                ("para_plane_nic_location",),
                'para_plane_nic_location is not "device"',
                'write "para_plane_nic_location": "device"',
            )
        groups = value.get("group_list")
        if not isinstance(groups, list) or not groups:
            yield _Fault(("group_list",), "group_list is missing, empty or not a list")
            return
        if _count(value.get("group_count")) != len(groups):
            yield _Fault(
                ("group_count",),
                f"group_count is not {len(groups)}, the number of groups",
                f'write "group_count": "{len(groups)}"',
            )
        for index, group in enumerate(groups):
            path: Path = ("group_list", index)
            if not isinstance(group, dict):
                yield _Fault(path, "a group is not an object")
                continue
            yield from self._group(group, path)
        if sorted(self.rank_ids) != list(range(len(self.rank_ids))):
            yield self._ranks()
        if (found := len(set(self.server_ids))) != self.servers:
            one = len(groups) == 1
            if one and (same := self._of_one_id()) is not None:
                yield same
                return
            yield _Fault(
                ("group_list", 0, "server_num") if one else ("group_list",),
                f"server_num is {self.servers}{'' if one else ' in all groups together'}, but the instances have {found} server_ids",
                self._how_to_count(groups[0], found) if one else "correct server_num of the groups",
            )

    def _how_to_count(self, group: Any, servers: int) -> str:
        """Return what to do about a server_num of the only group that differs from the number of server_ids."""
        devices = _count(group.get("device_num")) if isinstance(group, dict) else None
        if not self.subject.product.single_server and (devices or 0) / (servers or 1) not in _AVERAGES:
            return "correct the server_ids: instances of one host have the same one"
        return f'write "server_num": "{servers}" if all of these servers are in the job'

    def _of_one_id(self) -> _Fault | None:
        """Return the fault that several hosts have one server_id; None for others."""
        one = lab_hosts.hosts_of_one_id(self.listed) if self.listed else None
        if one is None or one.hosts != self.servers:
            return None
        last = min(one.start + one.size, len(self.listed))
        more = "" if one.hosts == _TWO else ", and so in each further block of instances"
        return _Fault(
            ("group_list", 0, "instance_list", one.start, "server_id"),
            f'server_num is {self.servers}, and all instances have server_id "{self.listed[0].server}": instances 1-{one.size} and '
            f"{one.start + 1}-{last} have the same devices with different addresses, so that they are of different hosts",
            f"write in instances {one.start + 1}-{last} the server_id of their own host{more} (`hostname -I` on it prints its addresses)",
        )

    def _ranks(self) -> _Fault:
        """Return the fault that the rank ids are not 0 to N-1, with those that are there twice or missing."""
        ranks, number = self.rank_ids, len(self.rank_ids)
        first = {rank: place for place, rank in reversed([*enumerate(ranks)])}
        again = [place for place, rank in enumerate(ranks) if first[rank] != place]
        remedy = f"number the ranks 0 to {number - 1} over all instances"
        if not again:
            lost = and_more([str(rank) for rank in range(number) if rank not in first], 8)
            if self.lost:
                absent = lab_hosts.absent_ranks(self.listed, number + len(self.lost))
                verb = "is" if len(self.lost) == 1 else "are"
                return _Fault(
                    ("group_list",),
                    f"no instance has rank {and_more([str(rank) for rank in absent], 8)}: {lab_hosts.named(self.lost)} {verb} not listed",
                    lab_hosts.how_to_add(self.lost, absent, self.ips),
                )
            return _Fault(
                ("group_list",),
                f"no instance has rank {lost}: the ranks of {number} instances are 0 to {number - 1}",
                remedy,
            )
        path, server = self.places[again[0]]
        twice = fold(ranks[place] for place in again)
        many = "s" if again[1:] else ""
        before = self.places[first[ranks[again[0]]]][1]
        message = f'rank{many} {twice} {"are" if many else "is"} used twice: by server "{before}", and from here on by "{server}"'
        if before == server:
            message = f'rank{many} {twice} of server "{server}" {"are" if many else "is"} used twice'
        absent = lab_hosts.absent_ranks(self.listed, number)
        if len(absent) == len(again) == 1:
            message += f", and no instance has rank {absent[0]}"
            right = lab_hosts.rank_by_place(self.listed, absent[0])
            remedy = f'write "rank_id": "{absent[0]}" in the right one of the two'
            if right is not None:
                path, remedy = (
                    self.places[right][0],
                    f"{remedy}: by the order of the others, in instance {right + 1}",
                )
        if ranks[again[0]] == 0 and ranks[again[0] :] == [*range(number - again[0])]:
            remedy = f"continue the rank numbers with {again[0]} here"
        return _Fault((*path, "rank_id"), message, remedy)

    def _group(self, group: dict[str, Any], path: Path) -> Iterator[_Fault]:
        yield from self._name(group, path)
        devices, servers = _count(group.get("device_num")), _count(group.get("server_num"))
        if not devices or not servers:
            yield _Fault(path, "device_num or server_num is missing or zero")
            return
        self.servers += servers
        average = devices / servers
        if not self.subject.product.single_server and average not in _AVERAGES:
            yield _Fault((*path, "device_num"), "device_num divided by server_num is not 1, 2, 4, 8 or 16")
        instances = group.get("instance_list")
        if not isinstance(instances, list) or not instances:
            yield _Fault(path, "instance_list is missing, empty or not a list")
            return
        if (turned := lab_hosts.exchanged(instances)) is not None:
            yield _Fault(
                (*path, "instance_list", turned.start, "server_id"),
                f"server_id and device_ip are exchanged in instances {turned.start + 1}-{turned.stop}: they have different "
                "server_ids, and all of them one device_ip",
                "exchange the two values in each of these instances",
            )
            instances = lab_hosts.exchanged_back(instances, turned)
        stated, listed = _count(group.get("instance_count")), len(instances)
        if len(self.subject.value["group_list"]) == 1:
            self.listed = lab_hosts.instances_of(instances)
            lost = lab_hosts.lost_devices(self.listed)
            self.lost = lost if len(lost) == devices - listed else []
        if stated != devices or listed != devices:
            yield self._counts((*path, "instance_count"), stated, (devices, servers), listed)
        for index, instance in enumerate(instances):
            yield from self._instance(instance, (*path, "instance_list", index))

    def _counts(self, path: Path, stated: int | None, said: tuple[int, int], listed: int) -> _Fault:
        """Return the fault that the counts of a group differ from its list; ``said`` are device_num and server_num."""
        devices, servers = said
        shown = "no number" if stated is None else stated
        wrong = [
            key for key, number in (("instance_count", stated), ("device_num", devices)) if number != listed
        ]
        right = " and ".join(f'"{key}": "{listed}"' for key in wrong)
        message = f"instance_count is {shown}, device_num is {devices}, and {count(listed, 'instance')} {'is' if listed == 1 else 'are'} listed"
        remedy = f"write {right} if all listed instances are in the job and none is missing"
        if self.lost:
            message += f": {lab_hosts.named(self.lost)} {'is' if len(self.lost) == 1 else 'are'} not"
            remedy = lab_hosts.how_to_add(
                self.lost, lab_hosts.absent_ranks(self.listed, devices), [one.ip for one in self.listed]
            )
        elif (
            listed < devices and listed / servers not in _AVERAGES and not self.subject.product.single_server
        ):
            remedy = f"add the instances that are missing: HCCL accepts 1, 2, 4, 8 or 16 for each of {count(servers, 'server')}"
        return _Fault(path, message, remedy)

    def _name(self, group: dict[str, Any], path: Path) -> Iterator[_Fault]:
        name = group.get("group_name")
        if not isinstance(name, str):
            yield _Fault(path, "group_name is missing or not a string")
        elif byte_length(name) > _LONGEST_NAME:
            yield _Fault((*path, "group_name"), f"group_name is longer than {_LONGEST_NAME} bytes")
        elif name in self.names:
            yield _Fault((*path, "group_name"), f'group_name "{name}" is used twice')
        else:
            self.names.add(name)

    def _instance(self, instance: Any, path: Path) -> Iterator[_Fault]:
        keys = ("server_id", "rank_id")
        if not isinstance(instance, dict) or not all(isinstance(instance.get(key), str) for key in keys):
            yield _Fault(path, "server_id or rank_id is missing or not a string")
            return
        self.server_ids.append(instance["server_id"])
        rank = read_uint(instance["rank_id"])
        if rank is None or not 1 <= byte_length(instance["server_id"]) <= 64:
            yield _Fault(path, "rank_id is not a number, or server_id is not 1 to 64 bytes long")
        else:
            self.rank_ids.append(rank)
            self.places.append((path, instance["server_id"]))
        devices = instance.get("devices")
        if not isinstance(devices, list) or len(devices) != 1 or not isinstance(devices[0], dict):
            yield _Fault(path, "an instance must have exactly one device")
            return
        yield from self._device(devices[0], (*path, "devices", 0))

    def _device(self, device: dict[str, Any], path: Path) -> Iterator[_Fault]:
        number = _count(device.get("device_id"))
        limit = self.subject.product.lab_device_limit or _LIMIT
        # With the general limit HCCL compares signed numbers, and -1 means a host process.
        signed = number is not None and limit == _LIMIT and number >= 1 << 31 and number != _HOST_PROCESS
        if number is None or (number >= limit and not signed):
            yield _Fault(path, f"device_id is missing or not below {limit}")
        ip = device.get("device_ip")
        if not isinstance(ip, str):
            yield _Fault(path, "device_ip is missing")
        elif ip:
            if family(ip) is None or is_unset(ip):
                yield _Fault((*path, "device_ip"), f'device_ip "{ip}" is not an address')
            elif ip in self.ips:
                yield self._address_again(ip, path)
            self.ips.setdefault(ip, path)

    def _address_again(self, ip: str, path: Path) -> _Fault:
        """Return the fault that two instances have one address, and that one is a copy of the other if it is."""
        first, place = (*self.ips[ip], "device_ip"), (*path, "device_ip")
        if self.copies is None:
            self.copies = lab_hosts.copies(self.listed)
        again = self.copies.get(path[3])
        if again is None:
            return _Fault(place, f'device_ip "{ip}" is used twice', first=first)
        own = f"instance {again.place + 1}"
        message = (
            f"{own} is a copy of instance {again.first + 1} with another rank: both have device_id "
            f'"{again.device}" and device_ip "{ip}"'
        )
        if again.missing is None:
            return _Fault(
                place, message, f"write the device_id and device_ip of another device in {own}", first
            )
        return _Fault(
            place,
            f'{message}, and no instance has device {again.missing} of server "{again.server}"',
            f'write "device_id": "{again.missing}" and its address in {own}: `hccn_tool -i {again.missing} {query(self.ips)}` on '
            f"{shown_host(again.server)} shows it",
            first,
        )


def _count(text: Any) -> int | None:
    return read_uint(text) if isinstance(text, str) else None
