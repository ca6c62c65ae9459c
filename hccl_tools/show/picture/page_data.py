"""The data of the page: a table in columns, as compact JSON.

The devices are in the order in which they are shown: by server, then by device id. Columns in which nothing
differs are one value; numbers that count up are left out (null).
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.host.recognition import listed_addresses
from hccl_tools.notation.printable import escaped
from hccl_tools.show.picture import marks as marking
from hccl_tools.show.picture.boxes import buses
from hccl_tools.show.picture.scene import MOST_DEVICES
from hccl_tools.table.links import MEANINGS, Links
from hccl_tools.table.model import super_pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.document.document import Document
    from hccl_tools.show.picture.marks import Mark, Note
    from hccl_tools.show.picture.subject import Subject
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

#: The greatest number of marks of one note that the page has.
_MOST_MARKS = 1000

_KEY = re.compile(rb'"device_id"[ \t\n\r]*:')

#: The greatest numbers of classes; the links of further ones are not in the page.
_MOST_INNER, _MOST_OUTER = 64, 128
#: The class of what is left out.
_NONE = -1
_WORDS = tuple(MEANINGS)


def page_data(subject: Subject) -> dict[str, Any]:
    """Return the data of the page, ready for JSON."""
    table = subject.table
    rows_of = [_sorted_rows(table, index) for index in subject.servers]
    rows = list(chain.from_iterable(rows_of))
    in_order = rows == list(range(len(table)))
    servers = [table.servers[index] for index in subject.servers]
    pod_names, pod_of = _pods(subject)
    ranks = _picked(table.rank_numbers, rows, in_order=in_order)
    document = subject.report.document
    lines = source_lines(document, table) if document is not None else []
    return {
        "file": escaped(subject.report.file),
        "facts": escaped(subject.facts()),
        "servers": [escaped(server.server_id) for server in servers],
        "pods": pod_names,
        "podOf": shared(pod_of),
        "sizes": shared([len(own) for own in rows_of]),
        "ranks": None if ranks == list(range(len(ranks))) else ranks,
        "devices": _repeated([[table.device_numbers[row] for row in own] for own in rows_of]),
        "addresses": _addresses(table, rows),
        "superDevices": _picked(table.columns["super_device_id"], rows, in_order=in_order)
        if "super_device_id" in table.columns
        else None,
        "lines": _steps(_picked(lines, rows, in_order=in_order)) if lines else None,
        "groupSize": subject.product.group_size,
        "links": link_classes(table, subject.product, rows_of),
        "notes": _notes(subject, rows, in_order=in_order),
        "kinds": marking.MEANINGS,
    }


def _sorted_rows(table: RankTable, index: int) -> Sequence[int]:
    """Return the rows of a server by device id; rows without a readable id are last."""
    rows, numbers = table.servers[index].rows, table.device_numbers
    ids = [numbers[row] for row in rows]
    if None not in ids and ids == sorted(ids, key=lambda number: number or 0):
        return rows
    return sorted(rows, key=lambda row: (numbers[row] is None, numbers[row] or 0, row))


def _pods(subject: Subject) -> tuple[list[str], list[int]]:
    """Return the names of the super pods, and for each server the index of its own; -1 for none."""
    pods = super_pods(subject.table)
    if not pods:
        return [], [-1]
    names: dict[str, int] = {}
    ids = (subject.table.servers[index].server_id for index in subject.servers)
    of = [names.setdefault(pods[one], len(names)) if one in pods else -1 for one in ids]
    return [escaped(name) for name in names], of


def _picked(column: list[Any], rows: list[int], *, in_order: bool) -> list[Any]:
    return column if in_order else [column[row] for row in rows]


def _repeated(values: list[list[Any]]) -> Any:
    """Return the one list that all are equal to, else the values of all in one list, in an object."""
    first = values[0]
    return first if all(own == first for own in values) else {"all": list(chain.from_iterable(values))}


def _addresses(table: RankTable, rows: Sequence[int]) -> list[str]:
    """Return the addresses of each device, separated by blanks."""
    if table.format != "2.0":
        ips = table.device_ips
        return [escaped(ip.replace(",", " ")) if isinstance(ip := ips[row], str) else "" for row in rows]
    return [escaped(" ".join(text for _, text in listed_addresses(table, row))) for row in rows]


def _steps(numbers: list[int]) -> list[int]:
    """Return the first number and the differences, which are shorter."""
    return [number - before for number, before in zip(numbers, [0, *numbers], strict=False)]


def _notes(subject: Subject, rows: Sequence[int], *, in_order: bool) -> list[dict[str, Any]]:
    """Return the notes with their marks, and last the devices without a record."""
    place_of = None if in_order else {row: place for place, row in enumerate(rows)}
    server_of = {index: place for place, index in enumerate(subject.servers)}
    found = [_note(note, place_of, server_of) for note in subject.notes()]
    silent = _places(subject.silent(), place_of)
    if silent:
        mark = {
            "sentence": marking.MEANINGS["silent"],
            "place": "",
            "rows": silent,
            "servers": [],
            "peers": [],
        }
        found.append({"number": 0, "kind": "silent", "label": "", "count": 1, "omitted": 0, "marks": [mark]})
    return found


def _note(note: Note, place_of: dict[int, int] | None, server_of: dict[int, int]) -> dict[str, Any]:
    return {
        "number": note.number,
        "kind": note.kind,
        "label": escaped(note.marks[0].label),
        "count": len(note.marks) + note.omitted,
        "omitted": note.omitted,
        "marks": [_mark(mark, place_of, server_of) for mark in note.marks[:_MOST_MARKS]],
    }


def _mark(mark: Mark, place_of: dict[int, int] | None, server_of: dict[int, int]) -> dict[str, Any]:
    pairs = (_places(pair, place_of) for pair in mark.peers)
    return {
        "sentence": escaped(mark.sentence),
        "place": escaped(mark.place),
        "rows": _places(mark.rows, place_of),
        "servers": [server_of[index] for index in mark.servers if index in server_of],
        "peers": [pair for pair in pairs if len(pair) == 2],
    }


def _places(rows: Sequence[int], place_of: dict[int, int] | None) -> list[int]:
    return list(rows) if place_of is None else [place_of[row] for row in rows if row in place_of]


def source_lines(document: Document, table: RankTable) -> list[int]:
    """Return the line of each row, from 1: of its ``device_id``, or where its entry begins.

    Every device has the key ``device_id``, so if the text has it once per row, the n-th is that of row n.
    That is much faster than finding the span of each entry.
    """
    data = document.data
    if not document.duplicate_count and b"\\u" not in data:
        starts = [found.start() for found in _KEY.finditer(data)]
        if len(starts) == len(table):
            return _lines(data, starts)
    module = formats.module(table.format)
    spans = document.spans([module.device_path(table, row) for row in range(len(table))])
    return [document.position(span.start).line for span in spans]


def _lines(data: bytes, starts: list[int]) -> list[int]:
    line, before, found = 1, 0, []
    for start in starts:
        line += data.count(b"\n", before, start)
        before = start
        found.append(line)
    return found


def link_classes(table: RankTable, product: Product, rows_of: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return the links of some servers, ready for JSON.

    Args:
        rows_of: The rows of each server, in the order in which the page shows them.

    Returns:
        ``words``: the links with their meanings. ``inner``: for each class of servers a line of digits per
        device, each the index of a word, and the sets of devices that a link joins. ``innerOf``: the class of
        each server. ``outerOf``: the class of each device. ``across``: a line of digits per class of devices,
        or null.
    """
    links = Links(table, product)
    inner: dict[Any, int] = {}
    matrices: list[dict[str, Any]] = []
    inner_of = []
    for rows in rows_of:
        key = links.inner_key(rows) if len(rows) <= MOST_DEVICES else None
        if key is not None and key not in inner and len(inner) < _MOST_INNER:
            inner[key] = len(inner)
            words = links.within(rows)
            joined = [[_WORDS.index(bus.kind), bus.places] for bus in buses(words)]
            matrices.append({"words": [_digits(line) for line in words], "joined": joined})
        inner_of.append(inner.get(key, _NONE))
    outer: dict[Any, int] = {}
    outer_of = [outer.setdefault(links.outer_key(row), len(outer)) for rows in rows_of for row in rows]
    across = None
    if len(outer) <= _MOST_OUTER:
        across = [_digits([links.across(one, other) for other in outer]) for one in outer]
    return {
        "words": [[word, meaning] for word, meaning in MEANINGS.items()],
        "inner": matrices,
        "innerOf": shared(inner_of),
        "outerOf": shared(outer_of) if across is not None else None,
        "across": across,
    }


def _digits(words: Sequence[str]) -> str:
    return "".join(str(_WORDS.index(word)) for word in words)


def shared(values: list[Any]) -> Any:
    """Return the one value that all are equal to, else the list."""
    return values[0] if values and values.count(values[0]) == len(values) else values
