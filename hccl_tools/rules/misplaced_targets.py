"""In which list of the table misplaced entries belong. This module declares no rules.

The number that is stated beside a list, an empty list and the ids in it show where an entry is missing. Nothing else
makes the place certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.rules.misplaced_entries import (
    Misplaced,
    Place,
    all_of,
    entries_of,
    kinds,
    misplaced,
    right_entries,
)
from hccl_tools.rules.misplaced_names import id_of, list_of, name_of, one_of, plural, titled
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.key_places import Kind
    from hccl_tools.rules.registry import Input


#: Entries whose ids each list has once, as a server its devices.
_ONCE_IN_EACH = frozenset({"device", "layer"})


class Group(NamedTuple):
    """Misplaced entries of one kind that are all in lists of one other kind."""

    subject: Input
    table_format: str
    found: list[Misplaced]

    @property
    def kind(self) -> Kind:
        """What the entries are."""
        return self.found[0].kind

    @property
    def place(self) -> Place:
        """Where the first of them is."""
        return self.found[0].place

    @property
    def is_list(self) -> bool:
        """Whether lists of such entries are in the place of entries."""
        return self.found[0].is_list

    @property
    def paths(self) -> frozenset[Path]:
        """Where they are."""
        return frozenset(one.place.path for one in self.found)

    @property
    def table(self) -> Kind:
        """The kind of the table itself."""
        return kinds(self.table_format)[0]

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries."""
        return [entry for one in self.found for entry in one.entries]

    def holder(self) -> Kind:
        """Return the kind of objects that have a list of such entries."""
        return next(one for one in kinds(self.table_format) if self.kind in one.lists.values())

    def key(self) -> str:
        """Return the key of that list."""
        return next(key for key, inner in self.holder().lists.items() if inner is self.kind)


def groups(subject: Input, table_format: str) -> list[Group]:
    """Return the misplaced entries of a table, by what they are and where they are."""
    found: dict[tuple[str, str, bool], list[Misplaced]] = {}
    for one in misplaced(subject, table_format):
        found.setdefault((one.place.kind.name, one.kind.name, one.is_list), []).append(one)
    return [Group(subject, table_format, own) for own in found.values()]


def lacks(group: Group, holder: Place, kind: Kind, key: str) -> int:
    """Return how many entries a list lacks by the number that is stated beside it; 0 if none is stated."""
    stated = holder.value.get(kind.count_key)
    number = read_uint(stated) if type(stated) is str else stated if type(stated) is int else None
    if number is None:
        return 0
    return number - len(right_entries(group.subject, group.table_format, holder, key))


def then(group: Group, holder: Place, kind: Kind, key: str, more: int) -> str:
    """Return what becomes of the stated number of entries when a list gets more of them, as the end of a hint."""
    value = holder.value.get(kind.count_key)
    if value is None:
        return ""
    if lacks(group, holder, kind, key) == more:
        return f"; {kind.count_key} is then right"
    number = len(right_entries(group.subject, group.table_format, holder, key)) + more
    shown = number if group.table_format == "2.0" or type(value) is int else f'"{number}"'
    return f', and write "{kind.count_key}": {shown}'


def how_to_move(group: Group) -> str:
    """Return the hint to move entries to the list of their kind."""
    holder, key, entries = group.holder(), group.key(), group.entries()
    them = "it" if len(entries) == 1 else "them"
    if group.is_list:
        them = "its entries" if len(group.found) == 1 else "their entries"
    level = next((level for level, one in enumerate(group.place.around) if one.kind is holder), None)
    if level is None:
        return _down(group, them)
    if len({one.place.around[level].path for one in group.found}) > 1:
        return f"move each to the {titled(key)} of the {holder.noun} in which it is"
    around = group.place.around[level]
    if (lacking := _lacking(group)) is not None and lacking.path != around.path:
        return f"move {them} into {list_of(lacking, key)}, whose {group.kind.count_key} is then right"
    if are_listed(group, around, key, entries):
        return f"delete {them}: {list_of(around, key)} has {'it' if len(entries) == 1 else 'them'} already"
    behind = _behind(group, level + 1)
    return (
        f"move {them} to {list_of(around, key)}{behind}{then(group, around, group.kind, key, len(entries))}"
    )


def _behind(group: Group, level: int) -> str:
    """Return behind which entry of their list entries belong that are in it, as a part of a hint."""
    inner = [one.place.around[level] for one in group.found if len(one.place.around) > level]
    if not inner or inner[0].kind is not group.kind:
        return ""
    if len({one.path for one in inner}) > 1:
        return f", each behind the {group.kind.noun} in which it is"
    return f", behind {name_of(inner[0])}"


def are_listed(group: Group, holder: Place, key: str, entries: list[Any]) -> bool:
    """Return whether a list has the same entries already; the one around a misplaced entry differs by that."""
    kind = holder.kind.lists[key]
    listed = {id_of(kind, one): one for one in right_entries(group.subject, group.table_format, holder, key)}
    outer = {id(inner.value) for one in group.found for inner in one.place.around}
    return all((seen := listed.get(id_of(kind, one))) == one or id(seen) in outer for one in entries)


def _down(group: Group, them: str) -> str:
    """Return the hint on entries that are in a list above their own."""
    holder, key, number = group.holder(), group.key(), len(group.entries())
    if (target := _target(group)) is not None:
        return f"move {them} into {list_of(target[0], key)}{target[1]}"
    holders = all_of(group.subject, group.table_format, holder)
    if group.is_list or not holders:
        keys = sorted(holder.required - {key}) or [holder.own_id]
        form = "{" + "".join(f'"{one}": ..., ' for one in keys) + f'"{key}": [...]}}'
        return f"{_wrap(group)}: {form}"
    it = "it" if number == 1 else "them"
    near = [one for one in holders if one.path < group.place.path]
    if near and _are_together(group):
        return f"move {it} into the {titled(key)} of {'its' if number == 1 else 'their'} {holder.noun}, probably {name_of(near[-1])} before {it}"
    whose = f"of its {holder.noun}" if number == 1 else f"of its own {holder.noun}"
    return f"move {'it' if number == 1 else 'each'} into the {titled(key)} {whose}"


def _wrap(group: Group) -> str:
    """Return what is to be written around entries whose object is missing."""
    noun, ids = group.holder().noun, [id_of(group.kind, one) for one in group.entries()]
    if group.is_list:
        return f"write {one_of(noun)} around {'it' if len(group.found) == 1 else 'each of them'}"
    if len(set(ids)) < len(ids):
        return f"write the {plural(noun)} around them, one for all entries of each"
    return f"write {one_of(noun)} around {'it' if len(ids) == 1 else 'them'}"


def _target(group: Group) -> tuple[Place, str] | None:
    """Return the object in whose list entries belong, and why, as the end of a hint; None if it is not certain."""
    kind, key, entries = group.kind, group.key(), group.entries()
    holders = all_of(group.subject, group.table_format, group.holder())
    if (lacking := _lacking(group)) is not None:
        return lacking, f", whose {kind.count_key} is then right"
    empty = [one for one in holders if one.value.get(key) == []]
    if len(empty) == 1:
        return empty[0], ", which has no other"
    ids = {id_of(kind, entry) for entry in entries}
    without = (
        holders
        if kind.noun not in _ONCE_IN_EACH
        else [one for one in holders if _lists_others(one, kind, key, ids)]
    )
    if len(without) != 1 or len(ids) < len(entries):
        return None
    if len(holders) > 1:
        return without[0], f", which does not list {'it' if len(entries) == 1 else 'them'}"
    return without[0], then(group, without[0], kind, key, len(entries))


def _lacking(group: Group) -> Place | None:
    """Return the only object whose list lacks as many entries as there are, by the number that is stated beside it."""
    kind, key, number = group.kind, group.key(), len(group.entries())
    if not kind.count_key:
        return None
    holders = all_of(group.subject, group.table_format, group.holder())
    found = [one for one in holders if lacks(group, one, kind, key) == number]
    return found[0] if len(found) == 1 else None


def _lists_others(holder: Place, kind: Kind, key: str, ids: set[str]) -> bool:
    """Return whether an object lists entries, and none with some ids."""
    own = {id_of(kind, one) for one in entries_of(holder.value, key)}
    return bool(own) and own.isdisjoint(ids)


def _are_together(group: Group) -> bool:
    """Return whether entries follow one another in one list, and none has the id of another one."""
    paths = [one.place.path for one in group.found]
    ids = [id_of(group.kind, one) for one in group.entries()]
    follow = all(one == (*paths[0][:-1], int(paths[0][-1]) + place) for place, one in enumerate(paths))
    return follow and len(set(ids)) == len(ids)


def emptied(group: Group) -> frozenset[Path]:
    """Return the path of the list that is empty because its entries are in a list above it."""
    if group.kind in (group.table, group.place.kind):
        return frozenset()
    holder, key = group.holder(), group.key()
    target = None if any(one.kind is holder for one in group.place.around) else _target(group)
    if target is None or target[0].value.get(key) != []:
        return frozenset()
    return frozenset([(*target[0].path, key)])
