"""Recognise that the line after a trailing comma was deleted, as by ``sed /status/d`` or ``grep -v``.

The parser names the comma alone, and the table without it lacks a key.
"""

from __future__ import annotations

import json
from typing import Any

from hccl_tools.document import rewriting
from hccl_tools.notation.phrases import and_more, count

#: The longest text that is read again without its trailing commas.
_LONGEST = 1 << 24
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
