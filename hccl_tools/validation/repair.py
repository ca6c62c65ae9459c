"""A damaged table without its damage, so that one fault does not hide the others.

A number that should be a string, or the other way round, is read as it is meant. What else the schema refuses
is replaced by something harmless, and the names of the keys so touched are kept: rules that need one of them
stay silent. Where the damage is not in a single value, there is nothing to repair, and structure is all that
can be said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.formats.schema import compiled, walk

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.schema import Node, Violations
    from hccl_tools.table.model import Format

#: Harmless values of keys that must be there, by the type that the format gives them.
_TEXTS = {
    "status": "completed", "rank_id": "0", "device_id": "0", "server_id": "damaged", "group_name": "",
    "pod_name": "damaged",
}  # fmt: skip
_NUMBERS: dict[str, Any] = {"rank_id": 0, "local_id": 0, "device_id": 0}
#: Keys of 1.x and group_list tables that hold a number in a string.
_NUMBERS_IN_TEXTS = frozenset(
    {"rank_id", "device_id", "server_count", "device_port", "host_port", "super_device_id"}
)
_DIGITS = re.compile(r"0|[1-9][0-9]{0,8}")
#: Keys that may as well be absent.
_OPTIONAL = frozenset(
    {
        "server_count", "host_ip", "host_port", "device_port", "net_position", "net_protocol",
        "super_device_id", "net_attr", "net_type", "plane_id", "detour",
    }
)  # fmt: skip


class Repaired(NamedTuple):
    """A copy of a document without its damage, and the keys whose values were replaced or dropped."""

    value: Any
    damaged: frozenset[str]


def without_damage(value: dict[str, Any], violations: Violations, table_format: Format) -> Repaired | None:
    """Return a document as if its faulty values were sound or absent; None where that cannot be."""
    harmless = _NUMBERS if table_format == "2.0" else _TEXTS
    if not violations.keys <= {"version", *harmless, *_OPTIONAL}:
        return None
    if table_format != "group_list":
        harmless = {**harmless, "version": table_format}

    damaged = set()

    def repair(holder: Any, path: Path, _keyword: str, missing: str | None, _node: Node) -> None:
        key = missing or str(path[-1])
        meant = _as_meant(key, holder.get(key), table_format)
        if meant is not None:
            holder[key] = meant
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


def _as_meant(key: str, value: Any, table_format: Format) -> Any:
    """Return a number of the wrong JSON type in the right one; ``None`` for anything else."""
    if table_format == "2.0":
        return int(value) if key in _NUMBERS and type(value) is str and _DIGITS.fullmatch(value) else None
    return str(value) if key in _NUMBERS_IN_TEXTS and type(value) is int and value >= 0 else None


def _copied(value: Any, node: Node) -> Any:
    """Return a copy of a parsed document as far as a schema describes it."""
    if type(value) is dict:
        copies = {
            key: _copied(value[key], below)
            for key, below in node.properties.items()
            if key in value and not below.is_leaf
        }
        return {**value, **copies}
    if type(value) is list and node.items is not None and not node.items.is_leaf:
        return [_copied(item, node.items) for item in value]
    return value
