"""Entries of devices that stand elsewhere than in the list of a server. This module declares no rules.

An entry under a misspelt key, in another object or in server_list is lost for HCCL, and the findings on the gap that it
leaves would say to write it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import SERVER_LIST, shared
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.registry import Subject

#: The levels of a table that are searched: a device in a device of a server, with a level around each.
_DEEPEST, _DEVICE_PATH = 10, 4


class Stray(NamedTuple):
    """An entry of a device that HCCL does not read.

    Attributes:
        path: Its place.
        device: Its device_id.
        rank: Its rank_id; None if it has none.
        where: The list or object that it is in, as a phrase.
        server: The index of the entry of server_list that it is in; None if it is in none.
    """

    path: Path
    device: int
    rank: int | None
    where: str
    server: int | None


@shared
def stray_devices(subject: Subject) -> list[Stray]:
    """Return the objects of a table with server_list that have a device_id and are not in the devices of a server."""
    value = subject.value
    if not isinstance(value, dict) or not isinstance(value.get("server_list"), list):
        return []
    found: list[Stray] = []
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, one = waiting.pop()
        if type(one) is dict:
            number = read_uint(one["device_id"]) if isinstance(one.get("device_id"), str) else None
            if number is not None and "device" not in one and not _is_listed(path):
                found.append(Stray(path, number, _rank(one), _where(path), _server(path)))
            below: list[tuple[Path, Any]] = [((*path, key), inner) for key, inner in one.items()]
        else:
            below = [((*path, index), inner) for index, inner in enumerate(one)]
        if len(path) < _DEEPEST:
            waiting += reversed([(place, inner) for place, inner in below if type(inner) in (dict, list)])
    return found


def _rank(entry: dict[str, Any]) -> int | None:
    rank = entry.get("rank_id")
    return read_uint(rank) if isinstance(rank, str) else None


def _is_listed(path: Path) -> bool:
    """Return whether a path is that of an entry in the device list of a server, or of another list that HCCL reads."""
    if path[:1] == ("super_pod_list",) or path[:1] == ("cluster_list",):
        return True
    return len(path) == _DEVICE_PATH and path[0] == "server_list" and path[2] == "device"


def _server(path: Path) -> int | None:
    is_inside = len(path) > 2 and path[0] == "server_list"
    return path[1] if is_inside and type(path[1]) is int else None


def _where(path: Path) -> str:
    key = next((part for part in reversed(path) if type(part) is str), "")
    if path[:1] != ("server_list",):
        return f'under the key "{key}", beside server_list'
    if len(path) == 2:
        return "an entry of server_list itself"
    if len(path) > _DEVICE_PATH and path[2] == "device":
        return f'inside the entry of another device, under "{key}"'
    return f'under the key "{key}" of server {int(path[1]) + 1}'


def move_hint(subject: Subject, lost: Sequence[tuple[int, int]]) -> str | None:
    """Return the hint to move entries that servers lack to their places; None unless all are elsewhere in the file.

    Args:
        lost: The index of the server and the device_id of each.
    """
    if subject.table.format not in SERVER_LIST or not lost:
        return None
    strays = stray_devices(subject)
    places = list[Stray]()
    for index, device in lost:
        own = [one for one in strays if one.device == device and one.server == index]
        others = [one for one in strays if one.device == device and one.server != index]
        if not own and len(others) != 1:
            return None
        places.append((own or others)[0])
    if len({(one.where, index) for one, (index, _) in zip(places, lost, strict=True)}) != 1:
        return None
    index, name = lost[0][0], subject.table.servers[lost[0][0]].server_id
    numbers = fold(sorted(one.device for one in places))
    what, are, them = ("entry", "is", "it") if len(places) == 1 else ("entries", "are", "them")
    noun = "device" if len(places) == 1 else "devices"
    return (
        f"the {what} of {noun} {numbers} {are} {places[0].where}, where HCCL does not read {them}: move {them} into the "
        f'"device" list of server {index + 1} ({quoted(name)}){_ranks_after(subject, places)}'
    )


def _ranks_after(subject: Subject, places: Sequence[Stray]) -> str:
    """Return what is to be done with the ranks when entries are in their places, as the end of a hint."""
    ranks = [number for number in subject.table.rank_numbers if number is not None]
    ranks += [one.rank for one in places if one.rank is not None]
    size = len(subject.table) + len(places)
    return "" if {*ranks} == {*range(size)} else f", and number the ranks 0 to {size - 1} without a gap"
