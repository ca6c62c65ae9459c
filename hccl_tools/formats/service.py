"""Read service tables (``server_group_list``), which MindIE-Motor, clusterd and omni-infer share.

``read`` accepts any document of this kind; ``is_well_formed`` says whether it obeys the JSON Schema, which
is used only to find the violations.

Source: MindIE-Motor 5dfb024e, RankTableLoader.cpp; omni-infer c8bc2bbb, rank_table.py and
pd_ranktable_tools.py.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.hccl_numbers import read_int
from hccl_tools.table.service_table import ServiceGroup, ServiceServer, ServiceTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.table.service_table import Object, Reader, Role

#: Controllers and coordinators have no devices, so a device in these groups means omni-infer.
_WITHOUT_DEVICES = frozenset({0, 1})
_FIRST_INSTANCE = 2
#: The keys of a server, and of a device, that must be strings where they occur.
_SERVER_TEXTS = ("server_ip", "server_id", "predict_port", "mgmt_port", "metric_port", "inter_comm_port")
_DEVICE_TEXTS = ("device_id", "device_ip", "rank_id", "device_logical_id", "super_device_id")
#: RankTableLoader.cpp:548: the greatest number of devices of a server.
MOST_DEVICES = 128


def read(value: dict[str, Any]) -> ServiceTable:
    """Return the service table in a document; see ``ServiceTable`` for damaged entries."""
    entries = _objects(_list(value.get(SERVICE)))
    found: list[tuple[int | None, range, Object]] = []
    servers: list[ServiceServer] = []
    devices: list[Any] = []
    for index, entry in enumerate(entries):
        first = len(servers)
        for place, server in enumerate(_list(entry.get("server_list"))):
            start, known = len(devices), _object(server)
            devices += _list(known.get("device"))
            servers.append(ServiceServer(index, place, range(start, len(devices)), known))
        name = entry.get("group_id")
        number = read_int(name) if isinstance(name, str) else None
        found.append((number, range(first, len(servers)), entry))
    low = {
        number: own for number, own, _ in reversed(found) if number in _WITHOUT_DEVICES
    }.values()  # The first of each.
    reader: Reader = "omni-infer" if any(servers[one].rows for own in low for one in own) else "MindIE-Motor"
    groups = [
        ServiceGroup(number, own, _role(number, servers[own.start : own.stop], reader), entry)
        for number, own, entry in found
    ]
    return ServiceTable(reader, groups, servers, _objects(devices), _rest(value))


def _list(entries: Any) -> list[Any]:
    return entries if type(entries) is list else []


def _objects(entries: list[Any]) -> list[Object]:
    return entries if set(map(type, entries)) <= {dict} else [_object(entry) for entry in entries]


def _object(entry: Any) -> Object:
    return entry if type(entry) is dict else {}


def _rest(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != SERVICE}


def _role(number: int | None, servers: Sequence[ServiceServer], reader: Reader) -> Role:
    if reader == "omni-infer":
        return "instance" if any(server.rows for server in servers) or number != 0 else "scheduler"
    if number is None or number >= _FIRST_INSTANCE:
        return "instance"
    return "controller" if number == 1 else "coordinator"


def is_well_formed(value: dict[str, Any], table: ServiceTable) -> bool:
    """Return whether a document has the structure of its JSON Schema."""
    groups = value.get(SERVICE)
    if not _is_list_of_objects(groups) or not groups or not _texts([value], ("status", "version"), 1):
        return False
    if not _texts(groups, ("group_id", "deploy_server"), 1):
        return False
    lists = [group.get("server_list") for group in groups]
    pods = [group["super_pod_list"] for group in groups if "super_pod_list" in group]
    counts = {type(group["server_count"]) for group in groups if "server_count" in group}
    if not all(map(_is_list_of_objects, lists)) or counts - {str, int, float}:
        return False
    servers = [server.entry for server in table.servers]
    with_devices = [server["device"] for server in servers if "device" in server]
    return (
        _are_texts(table.server_column, servers, _SERVER_TEXTS, 1)
        and set(map(type, with_devices)) <= {list}
        and set(map(type, chain.from_iterable(with_devices))) <= {dict}
        and all(0 < len(devices) <= MOST_DEVICES for devices in with_devices)
        and _are_texts(table.column, table.devices, _DEVICE_TEXTS, 3)
        and all(map(_are_super_pods, pods))
    )


def _is_list_of_objects(entries: Any) -> bool:
    return type(entries) is list and set(map(type, entries)) <= {dict}


def _texts(holders: list[Object], keys: Iterable[str], required: int) -> bool:
    """Whether values under keys are strings in all objects; the first ``required`` keys must be there."""
    for number, key in enumerate(keys):
        if number < required:
            types = {type(holder.get(key)) for holder in holders}
        else:
            types = {type(holder[key]) for holder in holders if key in holder}
        if types - {str}:
            return False
    return True


def _are_texts(
    column: Callable[[str], list[str | None]], holders: list[Object], keys: tuple[str, ...], required: int
) -> bool:
    """Check the strings of servers or devices by their columns, which the rules need too; see ``_texts``."""
    incomplete = [key for key in keys if None in column(key)]
    return not set(incomplete) & set(keys[:required]) and _texts(holders, incomplete, 0)


def _are_super_pods(pods: Any) -> bool:
    if not _is_list_of_objects(pods) or not _texts(pods, ("super_pod_id",), 1):
        return False
    lists = [pod.get("server_list") for pod in pods]
    return all(map(_is_list_of_objects, lists)) and _texts(
        list(chain.from_iterable(lists)), ("server_id",), 1
    )
