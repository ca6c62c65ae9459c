"""A damaged table without its damage, so that one fault does not hide the others.

What the schema refuses is replaced by something harmless, and the names of the keys so touched are kept:
rules that need one of them stay silent. Where the damage is not in a single value of a device or server,
there is nothing to repair, and structure is all that can be said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from hccl_tools.schema import Violation

#: Harmless values by key, for keys whose value must be a string or a number or nothing.
_HARMLESS: dict[str, Any] = {
    "version": None, "status": "completed", "rank_id": "0", "device_id": "0", "server_id": "damaged",
}  # fmt: skip
_OPTIONAL = frozenset(
    {"server_count", "host_ip", "host_port", "device_port", "net_position", "net_protocol", "super_device_id"}
)


class Repaired(NamedTuple):
    """A copy of a document without its damage, and the keys that were touched."""

    value: Any
    damaged: frozenset[str]


def without(value: Any, violations: list[Violation]) -> Repaired | None:
    """Return a document as if its faulty values were sound or absent; None where that cannot be."""
    if not isinstance(value, dict) or "rank_list" in value or "group_list" in value:
        return None
    damaged = set()
    copy = _copied(value)
    for violation in violations:
        path = violation.path if violation.key is None else (*violation.path, violation.key)
        key = path[-1] if path else ""
        if not isinstance(key, str) or (key not in _HARMLESS and key not in _OPTIONAL):
            return None
        holder = copy
        for step in path[:-1]:
            holder = holder[step]
        _mend(holder, key, value)
        damaged.add(key)
    return Repaired(copy, frozenset(damaged))


def _mend(holder: dict[str, Any], key: str, value: dict[str, Any]) -> None:
    if key == "version":
        holder[key] = "1.2" if "super_pod_list" in value else "1.0"
    elif key in _HARMLESS:
        holder[key] = _HARMLESS[key]
    else:
        holder.pop(key, None)


def _copied(value: Any) -> Any:
    """Return a copy down to the devices; deeper values are shared and not touched."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
