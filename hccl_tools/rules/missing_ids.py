"""Which id a device must have whose own is missing or damaged, from the ids of the others.

An example value in a hint is the id of another device as a rule, and writing it makes the next error.
"""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from operator import getitem
from typing import TYPE_CHECKING, Any

from hccl_tools.document.omissions import WRITE_THEM, marks
from hccl_tools.formats import MODULES
from hccl_tools.notation.number_list import fold, rank_list
from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import shared, shared_each
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.shapes import Violation
    from hccl_tools.rules.registry import Input

#: Keys of a device, and keys of other entries that are moved into a list of devices by mistake.
_OF_DEVICES = frozenset({"device_id", "device_ip", "rank_id", "super_device_id"})
_OF_SERVERS = frozenset({"server_id", "pod_name", "devices", "device", "server_list"})
_NO_DEVICE = "remove the entry, or move it to its own list: it names a server, and has no key of a device"
_SERVER = "give the server an id of its own, usually the address of its host"


def hint_on(subject: Input, violation: Violation, table_format: str) -> str | None:
    """Return the hint on a missing or damaged id; None for other keys."""
    key = violation.key or (violation.path[-1] if violation.path else None)
    holder = violation.path if violation.key else violation.path[:-1]
    if table_format == SERVICE:
        return _in_service(subject, holder, key)
    if table_format not in MODULES:
        return None
    if violation.key and _is_mark(subject, holder):
        return WRITE_THEM
    if key == "pod_name":
        return "give the instance a name of its own, usually that of its pod"
    if key == "server_id":
        return _SERVER
    if (
        key not in ("device_id", "rank_id", "local_id", "net_layer")
        or not holder
        or not isinstance(holder[-1], int)
    ):
        return None
    if key == "net_layer" and not violation.key:
        return None
    if table_format != "2.0" and _is_no_device(subject, holder):
        return _NO_DEVICE
    if key == "net_layer":
        among, absent = "no other level of the rank has", _absent(subject, (holder[:-1], key)).first()
    elif key != "rank_id" and table_format == "2.0":
        among, absent = "no other rank of the node has", _absent_in_node(subject, holder, key)
    elif key == "device_id":
        among, absent = "no other device of the server has", _absent(subject, (holder[:-1], key))
    else:
        among, absent = "no other device has", _absent(subject, (holder[:1], key))
    if not absent.numbers:
        return None
    if key == "device_id" and absent.numbers[0] >= subject.product.device_limit:
        return "remove the entry: the other entries of the server are all devices that the product has"
    if len(absent.numbers) > 1:
        place = place_of(subject, holder, key, table_format)
        if place is not None:
            return f'write "{key}": {_shown(place, table_format)}, its number in the order of the file'
        return f'write "{key}" with one of the numbers that {among}: {absent.text}'
    return f'write "{key}": {_shown(absent.numbers[0], table_format)}, the number that {among}'


#: The length of the path of an entry of a service table, by its id, and what such entries are called.
_IN_SERVICE = {
    "group_id": (2, "group"), "device_id": (6, "device of the server"),
    "device_logical_id": (6, "device of the server"), "rank_id": (6, "device of the server"),
}  # fmt: skip


def _in_service(subject: Input, holder: Path, key: str | int | None) -> str | None:
    """Return the hint on a missing or damaged id in a service table: a number that is free; None for other keys."""
    depth, noun = _IN_SERVICE.get(str(key), (0, ""))
    if not holder or len(holder) != depth:
        return None
    path: Path = holder[:-1]
    if key == "rank_id" and not _are_instances(subject, holder[:3]):
        path, noun = holder[:3], "device of the group"  # They are numbered over all its servers.
    among = f"that no other {noun} has"
    used, absent = _ids_in_service(subject, (path, str(key)))
    place = holder[-1]
    is_free = place in absent.numbers if key == "device_id" else place not in used
    if key != "rank_id" and is_free:
        return f'write "{key}": "{place}", a number {among}'
    if key == "group_id":
        return f'write "{key}": "{max(one or 0 for one in used) + 1}", a number {among}'
    if len(absent.numbers) > 1:
        return f'write "{key}" with one of the numbers {among}: {absent.text}'
    return f'write "{key}": "{absent.numbers[0]}", the number {among}' if absent.numbers else None


@shared_each
def _are_instances(subject: Input, path: Path) -> bool:
    """Return whether several servers of a group have a rank 0 of their own: each is an instance."""
    servers = reduce(getitem, path, subject.value)
    own = [_listed(one) for one in servers if isinstance(one, dict)]
    return sum(any(isinstance(one, dict) and one.get("rank_id") == "0" for one in each) for each in own) > 1


@shared_each
def _ids_in_service(subject: Input, place: tuple[Path, str]) -> tuple[frozenset[int | None], _Absent]:
    """Return the ids in a list of a service table, and the numbers that are free; computed once for each list."""
    path, key = place
    entries = reduce(getitem, path, subject.value)
    if path[-1] == "server_list":
        entries = [one for server in entries if isinstance(server, dict) for one in _listed(server)]
    ids = [one.get(key) if isinstance(one, dict) else None for one in entries]
    return frozenset(_number(one) for one in ids if one is not None), _without(ids)


def _is_mark(subject: Input, path: Path) -> bool:
    """Return whether an entry of a list stands for others: its keys are dots, or say that they were left out."""
    entry = reduce(getitem, path, subject.value) if path and isinstance(path[-1], int) else None
    return isinstance(entry, dict) and bool(entry) and all(marks(key) for key in entry)


def _is_no_device(subject: Input, path: Path) -> bool:
    """Return whether an entry of a list of devices has no key of a device, but one of a server."""
    entry = reduce(getitem, path, subject.value)
    return isinstance(entry, dict) and not _OF_DEVICES & entry.keys() and bool(_OF_SERVERS & entry.keys())


def _shown(number: int, table_format: str) -> str:
    return str(number) if table_format == "2.0" else f'"{number}"'


def hint_on_all(subject: Input, violation: Violation, table_format: str) -> str | None:
    """Return the hint on several entries without an id, or with null, if each id follows from the place of its entry."""
    key, holder = violation.key, violation.path
    if key is None and holder and reduce(getitem, holder, subject.value) is None:
        key, holder = str(holder[-1]), holder[:-1]
    if table_format not in MODULES or not holder or not isinstance(holder[-1], int):
        return None
    if key == "server_id":
        return _SERVER.replace("the server", "each server", 1)
    if (
        key not in ("device_id", "rank_id", "local_id")
        or place_of(subject, holder, key, table_format) is None
    ):
        return None
    if key == "rank_id":
        number = _ranks_before(subject)[-1] if table_format != "2.0" else len(subject.value["rank_list"])
        where = f"over all servers in the order of the file: 0 to {number - 1}"
    else:
        where = "on each server in the order of the file, from 0 on"
    text = "" if table_format == "2.0" else ", as strings"
    return f"number the entries {where}{text}"


def place_of(subject: Input, holder: Path, key: str, table_format: str) -> int | None:
    """Return the id of an entry by its place in the file; None unless all ids that are there follow their places."""
    if not _is_in_order(subject, (key, table_format)):
        return None
    if table_format == "2.0":
        return int(holder[1]) if key == "rank_id" else None
    if key == "device_id":
        return int(holder[-1])
    return _ranks_before(subject)[int(holder[1])] + int(holder[3])


@shared
def _ranks_before(subject: Input) -> list[int]:
    """Return the number of devices before each server of server_list, and at last that of all devices."""
    sizes = [len(_listed(one)) if isinstance(one, dict) else 0 for one in subject.value["server_list"]]
    return [*accumulate(sizes, initial=0)]


@shared_each
def _is_in_order(subject: Input, key_of_format: tuple[str, str]) -> bool:
    """Return whether each id that is there is the number of its entry in the file, and at least one is missing."""
    key, table_format = key_of_format
    value = subject.value
    if table_format == "2.0":
        entries = value["rank_list"] if key == "rank_id" else []
        return bool(entries) and _follow([entries], key)
    if "server_list" not in value:
        return False
    lists = [_listed(one) if isinstance(one, dict) else [] for one in value["server_list"]]
    return _follow(lists if key == "device_id" else [[one for own in lists for one in own]], key)


def _follow(lists: list[list[Any]], key: str) -> bool:
    return all(
        isinstance(one, dict) and (one.get(key) is None or _number(one[key]) == place)
        for entries in lists
        for place, one in enumerate(entries)
    )


class _Absent(NamedTuple):
    """The first two numbers that no entry has, and the text of all: as many entries as there are may ask for it."""

    numbers: tuple[int, ...]
    text: str

    def first(self) -> _Absent:
        return _Absent(self.numbers[:1], "")


def _without(values: Sequence[Any]) -> _Absent:
    """Return the numbers from 0 on, as many as there are values, that no value is.

    A pod may have the devices 4 to 7 of its host: where the gaps between the values are as many as the values that are
    missing, they are these.
    """
    own = {number for value in values if value is not None and (number := _number(value)) is not None}
    numbers = [number for number in range(len(values)) if number not in own]
    if own and max(own) - min(own) < len(values) < len(own) + len(numbers):
        gaps = [number for number in range(min(own), max(own)) if number not in own]
        numbers = gaps if len(gaps) == len(values) - len(own) else numbers
    return _Absent(tuple(numbers[:2]), fold(numbers) if len(numbers) > 1 else "")


@shared_each
def _absent(subject: Input, place: tuple[Path, str]) -> _Absent:
    """Return the numbers from 0 on that no entry of a list has under a key; computed once for each list."""
    path, key = place
    entries = reduce(getitem, path, subject.value)
    if path == ("server_list",):
        entries = [one for server in entries if isinstance(server, dict) for one in _listed(server)]
    return _without([one.get(key) if isinstance(one, dict) else None for one in entries])


def _absent_in_node(subject: Input, holder: Path, key: str) -> _Absent:
    """Return the numbers from 0 on that no rank of the node of a rank has."""
    return _absent_in_nodes(subject, key)[_node(subject.value["rank_list"][holder[1]])]


@shared_each
def _absent_in_nodes(subject: Input, key: str) -> dict[str, _Absent]:
    """Return the numbers from 0 on that no rank of each node has."""
    ranks: dict[str, list[Any]] = {}
    for rank in subject.value["rank_list"]:
        ranks.setdefault(_node(rank), []).append(rank.get(key) if isinstance(rank, dict) else None)
    return {node: _without(ids) for node, ids in ranks.items()}


def _node(rank: Any) -> str:
    """Return the network instance on the first level of a rank; "" if it is damaged."""
    levels = rank.get("level_list") if isinstance(rank, dict) else None
    first = levels[0] if isinstance(levels, list) and levels else None
    name = first.get("net_instance_id") if isinstance(first, dict) else None
    return name if isinstance(name, str) else ""


def _listed(server: dict[str, Any]) -> list[Any]:
    devices = server.get("device")
    return devices if isinstance(devices, list) else []


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 9:
        return int(value)
    return value if type(value) is int else None


@shared
def lacking_ranks(subject: Input) -> str:
    """Return the ranks that entries without a rank_id lack: those that the others leave, where these show them."""
    servers = subject.value.get("server_list")
    entries = [
        device
        for server in (servers if isinstance(servers, list) else ()) if isinstance(server, dict)
        for listed in server.values() if isinstance(listed, list)
        for device in listed if isinstance(device, dict)
    ]  # fmt: skip
    known = {read_uint(rank) for one in entries if isinstance(rank := one.get("rank_id"), str)}
    lacking = [rank for rank in range(len(entries)) if rank not in known]
    if not known or len(known) + len(lacking) != len(entries):
        return "0, 1, 2 and so on, over all servers,"
    return rank_list(lacking)
