"""Recognise a table that went through a spreadsheet: lines or the whole text in cells, with doubled quotes.

A spreadsheet that saves text as CSV puts a cell with quotes in quotes and doubles those in it, and adds a
separator for each empty cell of a row.
"""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING

from hccl_tools.document import one_edit
from hccl_tools.notation.hint import FILES
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The longest text that is examined.
_LONGEST = 1 << 22
#: The characters of a value that a message shows.
_SHOWN = 60
_SEPARATORS = {",": "", ";": ', delimiter=";"', "\t": ", delimiter=chr(9)"}
_CSV = "python3 -I -c 'import csv, sys; csv.field_size_limit(1 << 30); "
_ROWS = f"{_CSV}[print(r[0]) for r in csv.reader(sys.stdin{{}}) if r]' < {FILES}"
_CELL = f"{_CSV}print(list(csv.reader(sys.stdin{{}}))[{{}}][{{}}])' < {FILES}"
_DEVICES = (
    "python3 -I -c 'import csv, json, sys; csv.field_size_limit(1 << 30); "
    'r = [{{"server_id": x["server_id"], "device": json.loads(x["device"])}} '
    "for x in csv.DictReader(sys.stdin{})]; "
    'json.dump({{"version": "1.0", "server_count": str(len(r)), "server_list": r, "status": "completed"}}, '
    "sys.stdout, indent=4)' < " + FILES
)
#: Two or three quotes in place of one, before or after a value; four are an empty text.
_EMPTY = re.compile(r'(?<!")""""(?!")')
_BEFORE, _AFTER = re.compile(r'"{2,3}(?=[\w.:/-])'), re.compile(r'(?<=[\w.:/-])"{2,3}')
_VALUE = re.compile(r'"{2,3}([^"\n]{1,200})"{2,3}')
_SED = (
    r"""sed -E 's/"{2,3}([A-Za-z0-9_.:/-])/"\1/g; s/([A-Za-z0-9_.:/-])"{2,3}/\1"/g; """
    r"""s/"{4}/""/g' """ + FILES
)


class Cells(NamedTuple):
    """What a text is, as a sentence, what to do, and the offset of the first place."""

    message: str
    hint: str
    at: int = 0


def recognise(text: str) -> Cells | None:
    """Return how a text that is not valid JSON was saved by a spreadsheet; None for other texts."""
    if len(text) > _LONGEST:
        return None
    found: Cells | None = None
    if '""' in text:
        found = _in_rows(text) or _doubled(text) or _in_a_cell(text)
    return found or _with_empty_cells(text)


def _rows(text: str, separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(text.splitlines(keepends=True), delimiter=separator))
    except csv.Error:
        return []


def _in_rows(text: str) -> Cells | None:
    """Each line, or the whole text, is the first cell of a row."""
    for separator, option in _SEPARATORS.items():
        rows = [row for row in _rows(text, separator) if row]
        if (
            not rows
            or any(any(row[1:]) for row in rows)
            or not one_edit.is_valid("\n".join(row[0] for row in rows))
        ):
            continue
        what = "the table is in one cell" if len(rows) == 1 else "each line is a cell"
        return Cells(
            f"{what} of a spreadsheet, with double quotes around it and doubled ones in it",
            f"take the text out of the cells: {_ROWS.format(option)}",
        )
    return None


def _doubled(text: str) -> Cells | None:
    """The quotes of values are doubled."""
    right = _AFTER.sub('"', _BEFORE.sub('"', _EMPTY.sub('""', text)))
    if right == text or not one_edit.is_valid(right):
        return None
    values = [*_VALUE.finditer(text)]
    if not values:
        return None
    shown, plain = values[0][0][:_SHOWN], values[0][1][:_SHOWN]
    message, hint = f"{shown} has doubled quotes, as a spreadsheet writes them in a cell", f'write "{plain}"'
    if len(values) > 1:
        message += f"; so {'has' if len(values) == 2 else 'have'} {count(len(values) - 1, 'other text')}"
        hint += f", and so on: {_SED}"
    return Cells(message, hint, values[0].start())


def _in_a_cell(text: str) -> Cells | None:
    """A file of rows with a table, or the devices of servers, as JSON in a cell."""
    for separator, option in _SEPARATORS.items():
        rows = _rows(text, separator)
        if len(rows) < 2 or len(rows[0]) < 2:
            continue
        if {"server_id", "device"} <= {*rows[0]} and _are_lists(rows):
            return Cells(
                "this is a file of columns, with the devices of each server as JSON in a cell",
                f"make the table of its rows: {_DEVICES.format(option)}",
            )
        for at, place in _tables(rows):
            return Cells(
                f"this is a file of columns; the table is in row {at + 1}, column {place + 1}",
                f"take it out: {_CELL.format(option, at, place)}",
            )
    return None


def _tables(rows: list[list[str]]) -> Iterator[tuple[int, int]]:
    """Yield the rows and columns of cells that are JSON objects."""
    for at, row in enumerate(rows):
        for place, cell in enumerate(row):
            if cell.lstrip().startswith("{") and one_edit.is_valid(cell):
                yield at, place


def _are_lists(rows: list[list[str]]) -> bool:
    place = rows[0].index("device")
    try:
        return all(type(json.loads(row[place])) is list for row in rows[1:] if row)
    except (ValueError, IndexError, RecursionError):
        return False


def _with_empty_cells(text: str) -> Cells | None:
    """Each line ends with separators of empty cells."""
    lines = text.rstrip().splitlines()
    for separator in ",;\t":
        size = min((len(line) - len(line.rstrip(separator)) for line in lines), default=0)
        if not size or not one_edit.is_valid("\n".join(line[:-size] for line in lines)):
            continue
        sign = {",": "commas", ";": "semicolons", "\t": "tabs"}[separator]
        signs = sign if size > 1 else f"a {sign[:-1]}"
        end = "\\t" if separator == "\t" else separator
        return Cells(
            f"each line ends with {signs} of empty cells, as a spreadsheet saves them",
            f"remove them: sed -E 's/{end}{{{size}}}$//' {FILES}",
            len(lines[0]) - size,
        )
    return None
