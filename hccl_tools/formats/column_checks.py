"""Strict checks for the readers of all formats; each checks a whole column at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from hccl_tools.errors import TableError
from hccl_tools.table.hccl_numbers import NULL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.table.model import Column


_Object = dict[str, Any]
#: With at most this many different device keys, all columns are full. With more, a key that at most one
#: device in 16 has gets a sparse column, so that the size of all columns stays linear in the size of the
#: file.
_MANY_KEYS, _FEW = 64, 16
_NUMBERS: frozenset[type] = frozenset({int, float, bool})


class StructureError(TableError):
    """A document does not have the structure of its format; ``path`` leads to the first fault or near it."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


def objects(holder: _Object, key: str) -> list[_Object]:
    """Return the non-empty list of objects under a key."""
    entries = holder.get(key)
    if type(entries) is not list or not entries:
        raise StructureError((key,), f"{key} is not a list with entries")
    if set(map(type, entries)) != {dict}:
        raise StructureError((key,), f"{key} has an entry that is not an object")
    return entries


def _column(holders: list[_Object], key: str) -> list[Any]:
    try:
        return [holder[key] for holder in holders]
    except KeyError:
        raise StructureError((key,), f"{key} is missing") from None


def lists(holders: list[_Object], key: str, *, least: int = 0, most: int | None = None) -> list[list[Any]]:
    """Return the lists that all entries must have under a key, each with a length within the bounds."""
    column = _column(holders, key)
    if set(map(type, column)) - {list}:
        raise StructureError((key,), f"{key} is not a list")
    lengths = set(map(len, column))
    if lengths and (min(lengths) < least or (most is not None and max(lengths) > most)):
        raise StructureError((key,), f"{key} has too few or too many entries")
    return column


def flat(column: list[list[Any]], kind: type, key: str) -> list[Any]:
    """Return the entries of many lists, all of one type, as one list."""
    entries = list(chain.from_iterable(column))
    if set(map(type, entries)) - {kind}:
        raise StructureError((key,), f"{key} has an entry of the wrong type")
    return entries


def numbers(holders: list[_Object], key: str) -> None:
    """Refuse entries without a number (or true or false, which HCCL reads as 1 and 0) under a key."""
    if set(map(type, _column(holders, key))) - _NUMBERS:
        raise StructureError((key,), f"{key} is not a number")


def optional(holders: list[_Object], key: str, kinds: frozenset[type]) -> None:
    """Refuse entries whose value under a key has another type; entries without the key pass."""
    if {type(holder[key]) for holder in holders if key in holder} - kinds:
        raise StructureError((key,), f"{key} has the wrong type")


def texts(entries: list[_Object], key: str) -> list[str]:
    """Return the value of each entry under a key; refuse a missing value and a value of another type."""
    column = _column(entries, key)
    if set(map(type, column)) - {str}:
        raise StructureError((key,), f"{key} is not a string")
    return column


def columns(
    entries: list[_Object], required: tuple[str, ...], texts_if_there: frozenset[str]
) -> dict[str, Column]:
    """Return one column per key that occurs in the entries.

    Args:
        entries: The devices, in file order.
        required: Keys that every entry must have, as strings.
        texts_if_there: Optional keys whose values must be strings.
    """
    found: dict[str, Column] = {key: list(texts(entries, key)) for key in required}
    keys = _other_keys(entries)
    sparse = _sparse_columns(entries) if len(keys) > _MANY_KEYS else {}
    for key in keys:
        if key in found:
            continue
        if key in sparse and key not in texts_if_there:
            found[key] = cast("Column", sparse[key])
            continue
        column = [entry.get(key) for entry in entries]
        if None in column:
            column = [
                NULL if value is None and key in entry else value
                for entry, value in zip(entries, column, strict=True)
            ]
        if key in texts_if_there and set(map(type, column)) - {str, type(None)}:
            raise StructureError((key,), f"{key} is not a string")
        found[key] = column
    return found


def _sparse_columns(entries: list[_Object]) -> dict[str, SparseColumn]:
    """Return sparse columns for the keys that few entries have; full columns would fill the memory."""
    times = Counter(chain.from_iterable(entries))
    found = {key: SparseColumn(len(entries)) for key, number in times.items() if number * _FEW < len(entries)}
    for row, entry in enumerate(entries):
        for key in found.keys() & entry.keys():
            found[key].values[row] = NULL if entry[key] is None else entry[key]
    return found


def _other_keys(entries: list[_Object]) -> list[str]:
    """Return all keys: the keys of the first entry in its order, then other keys by name."""
    if not entries:
        return []
    first = list(entries[0])
    return first + sorted(set().union(*entries).difference(first))


def text(holder: _Object, key: str) -> str:
    """Return the string that an object must have under a key."""
    return texts([holder], key)[0]


def constant(holder: _Object, key: str, expected: str) -> None:
    """Refuse an object without the expected value under a key."""
    if holder.get(key) != expected:
        raise StructureError((key,), f'{key} is not "{expected}"')


def optional_text(holder: _Object, key: str) -> str | None:
    """Return the string under a key, ``None`` if the key is absent."""
    return text(holder, key) if key in holder else None


class SparseColumn(Sequence[Any]):
    """A column of a key that few devices have, with the interface of a list.

    Attributes:
        values: The values by row; all other values are ``None``.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self.values: dict[int, Any] = {}

    def __len__(self) -> int:
        """Return the number of devices."""
        return self._length

    def __getitem__(self, row: Any) -> Any:
        """Return the value of a row, or the values of a slice."""
        if isinstance(row, slice):
            return [self.values.get(one) for one in range(*row.indices(self._length))]
        return self.values.get(range(self._length)[row])

    def __iter__(self) -> Iterator[Any]:
        """Yield the values of all rows."""
        return map(self.values.get, range(self._length))

    def __eq__(self, other: object) -> bool:
        """Whether another column has the same values."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list has none


def rows_with(column: Sequence[Any]) -> list[int]:
    """Return the rows with a value in a column, ascending."""
    if isinstance(column, SparseColumn):
        return sorted(column.values)
    return [row for row, value in enumerate(column) if value is not None]
