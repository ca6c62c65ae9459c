"""A damaged table without its damage, so that one fault does not hide the others.

What the schema refuses is replaced by something harmless, and the names of the keys so touched are kept:
rules that need one of them stay silent. Where the damage is not in a single value, there is nothing to
repair, and structure is all that can be said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from hccl_tools.schema import Violation
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


def without(value: dict[str, Any], violations: list[Violation], table_format: Format) -> Repaired | None:
    """Return a document as if its faulty values were sound or absent; None where that cannot be."""
    harmless = _NUMBERS if table_format == "2.0" else _TEXTS
    version = None if table_format == "group_list" else table_format
    damaged = set()
    copy = _copied(value)
    for violation in violations:
        path = violation.path if violation.key is None else (*violation.path, violation.key)
        key = str(path[-1]) if path else ""
        holder = copy
        for step in path[:-1]:
            holder = holder[step]
        if key == "version" and version is not None:
            holder[key] = version
        elif key in harmless:
            holder[key] = harmless[key]
        elif key in _OPTIONAL or key == "version":
            holder.pop(key, None)
        else:
            return None
        damaged.add(key)
    return Repaired(copy, frozenset(damaged))


def _copied(value: Any) -> Any:
    """Return a copy of a parsed document."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
