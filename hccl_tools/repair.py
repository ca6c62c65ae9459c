"""A damaged table without its damage, so that one fault does not hide the others.

What the schema refuses is replaced by something harmless, and the names of the keys so touched are kept:
rules that need one of them stay silent. Where the damage is not in a single value, there is nothing to
repair, and structure is all that can be said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.schema import compiled, walk

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.schema import Node, Violations
    from hccl_tools.table import Format

#: Harmless values of keys that must be there, by the type that the format gives them.
_TEXTS = {
    "status": "completed", "rank_id": "0", "device_id": "0", "server_id": "damaged", "group_name": "",
    "pod_name": "damaged",
}  # fmt: skip
_NUMBERS: dict[str, Any] = {"rank_id": 0, "local_id": 0, "device_id": 0}
#: Keys that may as well be absent.
_OPTIONAL = frozenset(
    {
        "server_count", "host_ip", "host_port", "device_port", "net_position", "net_protocol",
        "super_device_id", "net_attr", "net_type", "plane_id", "detour",
    }
)  # fmt: skip


class Repaired(NamedTuple):
    """A copy of a document without its damage, and the keys that were touched."""

    value: Any
    damaged: frozenset[str]


def without(value: dict[str, Any], violations: Violations, table_format: Format) -> Repaired | None:
    """Return a document as if its faulty values were sound or absent; None where that cannot be."""
    harmless = _NUMBERS if table_format == "2.0" else _TEXTS
    if not violations.keys <= {"version", *harmless, *_OPTIONAL}:
        return None
    if table_format != "group_list":
        harmless = {**harmless, "version": table_format}

    def repair(holder: Any, path: Path, _keyword: str, missing: str | None, _node: Node) -> None:
        key = missing or str(path[-1])
        if key in harmless:
            holder[key] = harmless[key]
        else:
            holder.pop(key, None)

    node = compiled(table_format)
    copy = _copied(value, node)
    walk(copy, node, (), None, repair)
    return Repaired(copy, frozenset(key for key in violations.keys if key is not None))


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
