"""The keys of tables, shared by rules on misspelt ones. This module declares no rules."""

from __future__ import annotations

from functools import cache

from hccl_tools.notation.likeness import likeness

#: Keys that HCCL reads in 1.x and group_list tables: the keys of the schemas (a test compares them).
READ_KEYS = frozenset(
    {
        "version", "status", "server_count", "server_list", "server_id", "host_ip", "device", "device_id", "rank_id",
        "device_ip", "device_port", "host_port", "net_position", "net_protocol", "super_device_id", "super_pod_list",
        "cluster_list", "group_count", "group_list", "group_name", "device_count", "instance_count", "instance_list",
        "pod_name", "devices",
    }
)  # fmt: skip
#: The same keys by their spelling without underscores.
_PLAIN = {key.replace("_", ""): key for key in READ_KEYS}
#: The minimum similarity, 0 to 1, of a misspelt key to a key that HCCL reads; the longest misspelt key.
_ALIKE, _LONGEST_MISSPELT = 0.85, 40


def similar_key(key: str) -> str | None:
    """Return the known key that a misspelt key resembles, ``None`` if no key is similar enough."""
    if len(key) > _LONGEST_MISSPELT:
        return None
    folded = key.strip().lower().replace("-", "_")
    if (plain := folded.replace("_", "")) in _PLAIN:
        return _PLAIN[plain]
    score, closest = max(
        ((likeness(folded, key, _ALIKE), key) for key in _of_length(len(folded))), default=(0.0, "")
    )
    return closest if score else None


def is_same_name(key: str, other: str) -> bool:
    """Return whether two keys differ only in capitals, hyphens, underscores and blanks."""
    if len(key) > _LONGEST_MISSPELT:
        return False
    return key.strip().lower().replace("-", "").replace("_", "").replace(" ", "") == other.replace("_", "")


@cache
def same_name(key: str, known: frozenset[str]) -> str | None:
    """Return the known key of which a key is another spelling."""
    return next((one for one in sorted(known) if is_same_name(key, one)), None)


@cache
def _of_length(length: int) -> list[str]:
    return [key for key in sorted(READ_KEYS) if abs(length - len(key)) <= (1 - _ALIKE) * (length + len(key))]
