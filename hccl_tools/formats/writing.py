"""Streaming text for large tables: one entry at a time, never the whole document in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.table import NULL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hccl_tools.table import Column

_INDENT = 4


def dump_at(value: Any, level: int) -> str:
    """Return the JSON text of a value at an indentation level; its first line is not indented."""
    if type(value) is str:
        return json.dumps(value, ensure_ascii=False)
    text = json.dumps(value, indent=_INDENT, ensure_ascii=False)
    return text.replace("\n", "\n" + " " * (_INDENT * level))


def members(keys: Sequence[str], columns: Sequence[Column], row: int) -> dict[str, Any]:
    """Return one device as an object: the keys whose columns have a value in this row."""
    values = ((key, column[row]) for key, column in zip(keys, columns, strict=True))
    return {key: None if value is NULL else value for key, value in values if value is not None}


def write_document(
    head: dict[str, Any], list_key: str, entries: Iterable[str], tail: dict[str, Any]
) -> Iterator[str]:
    """Yield an object whose one large list stands between its other keys.

    Args:
        head: The keys in front of the list.
        list_key: The key of the list.
        entries: The text of each entry, indented already.
        tail: The keys behind the list.
    """
    yield "{\n"
    for key, value in head.items():
        yield f"    {dump_at(key, 0)}: {dump_at(value, 1)},\n"
    yield f"    {dump_at(list_key, 0)}: [\n"
    separator = ""
    for entry in entries:
        yield separator
        yield entry
        separator = ",\n"
    yield "\n    ]"
    for key, value in tail.items():
        yield f",\n    {dump_at(key, 0)}: {dump_at(value, 1)}"
    yield "\n}\n"
