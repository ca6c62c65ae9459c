"""Repair a damaged table, so that one fault does not hide others.

A number that should be a string, or the reverse, is converted. Other values that the schema refuses are
replaced by valid values, and rules that need their keys do not run. If the damage is not in single values,
the table is not repaired, and only its structure is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.formats.schema import compiled, walk
from hccl_tools.records import NamedTuple
from hccl_tools.rules.structure import right_number

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.schema import Node, Violations
    from hccl_tools.table.format_names import Format

#: Valid values of required keys, by their type in the format.
_TEXTS = {
    "status": "completed", "rank_id": "0", "device_id": "0", "server_id": "damaged", "group_name": "",
    "pod_name": "damaged",
}  # fmt: skip
_NUMBERS: dict[str, Any] = {"rank_id": 0, "local_id": 0, "device_id": 0}
#: Keys that may be absent.
_OPTIONAL = frozenset(
    {
        "server_count", "host_ip", "host_port", "device_port", "net_position", "net_protocol",
        "super_device_id", "net_attr", "net_type", "plane_id", "detour",
    }
)  # fmt: skip


class Repaired(NamedTuple):
    """A repaired copy of a document, and the keys whose values were replaced or removed."""

    value: Any
    damaged: frozenset[str]


def without_damage(value: dict[str, Any], violations: Violations, table_format: Format) -> Repaired | None:
    """Return a document with its invalid values replaced or removed; None if that is impossible."""
    harmless = _NUMBERS if table_format == "2.0" else _TEXTS
    if not violations.keys <= {"version", *harmless, *_OPTIONAL}:
        return None
    if table_format != "group_list":
        harmless = {**harmless, "version": table_format}

    damaged = set()

    def repair(holder: Any, path: Path, _keyword: str, missing: str | None, _node: Node) -> None:
        key = missing
        if key is None:
            key = str(path[-1])
            converted = right_number(key, holder.get(key), table_format)
            if converted is not None:
                holder[key] = converted
                return
        damaged.add(key)
        if key in harmless:
            holder[key] = harmless[key]
        else:
            holder.pop(key, None)

    node = compiled(table_format)
    copy = _copied(value, node)
    walk(copy, node, (), None, repair)
    return Repaired(copy, frozenset(damaged))


def _copied(value: Any, node: Node) -> Any:
    """Copy the objects and lists of a document that a schema describes; share all other values."""
    if type(value) is dict:
        copy = value.copy()
        for key, below in _deep(node):
            if key in value:
                copy[key] = _copied(value[key], below)
        return copy
    if type(value) is list and (items := node.items) is not None and not items.is_leaf:
        if items.items is None and not _deep(items):  # The devices: most of a table.
            return [item.copy() if type(item) is dict else item for item in value]
        return [_copied(item, items) for item in value]
    return value


def _deep(node: Node) -> list[tuple[str, Node]]:
    """Return the keys with objects and lists of their own."""
    return [(key, below) for key, below in node.properties.items() if not below.is_leaf]
