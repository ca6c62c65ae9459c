"""Recognise a key without a value, and tell the value if the rest of the file determines it.

The parser names the sign after the missing value, and to remove that sign leads to the next one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from hccl_tools.document import places_in_text
from hccl_tools.document.bracket_scan import last_sign, strings_before
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The longest text that is read for the value.
_LONGEST = 1 << 24
#: The characters before a place in which its key begins.
_FAR = 160
_KEY = re.compile(r'"([^"\\\n]{1,64})"[ \t\r\n]{0,20}:\Z')
#: A key without a value, and a mark that takes the place of the value.
_EMPTY = re.compile(r'("[ \t]{0,20}:)(?=[ \t\r\n]{0,400}[,}\]])')
_MARK, _OTHER = "\u2205 the missing value", "\u2205 another missing value"
#: What a count counts.
_COUNTED = {
    "server_count": "server_list", "rank_count": "rank_list", "group_count": "group_list",
    "instance_count": "instance_list",
}  # fmt: skip
#: A value behind a comma that was written too early, and no key.
_VALUE = re.compile(r',[ \t]{0,20}(?:"[^"\\\n]{0,200}"(?![ \t]{0,20}:)|[-\d{\[])')
_NUMBERED = frozenset({"device_id", "local_id", "net_layer"})
#: The keys of which each entry has a value of its own.
_OWN = frozenset(
    {"server_id", "device_ip", "super_device_id", "addr", "super_pod_id", "pod_name", "group_id"}
)
#: The version of a table by a key that it has; the first decides.
_VERSIONS = (("rank_list", "2.0"), ("super_pod_list", "1.2"), ("server_list", "1.0"))


class MissingValue(NamedTuple):
    """A key without a value: a sentence, what to do, and the offset after its colon."""

    message: str
    hint: str
    at: int


def find(text: str, stop: int) -> MissingValue | None:
    """Return the key without a value before the sign at which the parser stops; None for other faults."""
    sign, at, comma = text[stop : stop + 1], last_sign(text, stop), ""
    if sign == ":":  # The key behind it was taken for the value.
        start = next(iter(strings_before(text, stop)), 0)
        at, comma = last_sign(text, start), ","
    elif sign not in ("}", "]", ",") or _VALUE.match(text, stop):
        return None
    found = _KEY.search(text, max(0, at - _FAR), at)
    if found is None:
        return None
    key, line = found[1], text.count("\n", 0, at) + 1
    others = len(_EMPTY.findall(text)) - (not comma)
    known = _known(text, at, comma, key) if len(text) <= _LONGEST else None
    if known is not None:
        hint = f'write "{key}": {known}{comma} on line {line}'
    else:
        where = "with a comma behind it" if comma else f"before the {'comma' if sign == ',' else sign}"
        hint = f"{places_in_text.how_to_write(text, at, key) or _how(key)}, {where} on line {line}"
    if others > 0:
        hint += f"; {count(others, 'other key')} {'has' if others == 1 else 'have'} no value, too"
    of = places_in_text.of_cell(text, at, key) if key in places_in_text.OF_DEVICES else ""
    return MissingValue(f'"{key}"{of} has no value', hint, at)


def _how(key: str) -> str:
    if key == "server_id":
        return "write the id of the server in double quotes, usually the address of its host"
    if key == "local_id":
        return "write the number that no other rank of its node has"
    return "write the value"


def _known(text: str, at: int, comma: str, key: str) -> str | None:
    """Return the missing value as JSON, if the other values determine it."""
    if key == "status":
        return '"completed"'
    head, rest = (_EMPTY.sub(f'\\1 "{_OTHER}"', one) for one in (text[:at], text[at:]))
    try:
        value = json.loads(f'{head} "{_MARK}"{comma}{rest}')
    except (ValueError, RecursionError):
        return None
    if type(value) is not dict:
        return None
    if key == "version":
        return next((f'"{number}"' for name, number in _VERSIONS if name in value), None)
    found = _found(value, key)
    if found is None:
        return None
    if key in _COUNTED or key == "device_count":
        return _counted(found.entry, key)
    if key in _OWN:
        return None
    values = [one for one in found.values if one != _OTHER]
    if key == "rank_id":
        number = _missing_rank(found.values)
        return None if number is None else _like(number, values)
    if key in _NUMBERED and (number := _next(found.siblings, found.place, key)) is not None:
        return _like(number, values)
    alike = [one for one in found.alike if one != _OTHER]
    if alike and type(alike[0]) in (str, int) and all(one == alike[0] for one in alike):
        return json.dumps(alike[0])
    around = [*found.values[max(0, found.row - 1) : found.row], *found.values[found.row + 1 :][:1]]
    is_between = len(around) == 2 and around[0] == around[1] and type(around[0]) is str
    return json.dumps(around[0]) if is_between and around[0] not in (_MARK, _OTHER) else None


def _like(number: int, values: Sequence[Any]) -> str:
    """Return a number as the other values of its key are written."""
    return f'"{number}"' if any(type(one) is str and one != _MARK for one in values) else str(number)


class _Found(NamedTuple):
    """The object without the value, its list and place there, and the values of this key in the file.

    Attributes:
        values: The values in all objects at the same keys of the file, in their order, and the ``row`` of
            the missing one.
        alike: Those values of them at the same place of a list, without the missing one.
    """

    entry: dict[str, Any]
    siblings: Sequence[Any]
    place: int
    values: Sequence[Any]
    row: int
    alike: Sequence[Any]


def _found(value: dict[str, Any], key: str) -> _Found | None:
    columns: dict[tuple[str, ...], list[tuple[int, Any]]] = {}
    found: tuple[dict[str, Any], Sequence[Any], int, tuple[str, ...]] | None = None
    stack: list[tuple[Any, Sequence[Any], int, tuple[str, ...]]] = [(value, (), 0, ())]
    while stack:
        one, siblings, place, path = stack.pop()
        if type(one) is list:
            inner = [(each, one, index, path) for index, each in enumerate(one) if type(each) in (dict, list)]
            stack += reversed(inner)
            continue
        if key in one:
            columns.setdefault(path, []).append((place, one[key]))
            found = (one, siblings, place, path) if one[key] == _MARK else found
        members = [(each, (), 0, (*path, name)) for name, each in one.items() if type(each) in (dict, list)]
        stack += reversed(members)
    if found is None:
        return None
    entry, siblings, place, path = found
    column = columns[path]
    index = next(index for index, (_, each) in enumerate(column) if each == _MARK)
    is_nested = len(path) > 1
    alike = [each for at, each in column if each != _MARK and (at == place or not is_nested)]
    return _Found(entry, siblings, place, [each for _, each in column], index, alike)


def _counted(entry: dict[str, Any], key: str) -> str | None:
    """Return the number of entries of the list that a count counts, a string but in 2.0 tables."""
    if key == "device_count":
        instances = entry.get("instance_list")
        lists = (
            [one.get("devices") for one in instances if type(one) is dict] if type(instances) is list else []
        )
        number = sum(len(one) for one in lists if type(one) is list)
        return f'"{number}"' if lists and all(type(one) is list for one in lists) else None
    counted = entry.get(_COUNTED[key])
    if type(counted) is not list:
        return None
    return str(len(counted)) if key == "rank_count" else f'"{len(counted)}"'


def _missing_rank(ranks: Sequence[Any]) -> int | None:
    """Return the only rank that no device has, if all others are known."""
    known = {number for one in ranks if (number := _number(one)) is not None}
    absent = sorted({*range(len(ranks))} - known) if len(known) == len(ranks) - 1 else []
    return absent[0] if len(absent) == 1 else None


def _next(siblings: Sequence[Any], place: int, key: str) -> int | None:
    """Return the number between those of the neighbours, or that at an end of a row from 0."""
    numbers = [_number(one.get(key)) if type(one) is dict else None for one in siblings]
    before = numbers[place - 1] if place else None
    after = numbers[place + 1] if place + 1 < len(numbers) else None
    if before is not None and after is not None:
        return before + 1 if after == before + 2 else None
    rest = [number for index, number in enumerate(numbers) if index != place]
    row = [index + (index >= place) for index in range(len(rest))]
    return place if len(rest) > 1 and rest == row else None


def _number(value: Any) -> int | None:
    if type(value) is int:
        return value
    return (
        int(value) if type(value) is str and value.isascii() and value.isdigit() and len(value) < 10 else None
    )
