"""Entries that are in a list of another level of the table than their own. This module declares no rules.

A bracket that closes too early or too late, and an entry or a table that is pasted at the wrong line, put an entry into
the list of another kind of entries. It lacks the keys of that kind, and writing them would make a wrong entry of it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.rules.key_places import kind_of_table
from hccl_tools.rules.registry import shared_each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.key_places import Kind
    from hccl_tools.rules.registry import Input


class Place(NamedTuple):
    """An object of a table, or its place, with the objects around it.

    Attributes:
        path: Its path.
        kind: What it must be at this place.
        value: What is there.
        around: The objects around it, the table first.
    """

    path: Path
    kind: Kind
    value: Any
    around: tuple[Place, ...]

    @property
    def list_key(self) -> str:
        """The key of the list that it is in."""
        return str(self.path[-2])


class Misplaced(NamedTuple):
    """An entry of a list that has the keys of another kind of object.

    Attributes:
        place: Where it is.
        kind: What it is; that of its list, if it is the list of another object.
        entries: The entry itself; the entries of the inner list, if a list is in the place of the entry.
    """

    place: Place
    kind: Kind
    entries: list[dict[str, Any]]

    @property
    def is_list(self) -> bool:
        """Whether a list of such entries is in the place of an entry."""
        return type(self.place.value) is list


@shared_each
def misplaced(subject: Input, table_format: str) -> list[Misplaced]:
    """Return the entries that are in a list of another kind; nothing that is in them."""
    table = kind_of_table(table_format)
    if table is None or not isinstance(subject.value, dict):
        return []
    # HCCL does not read the super_pod_list of a 1.0 table.
    unread = ("super_pod_list",) if table_format == "1.0" else ()
    return [
        one
        for place in _places(subject.value, table, unread)
        if (one := _misplaced(place, kinds(table_format))) is not None
    ]


@shared_each
def misplaced_paths(subject: Input, table_format: str) -> frozenset[Path]:
    """Return the paths of these entries."""
    return frozenset(one.place.path for one in misplaced(subject, table_format))


def is_in(path: Path, paths: frozenset[Path]) -> bool:
    """Return whether a path is one of some paths, or begins with one of them."""
    return bool(paths) and (path in paths or any(path[:end] in paths for end in range(2, len(path), 2)))


@cache
def kinds(table_format: str) -> tuple[Kind, ...]:
    """Return the kinds of objects of a format, the table first."""
    table = kind_of_table(table_format)
    found = [] if table is None else [table]
    for kind in found:
        found += kind.lists.values()
    return tuple(found)


def _places(value: dict[str, Any], table: Kind, unread: tuple[str, ...]) -> Iterator[Place]:
    """Yield the entries that lack a required key or are lists."""
    waiting = [Place((), table, value, ())]
    while waiting:
        holder = waiting.pop()
        below: list[Place] = []
        for key, kind in holder.kind.lists.items():
            entries, wanted = holder.value.get(key), kind.required
            if type(entries) is not list or key in unread:
                continue
            around = (*holder.around, holder)
            for index, entry in enumerate(entries):
                # An entry without another key may lack its own ones, and is of no other kind.
                is_whole = type(entry) is dict and (wanted <= entry.keys() or entry.keys() <= kind.keys)
                if is_whole and not kind.lists:
                    continue  # The devices: most of a table.
                if type(entry) in (dict, list):
                    place = Place((*holder.path, key, index), kind, entry, around)
                    if not is_whole:
                        yield place
                    if type(entry) is dict and not _others(entry, kind):
                        below.append(place)
        waiting += reversed(below)


def _others(entry: dict[str, Any], kind: Kind) -> bool:
    """Return whether an object has no key of its kind: what is in it says nothing about the table."""
    return kind.keys.isdisjoint(entry)


def _misplaced(place: Place, every: tuple[Kind, ...]) -> Misplaced | None:
    """Return an entry with the kind that it has, if that is another one than that of its list."""
    is_list = type(place.value) is list
    entries = [one for one in place.value if type(one) is dict] if is_list else [place.value]
    if not entries or len(entries) < len(place.value if is_list else entries):
        return None
    if place.kind.required <= entries[0].keys():
        return Misplaced(place, place.kind, entries) if is_list and _repeat(place, entries) else None
    kind = _kind_of(entries[0], place.kind, every)
    return None if kind is None else Misplaced(place, kind, entries)


def _repeat(place: Place, entries: list[dict[str, Any]]) -> bool:
    """Return whether the entries of an inner list have ids of entries beside it: it is the list of another object."""
    key, ids = place.kind.own_id, place.around[-1].value[place.list_key]
    beside = {str(one.get(key)) for one in ids if type(one) is dict}
    return not place.kind.lists and not beside.isdisjoint(str(one.get(key)) for one in entries)


def _kind_of(entry: dict[str, Any], expected: Kind, every: tuple[Kind, ...]) -> Kind | None:
    """Return the kind of which an object has keys, if it has none that only the expected kind has.

    A list of another kind in it tells more than such a key, unless that is its id.
    """
    best: tuple[int, int] | None = None
    found = None
    for kind in every:
        own = (kind.keys - expected.keys) & entry.keys()
        if kind is expected or not own:
            continue
        has_list = any(type(entry.get(key)) is list for key in kind.lists)
        expected_keys = (expected.keys - kind.keys) & entry.keys()
        if expected_keys and (not has_list or expected.own_id in expected_keys):
            continue
        is_named = kind.own_id in own or (bool(kind.required) and kind.required <= own)
        if not has_list and (kind is every[0] or not (is_named or len(own) > 1)):
            continue
        score = (len(kind.keys & entry.keys()), -len(kind.keys))
        if best is None or score > best:
            best, found = score, kind
    return found


def all_of(subject: Input, table_format: str, kind: Kind) -> list[Place]:
    """Return the objects of a kind that are in their places, in document order."""
    wrong, found = misplaced_paths(subject, table_format), list[Place]()
    waiting = [Place((), kinds(table_format)[0], subject.value, ())]
    while waiting:
        holder = waiting.pop()
        if holder.kind is kind:
            found.append(holder)
            continue
        below = [
            Place((*holder.path, key, index), inner, entry, (*holder.around, holder))
            for key, inner in holder.kind.lists.items()
            for index, entry in enumerate(entries_of(holder.value, key))
            if type(entry) is dict and (*holder.path, key, index) not in wrong
        ]
        waiting += reversed(below)
    return found


def right_entries(subject: Input, table_format: str, holder: Place, key: str) -> list[Any]:
    """Return the entries of a list in an object that are not misplaced."""
    wrong = misplaced_paths(subject, table_format)
    entries = enumerate(entries_of(holder.value, key))
    return [one for index, one in entries if (*holder.path, key, index) not in wrong]


def entries_of(value: Any, key: str) -> list[Any]:
    """Return the entries of a list in an object; none if it is not one."""
    found = value.get(key) if type(value) is dict else None
    return found if type(found) is list else []
