"""Recognise a list of devices, as programs write it that have no servers: one entry for each rank."""

from __future__ import annotations

from typing import Any

from hccl_tools.notation.hint import FILES
from hccl_tools.records import NamedTuple

#: The usual names of what an entry says; names are compared without case, - and _.
_NAMES = {
    "rank_id": ("rankid", "rank", "globalrank", "worldrank"),
    "server_id": ("serverid", "server", "host", "hostname", "hostip", "node", "nodeip", "nodename", "machine"),
    "device_id": ("deviceid", "device", "dev", "devid", "npu", "npuid", "card", "cardid", "localrank", "localid"),
    "device_ip": ("deviceip", "ip", "devip", "npuip", "rdmaip", "roceip", "nicip", "address", "addr"),
}  # fmt: skip
#: What a table needs of each device.
_NEEDED = ("rank_id", "server_id", "device_id")


class FlatList(NamedTuple):
    """What a list of devices is, as a sentence, and the command that makes the table of it."""

    message: str
    hint: str


def of_devices(value: Any) -> FlatList | None:
    """Return what a list of objects is that have the rank, host and device; None for other values."""
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        return None
    key_of = _roles(value[0])
    if key_of is None or not all(key in one for key in key_of.values() for one in value):
        return None
    if not all(isinstance(one[key], (str, int)) for key in key_of.values() for one in value):
        return None
    names = ", ".join(f'"{key}"' for key in key_of.values())
    size = f"{len(value):,} entries" if len(value) > 1 else "1 entry"
    return FlatList(
        f"not a rank table: it is a list of devices, {size} with {names}, and a table lists them by server",
        f"make the table of it: {_command(key_of)}",
    )


def _roles(entry: dict[str, Any]) -> dict[str, str] | None:
    """Return the key of an entry for each key of a table; None if one is missing that a table needs."""
    plain = {key.lower().replace("-", "").replace("_", ""): key for key in entry}
    found = {
        role: plain[name]
        for role, names in _NAMES.items()
        if (name := next((name for name in names if name in plain), None)) is not None
    }
    is_plain = all(key.isascii() and key.replace("-", "_").isidentifier() for key in found.values())
    return found if is_plain and all(role in found for role in _NEEDED) else None


def _command(key_of: dict[str, str]) -> str:
    members = ", ".join(
        f'"{role}": str(x["{key_of[role]}"])'
        for role in ("device_id", "device_ip", "rank_id")
        if role in key_of
    )
    host = key_of["server_id"]
    return (
        "python3 -I -c 'import json, sys; n = {}; "
        f'[n.setdefault(str(x["{host}"]), []).append({{{members}}}) for x in json.load(sys.stdin)]; '
        'r = [{"server_id": k, "device": v} for k, v in n.items()]; '
        'json.dump({"version": "1.0", "server_count": str(len(r)), "server_list": r, "status": "completed"}, '
        "sys.stdout, indent=4)' < " + FILES
    )
