"""Repair a damaged table, so that one fault does not hide others.

A number that should be a string, or the reverse, is converted. Other values that the schema refuses are
replaced by valid values, and rules that need their keys do not run. If the damage is not in single values,
the table is not repaired, and only its structure is reported.
"""

from __future__ import annotations

from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

from hccl_tools.formats.schema import Violations, compiled
from hccl_tools.records import NamedTuple
from hccl_tools.rules.other_shapes import other_shapes
from hccl_tools.rules.violations import right_number

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.shapes import Part, Refused
    from hccl_tools.rules.registry import DamagedInput
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

#: Keys that are repaired only if their value is a number in the other form.
_CONVERTED = frozenset({"rank_count", "net_layer", "group_count", "device_count", "instance_count"})


class Repaired(NamedTuple):
    """A repaired copy of a document, and the keys whose values were replaced or removed."""

    value: Any
    damaged: frozenset[str]


def violations(value: Any, table_format: str, limit: int | None) -> Violations:
    """Return what the schema of a format finds in a document."""
    return Violations(value, table_format, limit)


def has_other_shape(damaged: DamagedInput) -> bool:
    """Return whether entries of a document are in a wrong list, so that they say nothing about the others."""
    return bool(other_shapes(damaged))


def without_damage(value: dict[str, Any], broken: Violations, table_format: Format) -> Repaired | None:
    """Return a document with its invalid values replaced or removed; None if that is impossible."""
    harmless = _NUMBERS if table_format == "2.0" else _TEXTS
    if not broken.keys <= {"version", *harmless, *_OPTIONAL, *_CONVERTED}:
        return None
    if table_format != "group_list":
        harmless = {**harmless, "version": table_format}

    damaged: set[str] = set()
    unknown: set[str] = set()

    schema = compiled(table_format)
    copy = _copied(value, schema.root)

    def repair(place: Path, refused: Refused) -> None:
        found = reduce(getitem, place, copy)
        for violation in refused.violations:
            path, key = violation.path, violation.key
            if key is not None:
                holder = reduce(getitem, path, found) if path else found
            else:
                holder = reduce(getitem, path[:-1], found) if path else reduce(getitem, place[:-1], copy)
                key = str((path or place)[-1])
                converted = right_number(key, holder.get(key), table_format)
                if converted is not None:
                    holder[key] = converted
                    continue
            damaged.add(key)
            if key in _CONVERTED:
                unknown.add(key)
            if key in harmless:
                holder[key] = harmless[key]
            else:
                holder.pop(key, None)

    schema.judge(copy, repair)
    return None if unknown else Repaired(copy, frozenset(damaged))


def _copied(value: Any, part: Part) -> Any:
    """Copy the objects and lists of a document that a schema describes; share all other values."""
    if type(value) is dict:
        copy = value.copy()
        for key, below in _deep(part):
            if key in value:
                copy[key] = _copied(value[key], below)
        return copy
    if type(value) is list and (items := part.items) is not None and not items.is_leaf:
        if items.items is None and not _deep(items):  # The devices: most of a table.
            return [item.copy() if type(item) is dict else item for item in value]
        return [_copied(item, items) for item in value]
    return value


def _deep(part: Part) -> list[tuple[str, Part]]:
    """Return the keys with objects and lists of their own."""
    return [(key, below) for key, below in part.properties.items() if not below.is_leaf]
