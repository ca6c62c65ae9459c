"""The hosts of a lab table, by its instances: devices that are missing, and hosts with one server_id. No rules are declared here."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hccl_tools.notation.phrases import and_more, devices
from hccl_tools.records import NamedTuple
from hccl_tools.rules.commands import shown_host
from hccl_tools.table.addresses import packed, query
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The most devices of a host that are examined, and those that a sentence names.
_MOST_DEVICES, _MOST_NAMED = 32, 8


class Instance(NamedTuple):
    """A well-formed instance: its place in instance_list, and its values."""

    place: int
    server: str
    device: int
    ip: str
    rank: int


def exchanged(instances: list[Any]) -> range | None:
    """Return the instances in a row whose server_id and device_ip are exchanged; None if there are none.

    The instances of a host have one server_id and different device_ips; these have it the other way round.
    """
    listed = instances_of(instances)
    ips = [one.ip for one in listed]
    turned, number = Counter(ips).most_common(1)[0] if ips else ("", 0)
    if not turned or number == 1:
        return None
    places = [place for place, ip in enumerate(ips) if ip == turned]
    found = range(places[0], places[-1] + 1)
    servers = [listed[place].server for place in places]
    is_one_block = len(places) == len(found) and len({*servers}) == len(servers) > 1
    others = {one.server for place, one in enumerate(listed) if place not in found}
    are_addresses = all(packed(server) is not None for server in servers)
    return found if is_one_block and are_addresses and others.isdisjoint(servers) else None


def exchanged_back(instances: list[Any], places: range) -> list[Any]:
    """Return instances with server_id and device_ip exchanged at some places."""
    return [_turned(one) if place in places else one for place, one in enumerate(instances)]


def _turned(instance: dict[str, Any]) -> dict[str, Any]:
    device = instance["devices"][0]
    turned = {**device, "device_ip": instance["server_id"]}
    return {**instance, "server_id": device["device_ip"], "devices": [turned]}


def instances_of(listed: list[Any]) -> list[Instance]:
    """Return the instances of a group; empty if one of them is not well-formed."""
    found = list[Instance]()
    for place, one in enumerate(listed):
        own = one.get("devices") if isinstance(one, dict) else None
        device = own[0] if isinstance(own, list) and len(own) == 1 and isinstance(own[0], dict) else {}
        server, ip = (
            (holder.get(key) for holder, key in ((one, "server_id"), (device, "device_ip")))
            if own
            else ("", "")
        )
        numbers = [
            read_uint(text) if isinstance(text, str) else None
            for text in (device.get("device_id"), one.get("rank_id") if own else None)
        ]
        if not isinstance(server, str) or not isinstance(ip, str) or None in numbers:
            return []
        found.append(Instance(place, server, numbers[0] or 0, ip, numbers[1] or 0))
    return found


def lost_devices(listed: list[Instance]) -> list[tuple[str, int]]:
    """Return the devices that a host does not list and another one does, with its server_id; empty if it is not clear."""
    sets: dict[str, set[int]] = {}
    for one in listed:
        sets.setdefault(one.server, set()).add(one.device)
    if sum(map(len, sets.values())) < len(listed) or not sets:
        return []
    usual = max(sets.values(), key=len)
    if len(sets) == 1 and max(usual) < _MOST_DEVICES:
        usual = set(range(max(usual) + 1))
    number = sum(len(usual) - len(own) for own in sets.values())
    if number > max(len(listed), _MOST_DEVICES) or not all(own <= usual for own in sets.values()):
        return []  # One host with very many devices would make a list of hosts x devices.
    return [(server, device) for server, own in sets.items() for device in sorted(usual - own)]


class Copy(NamedTuple):
    """An instance with the device and the address of an earlier one, and another rank.

    Attributes:
        place: Its place in instance_list.
        first: That of the earlier one.
        server: The server_id of both.
        device: The device_id of both.
        missing: The device that no instance of the server has in its place; None if the others do not show it.
    """

    place: int
    first: int
    server: str
    device: int
    missing: int | None


def copies(listed: list[Instance]) -> dict[Any, Copy]:
    """Return the instances that are copies of others of their server, by their place."""
    first, again = dict[tuple[str, int, str], int](), dict[int, int]()
    of_server: dict[str, list[int]] = {}
    for one in listed:
        seen = first.setdefault((one.server, one.device, one.ip), one.place)
        if seen != one.place:
            again[one.place] = seen
        of_server.setdefault(one.server, []).append(one.device)
    found = dict[Any, Copy]()
    missing: dict[str, list[int]] = {}
    for server in {listed[place].server for place in again}:
        own = of_server[server]
        others = [{*ids} for name, ids in of_server.items() if name != server and len({*ids}) == len(own)]
        usual = others[0] if others else {*range(len(own))}
        missing[server] = sorted(usual.difference(own)) if usual.issuperset(own) else []
    for place, seen in again.items():
        server, rest = listed[place].server, missing[listed[place].server]
        of_this = [one for one in again if listed[one].server == server] if len(again) <= _MOST_NAMED else []
        lacks = rest[of_this.index(place)] if of_this and len(rest) == len(of_this) else None
        found[place] = Copy(place, seen, server, listed[place].device, lacks)
    return found


def absent_ranks(listed: list[Instance], number: int) -> list[int]:
    """Return the ranks below a number that no instance has."""
    known = {one.rank for one in listed}
    return [rank for rank in range(number) if rank not in known] if number <= 2 * len(listed) else []


def named(lost: list[tuple[str, int]]) -> str:
    """Return devices with their hosts, as a phrase."""
    of_server: dict[str, list[int]] = {}
    for server, device in lost:
        of_server.setdefault(server, []).append(device)
    return and_more(
        [f'{devices(ids)} of server "{server}"' for server, ids in of_server.items()], _MOST_NAMED
    )


def how_to_add(lost: list[tuple[str, int]], ranks: list[int], ips: Iterable[str]) -> str:
    """Return the hint that adds devices that are missing, with their ranks if these are as many."""
    server, device = lost[0]
    with_ranks = ""
    if len(ranks) == len(lost):
        with_ranks = (
            f" with rank{'s' if ranks[1:] else ''} {and_more([str(rank) for rank in ranks], _MOST_NAMED)}"
        )
    what = f"the instance of {named(lost)}" if len(lost) == 1 else f"the instances of {named(lost)}"
    return f"add {what}{with_ranks}: `hccn_tool -i {device} {query(ips)}` on {shown_host(server)} shows the address of device {device}"


class OneId(NamedTuple):
    """Hosts with one server_id: the instance at which the second begins, the number of its devices, and the hosts."""

    start: int
    size: int
    hosts: int


def hosts_of_one_id(listed: list[Instance]) -> OneId | None:
    """Return the instances of one server_id that are blocks with the same devices and other addresses; None for others."""
    own = [one for one in listed if one.server == listed[0].server]
    if len(own) < len(listed) or len({one.ip for one in own}) < len(own):
        return None
    ids = [one.device for one in own]
    size = next((place for place, one in enumerate(ids) if place and one == ids[0]), 0)
    if not size or len(ids) % size or ids != ids[:size] * (len(ids) // size):
        return None
    return OneId(own[size].place, size, len(ids) // size)


def rank_by_place(listed: list[Instance], absent: int) -> int | None:
    """Return the place of the instance that has the absent rank by the order of all others; None if they have no order."""
    wrong = [one for one in listed if one.rank != one.place]
    return wrong[0].place if len(wrong) == 1 and wrong[0].place == absent else None
