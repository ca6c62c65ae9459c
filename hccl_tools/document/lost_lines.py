"""Recognise lines that were deleted: after a trailing comma, as by ``sed /status/d``, or between two servers.

The parser names a comma alone, and the table that is mended there lacks a key, or has two servers as one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hccl_tools.document import rewriting
from hccl_tools.notation.phrases import and_more, count

#: The longest text that is read again without its trailing commas.
_LONGEST = 1 << 24
#: A device_id, and the characters beside a place in which one is.
_DEVICE, _NEAR = re.compile(r'"device_id"\s*:\s*"?(\d{1,9})\b', re.ASCII), 2000
#: The lists of a table, with the keys that each of their entries needs.
_NEEDED = {
    "server_list": ("server_id", "device"), "device": ("device_id", "rank_id"),
    "group_list": ("instance_list", "device_count", "instance_count"),
    "instance_list": ("server_id", "pod_name", "devices"), "devices": ("device_id",),
    "rank_list": ("rank_id", "device_id", "local_id", "level_list"),
}  # fmt: skip
#: The lists of which a table has one, with the count that a table needs; None if HCCL counts itself.
_OF_TABLES = {"server_list": None, "rank_list": "rank_count", "group_list": "group_count"}


def after_commas(text: str) -> tuple[str, str] | None:
    """Return what a table with trailing commas lacks, as the end of a message, and the hint."""
    commas = rewriting.trailing_commas(text) if len(text) <= _LONGEST else []
    parts = [text[start + 1 : end] for start, end in zip([-1, *commas], [*commas, len(text)], strict=True)]
    try:
        value = json.loads(" ".join(parts))
    except (ValueError, RecursionError):
        return None
    if type(value) is not dict or not (name := next((one for one in _OF_TABLES if one in value), "")):
        return None
    needed = [key for key in ("status", _OF_TABLES[name]) if key is not None and key not in value]
    lost = [f'"{key}"' for key in needed] + _in_entries(value, name)
    if not lost:
        return None
    said = (
        f", and {and_more(lost)} {'is' if len(lost) == 1 else 'are'} missing: perhaps such lines were deleted"
    )
    if lost != ['"status"']:
        return said, "take the table as it was before, or write what is missing after the commas"
    if parts[-1].strip() == "}":
        return said, 'write "status": "completed" after the comma'
    return said, f'remove the comma, and write "status": "completed" beside {name}'


def between_servers(text: str, at: int, line: int) -> tuple[str, str] | None:
    """Return message and hint on a table without the end of a server and the head of the next one.

    Args:
        text: The table with a comma between the two devices, which makes it valid JSON.
        at: Where this comma is, and ``line`` its line.
    """
    before, after = _DEVICE.findall(text, max(0, at - _NEAR), at), _DEVICE.search(text, at, at + _NEAR)
    if (
        not before
        or after is None
        or int(after[1]) > int(before[-1])
        or '"server_id"' in text[at : after.start()]
    ):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    servers = value.get("server_list") if type(value) is dict else None
    if type(servers) is not list or not all(type(one) is dict for one in servers):
        return None
    number, stated = len(servers), str(value.get("server_count"))
    keys = [key for one in servers for key in one if key in ("server_id", "device")]
    is_counted = stated.isdecimal() and int(stated) == number + 1
    if keys != ["server_id", "device"] * number or not (is_counted or (after[1] == "0" and stated == "None")):
        return None
    counted = f", and server_count is {stated} for {count(number, 'server')}" if is_counted else ""
    message = (
        "the end of a server and the head of the next one are probably missing: "
        f"behind device {before[-1]} the list goes on with device {after[1]}{counted}"
    )
    hint = (
        f'write ] }}, {{ "server_id": "...", "device": [ at the end of line {line}, with the address of the '
        "other host, and add the devices that were lost; or copy the complete file again"
    )
    return message, hint


def _in_entries(value: dict[str, Any], name: str) -> list[str]:
    """Return the keys that entries of a list, and of the lists in it, lack, as phrases."""
    found, holders = list[str](), [value]
    while True:
        lists = [one.get(name) for one in holders]
        entries = [one for part in lists if type(part) is list for one in part if type(one) is dict]
        for key in _NEEDED[name]:
            if number := sum(key not in one for one in entries):
                found.append(f'"{key}" in {count(number, "entry", "entries")} of {name}')
        inner = next(
            (key for key in _NEEDED[name] if key in _NEEDED and any(key in one for one in entries)), None
        )
        if inner is None:
            return found
        name, holders = inner, entries
