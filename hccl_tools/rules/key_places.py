"""In which objects of a table HCCL reads which keys, shared by rules on keys. This module declares no rules."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import shared_each
from hccl_tools.table.format_names import SERVICE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.registry import Input


class Kind(NamedTuple):
    """A kind of object in a table.

    Attributes:
        name: Its name in messages.
        keys: The keys that HCCL reads in it.
        lists: The lists of objects among them, with the kinds of their entries.
        required: The keys without which the reader refuses it; those of the schema (a test compares them).
        noun: What such an object is called.
        own_id: The key that tells it from others of its list.
        count_key: The key beside its list that states the number of entries; "" if there is none.
    """

    name: str
    keys: frozenset[str]
    lists: dict[str, Kind]
    required: frozenset[str]
    noun: str
    own_id: str = ""
    count_key: str = ""


class Found(NamedTuple):
    """An object of a table that has other keys than those of its kind, with the objects around it."""

    path: Path
    kind: Kind
    value: dict[str, Any]
    around: tuple[tuple[Kind, dict[str, Any]], ...]


def _kind(name: str, noun: str, keys: str, own_id: str = "", count_key: str = "", **lists: Kind) -> Kind:
    """Return a kind of objects; the keys that the schema requires, of lists too, end with ``*``."""
    every = frozenset([*keys.replace("*", "").split(), *lists])
    required = frozenset(key[:-1] for key in keys.split() if key.endswith("*"))
    return Kind(name, every, lists, required, noun, own_id, count_key)


_DEVICE = _kind(
    "an entry of device",
    "device",
    "device_id* device_ip rank_id* device_port host_port net_position net_protocol super_device_id backup_device_ip "
    "backup_device_port device_vnic_port",
    "device_id",
)
_SERVER = _kind(
    "an entry of server_list",
    "server",
    "server_id* host_ip device*",
    "server_id",
    "server_count",
    device=_DEVICE,
)
_MEMBER = _kind("a server of a super pod", "server of a super pod", "server_id*", "server_id")
_POD = _kind(
    "an entry of super_pod_list",
    "super pod",
    "super_pod_id* server_list*",
    "super_pod_id",
    server_list=_MEMBER,
)
_LIST = _kind(
    "the table itself, beside server_list", "table", "version status server_count cluster_list",
    server_list=_SERVER, super_pod_list=_POD,
)  # fmt: skip
_ADDRESS = _kind(
    "an entry of rank_addr_list", "address", "addr* addr_type* ports* plane_id backup_addr", "addr"
)
_LEVEL = _kind(
    "an entry of level_list", "layer", "net_layer* net_instance_id* net_type net_attr rank_addr_list*", "net_layer",
    rank_addr_list=_ADDRESS,
)  # fmt: skip
_RANK = _kind(
    "an entry of rank_list", "rank",
    "rank_id* local_id* device_id* level_list* device_port host_port control_plane replaced_local_id", "rank_id", "rank_count",
    level_list=_LEVEL,
)  # fmt: skip
_GROUP_DEVICE = _kind("an entry of devices", "device", "device_id* device_ip", "device_id")
_INSTANCE = _kind(
    "an entry of instance_list", "instance", "pod_name* server_id* devices*", "pod_name", "instance_count",
    devices=_GROUP_DEVICE,
)  # fmt: skip
_GROUP = _kind(
    "an entry of group_list", "group", "group_name* device_count* instance_count* instance_list*", "group_name", "group_count",
    instance_list=_INSTANCE,
)  # fmt: skip
_TABLES = {
    "1.0": _LIST,
    "1.2": _LIST,
    "2.0": _kind(
        "the table itself, beside rank_list", "table", "version status rank_count detour", rank_list=_RANK
    ),
    "group_list": _kind(
        "the table itself, beside group_list", "table", "version status group_count", group_list=_GROUP
    ),
}
_SERVICE_SERVER = _kind(
    "an entry of server_list", "server",
    "server_id server_ip* predict_port mgmt_port metric_port inter_comm_port", "server_id", "server_count",
    device=_kind(
        "an entry of device", "device", "device_id* device_ip* rank_id* device_logical_id super_device_id", "device_id"
    ),
)  # fmt: skip
_SERVICE_TABLE = _kind(
    "the table itself, beside server_group_list", "table", "version status",
    server_group_list=_kind(
        "an entry of server_group_list", "group", "group_id* server_count deploy_server server_list*", "group_id",
        server_list=_SERVICE_SERVER, super_pod_list=_POD,
    ),
)  # fmt: skip


def kind_of_table(table_format: str) -> Kind | None:
    """Return the kind of a table itself, of a service table too; None for other files."""
    return _SERVICE_TABLE if table_format == SERVICE else _TABLES.get(table_format)


def with_other_keys(subject: Input, table_format: str, concerns: Callable[[str], bool]) -> Iterator[Found]:
    """Yield the objects of a table that have other keys than those of their kind.

    Args:
        subject: The table.
        table_format: Its format.
        concerns: Whether a key matters where HCCL does not read it. Without such a key nothing is yielded: most
            tables have only keys that do not matter, such as host_nic_ip, in each of thousands of entries.
    """
    if not isinstance(subject.value, dict) or table_format not in _TABLES:
        return
    others = _other_keys(subject, table_format)
    if others is None or any(map(concerns, others)):
        yield from _below(subject.value, _TABLES[table_format], (), ())


@shared_each
def _other_keys(subject: Input, table_format: str) -> frozenset[str] | None:
    """Return the keys that are not among those of their kind; ``None`` if there are other types than expected."""
    found: set[str] = set()
    levels: list[tuple[Kind, list[Any]]] = [(_TABLES[table_format], [subject.value])]
    try:
        for level, entries in levels:
            found.update(set().union(*entries) - level.keys)
            levels += [
                (inner, [*chain.from_iterable([entry.get(key, ()) for entry in entries])])
                for key, inner in level.lists.items()
            ]
    except (TypeError, AttributeError):
        return None
    return frozenset(found)


def _below(
    value: dict[str, Any], kind: Kind, path: Path, around: tuple[tuple[Kind, dict[str, Any]], ...]
) -> Iterator[Found]:
    if not value.keys() <= kind.keys:
        yield Found(path, kind, value, around)
    for key, inner in kind.lists.items():
        entries = value.get(key)
        if type(entries) is not list:
            continue
        outer = (*around, (kind, value))
        for index, entry in enumerate(entries):
            if type(entry) is dict and (inner.lists or not entry.keys() <= inner.keys):
                yield from _below(entry, inner, (*path, key, index), outer)


@cache
def kinds_with(key: str, table_format: str) -> list[Kind]:
    """Return the kinds of objects in which HCCL reads a key, the outermost first."""
    found, kinds = list[Kind](), [_TABLES[table_format]]
    while kinds:
        kind = kinds.pop(0)
        found += [kind] if key in kind.keys else []
        kinds += kind.lists.values()
    return found


@cache
def keys_read(table_format: str) -> frozenset[str]:
    """Return the keys that HCCL reads in any object of a table."""
    found, kinds = set[str](), [_TABLES[table_format]]
    for kind in kinds:
        found |= kind.keys
        kinds += kind.lists.values()
    return frozenset(found)
