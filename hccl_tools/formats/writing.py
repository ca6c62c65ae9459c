"""Write tables as a stream of entries, without the whole text in memory."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from hccl_tools.table.hccl_numbers import NULL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hccl_tools.table.model import Column

_INDENT = 4


def dump_at(value: Any, level: int) -> str:
    """Return the JSON text of a value at an indentation level; its first line is not indented."""
    if type(value) is str:
        return encode_basestring(value)
    text = json.dumps(value, indent=_INDENT, ensure_ascii=False)
    return text.replace("\n", "\n" + " " * (_INDENT * level))


def members(keys: Sequence[str], columns: Sequence[Column], row: int) -> dict[str, Any]:
    """Return a device as an object: the keys whose columns have a value in its row."""
    values = ((key, column[row]) for key, column in zip(keys, columns, strict=True))
    return {key: None if value is NULL else value for key, value in values if value is not None}


def object_texts(
    keys: Sequence[str], columns: Sequence[Column], level: int
) -> Callable[[Sequence[int]], str]:
    """Return a function that formats the given rows as the objects of a list at an indentation level.

    Rows of plain strings, as in nearly all 1.x tables, are filled into a template, which is five times as
    fast as encoding each object.
    """
    margin, inner = " " * (_INDENT * level), " " * (_INDENT * (level + 1))
    if not keys or not all(map(_is_plain, columns)):
        return lambda rows: ",\n".join(margin + dump_at(members(keys, columns, row), level) for row in rows)
    names = [encode_basestring(key).replace("%", "%%") for key in keys]
    template = (
        f"{margin}{{\n{inner}" + f",\n{inner}".join(f'{name}: "%s"' for name in names) + f"\n{margin}}}"
    )

    def texts(rows: Sequence[int]) -> str:
        if isinstance(rows, range):
            cells: list[Column] = [column[rows.start : rows.stop : rows.step] for column in columns]
        else:
            cells = [[column[row] for row in rows] for column in columns]
        return ",\n".join(map(template.__mod__, zip(*cells, strict=True)))

    return texts


def _is_plain(column: Column) -> bool:
    if set(map(type, column)) != {str}:
        return False
    text = "".join(column)
    return text.isprintable() and '"' not in text and "\\" not in text


def write_document(
    head: dict[str, Any], list_key: str, entries: Iterable[str], tail: dict[str, Any]
) -> Iterator[str]:
    """Yield the text of an object with one large list.

    Args:
        head: The keys before the list.
        list_key: The key of the list.
        entries: The indented text of each entry.
        tail: The keys after the list.
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
