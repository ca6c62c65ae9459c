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


#: Keys as browsers translate them into Chinese, without blanks.
_TRANSLATED = {
    "\u7248\u672c": "version", "\u72b6\u6001": "status", "\u670d\u52a1\u5668\u6570\u91cf": "server_count",
    "\u670d\u52a1\u5668\u8ba1\u6570": "server_count", "\u670d\u52a1\u5668\u5217\u8868": "server_list",
    "\u670d\u52a1\u5668id": "server_id", "\u670d\u52a1\u5668\u7f16\u53f7": "server_id", "\u670d\u52a1\u5668\u6807\u8bc6": "server_id",
    "\u8bbe\u5907": "device", "\u8bbe\u5907\u5217\u8868": "device", "\u8bbe\u5907id": "device_id",
    "\u8bbe\u5907\u7f16\u53f7": "device_id", "\u8bbe\u5907\u6807\u8bc6": "device_id", "\u8bbe\u5907ip": "device_ip",
    "\u8bbe\u5907\u5730\u5740": "device_ip", "\u8bbe\u5907\u7aef\u53e3": "device_port", "\u6392\u540did": "rank_id",
    "\u7b49\u7ea7id": "rank_id", "\u79e9id": "rank_id", "rankid": "rank_id", "\u4e3b\u673aip": "host_ip",
    "\u4e3b\u673a\u7aef\u53e3": "host_port", "\u8d85\u8282\u70b9\u5217\u8868": "super_pod_list",
    "\u8d85\u7ea7\u8282\u70b9\u5217\u8868": "super_pod_list", "\u8d85\u7ea7pod\u5217\u8868": "super_pod_list",
    "\u8d85\u8282\u70b9id": "super_pod_id", "\u8d85\u8282\u70b9\u7f16\u53f7": "super_pod_id",
    "\u8d85\u7ea7\u8bbe\u5907id": "super_device_id", "\u8d85\u8bbe\u5907id": "super_device_id",
    "\u7ec4\u6570\u91cf": "group_count", "\u7ec4\u5217\u8868": "group_list", "\u7ec4\u540d": "group_name",
    "\u7ec4\u540d\u79f0": "group_name", "\u8bbe\u5907\u6570\u91cf": "device_count", "\u5b9e\u4f8b\u6570\u91cf": "instance_count",
    "\u5b9e\u4f8b\u5217\u8868": "instance_list", "pod\u540d\u79f0": "pod_name",
}  # fmt: skip


def translated(key: str) -> str | None:
    """Return the key of which a key is a translation; None for other keys."""
    return None if key.isascii() else _TRANSLATED.get(key.replace(" ", "").replace("_", "").lower())


def similar_key(key: str) -> str | None:
    """Return the known key that a misspelt key resembles, ``None`` if no key is similar enough."""
    if len(key) > _LONGEST_MISSPELT:
        return None
    if (meant := translated(key)) is not None:
        return meant
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
    if (meant := translated(key)) is not None:
        return meant == other
    return key.strip().lower().replace("-", "").replace("_", "").replace(" ", "") == other.replace("_", "")


@cache
def same_name(key: str, known: frozenset[str]) -> str | None:
    """Return the known key of which a key is another spelling."""
    return next((one for one in sorted(known) if is_same_name(key, one)), None)


@cache
def _of_length(length: int) -> list[str]:
    return [key for key in sorted(READ_KEYS) if abs(length - len(key)) <= (1 - _ALIKE) * (length + len(key))]
