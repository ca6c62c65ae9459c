"""What is said about entries that are in a list of another level of the table. This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.document import joined_tables
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.rules.misplaced_entries import (
    Misplaced,
    Place,
    all_of,
    entries_of,
    kinds,
    misplaced_paths,
    required,
)
from hccl_tools.rules.registry import Finding, Input
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.key_places import Kind

#: The characters of an id that a sentence shows, and the digits of a number.
_SHOWN, _LONGEST_NUMBER = 64, 9


def finding(subject: Input, table_format: str, found: list[Misplaced]) -> Finding:
    """Return the finding on entries of one kind that are all in lists of one other kind."""
    first = found[0]
    if first.kind is kinds(table_format)[0]:
        return _whole_tables(subject, table_format, found)
    if first.kind is first.place.kind:
        return _other_lists(subject, table_format, found)
    holder = _holder(first.kind, table_format)
    entries = [entry for one in found for entry in one.entries]
    who, are = _named(first.kind, entries), len(entries) > 1
    if first.is_list:
        who, are = f"{'a list' if len(found) == 1 else f'{len(found)} lists'} of {who}", len(found) > 1
    key = _list_key(holder, first.kind)
    right = key if holder is kinds(table_format)[0] else f"the {_titled(key)} of {_a(holder.noun)}"
    return Finding(
        f"{who} {'are' if are else 'is'} in {_where(found)}, not in {right}",
        first.place.path,
        _move(subject, table_format, found, holder),
    )


def _where(found: list[Misplaced]) -> str:
    """Return the list in which entries are, or what such lists are called."""
    place = found[0].place
    if len({one.place.path[:-1] for one in found}) == 1:
        return _list_of(place.around[-1], place.list_key)
    return f"the {_titled(place.list_key)} of {_plural(place.around[-1].kind.noun)}"


def _holder(kind: Kind, table_format: str) -> Kind:
    """Return the kind of objects that have a list of entries of a kind."""
    return next(one for one in kinds(table_format) if any(inner is kind for inner in one.lists.values()))


def _list_key(holder: Kind, kind: Kind) -> str:
    return next(key for key, inner in holder.lists.items() if inner is kind)


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _list_of(holder: Place, key: str) -> str:
    """Return a list of a table as a phrase."""
    return key if not holder.path else f"the {_titled(key)} of {_place_name(holder)}"


def _titled(key: str) -> str:
    return f'"{key}"' if key.endswith("list") else f'"{key}" list'


def _id(kind: Kind, entry: Any) -> str:
    """Return the id of an entry as text; "" if it has none."""
    for key in (kind.own_id, "server_id"):
        value = entry.get(key) if type(entry) is dict and key in kind.keys else None
        if type(value) in (str, int) and value != "":
            return str(value)[:_SHOWN]
    return ""


def _name(kind: Kind, entry: Any) -> str:
    """Return the name of an entry, such as ``device 3`` or ``server "10.0.0.1"``."""
    name = _id(kind, entry)
    return f"{kind.noun} {_quoted_id(kind, name)}" if name else _a(kind.noun)


def _place_name(place: Place) -> str:
    """Return the name of an object of a table; layers have the same names in all ranks."""
    outer = f" of {_place_name(place.around[-1])}" if place.kind.noun == "layer" else ""
    return f"{_name(place.kind, place.value)}{outer}"


def _quoted_id(kind: Kind, name: str) -> str:
    return name if kind.noun in ("device", "rank", "layer") and name.isdecimal() else quoted(name)


def _named(kind: Kind, entries: list[dict[str, Any]]) -> str:
    """Return the names of entries of a kind as a phrase."""
    names = [_id(kind, entry) for entry in entries]
    if not all(names):
        return _a(kind.noun) if len(names) == 1 else count(len(names), kind.noun, _plural(kind.noun))
    noun = kind.noun if len(names) == 1 else _plural(kind.noun)
    if kind.noun in ("device", "rank") and all(
        name.isdecimal() and len(name) < _LONGEST_NUMBER for name in names
    ):
        numbers = sorted(map(int, names))
        if len(set(numbers)) == len(numbers):
            return f"{noun} {fold(numbers)}"
        return f"{len(numbers)} {noun}"
    return f"{noun} {and_more([_quoted_id(kind, name) for name in names])}"


def _plural(noun: str) -> str:
    if noun == "server of a super pod":
        return "servers of a super pod"
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def _whole_tables(subject: Input, table_format: str, found: list[Misplaced]) -> Finding:
    """Return the finding on whole tables that are entries of a list."""
    table, first = found[0].kind, found[0]
    tables = [entry for one in found for entry in one.entries]
    key = next(key for key in table.lists if type(tables[0].get(key)) is list)
    is_one = len(found) == 1
    what = f"entry {first.place.path[-1]} of {_list_of(first.place.around[-1], first.place.list_key)}"
    if not is_one:
        what = f"{len(found)} entries of {first.place.list_key}"
    said = f"{what} {'is a whole table' if is_one else 'are whole tables'}"
    return Finding(said, first.place.path, _of_tables(subject, table_format, found, tables, key))


def _of_tables(
    subject: Input, table_format: str, found: list[Misplaced], tables: list[dict[str, Any]], key: str
) -> str:
    """Return the hint on whole tables in a list; ``key`` is the list of their entries."""
    place, table = found[0].place, found[0].kind
    it, its = ("it", "its") if len(found) == 1 else ("them", "their")
    inner = [entry for one in tables for entry in entries_of(one, key)]
    own = _right_entries(subject, table_format, place.around[0], table.lists[key])
    many = "entry" if len(inner) == 1 else f"{len(inner)} entries"
    if _are_listed(place, table.lists[key], own, inner):
        return f'delete {it}: the table lists the {many} of {its} "{key}" already'
    is_beside = place.kind is table.lists[key]
    hint = (
        f'put the {many} of {its} "{key}" in {its} place'
        if is_beside
        else f'move the {many} of {its} "{key}" to {key} of the table itself'
    )
    for other in table.lists:
        if other != key and any(entries_of(one, other) for one in tables):
            hint += f', {"move " if is_beside else ""}those of {its} "{other}" to {other} of the table itself'
    hint += "" if is_beside else f", and delete {it} here"
    hint += _then(subject, table_format, place.around[0], table.lists[key], len(inner))
    return hint + (joined_tables.ranks_on([*own, *inner]) if key == "server_list" else "")


def _are_listed(place: Place, kind: Kind, own: list[Any], inner: list[Any]) -> bool:
    """Return whether a table lists the entries of another one that is in it; the entry around that one differs."""
    listed = {_id(kind, one): one for one in own}
    around = place.around[1].value if len(place.around) > 1 else None
    return all(listed.get(_id(kind, one)) in ([one] if around is None else [one, around]) for one in inner)


def _right_entries(subject: Input, table_format: str, holder: Place, kind: Kind) -> list[Any]:
    """Return the entries of the list of a kind in an object that are not misplaced."""
    wrong, key = misplaced_paths(subject, table_format), _list_key(holder.kind, kind)
    entries = entries_of(holder.value, key)
    return [one for index, one in enumerate(entries) if (*holder.path, key, index) not in wrong]


def _number(value: Any) -> int | None:
    return read_uint(value) if type(value) is str else value if type(value) is int else None


def _lacks(subject: Input, table_format: str, holder: Place, kind: Kind) -> int:
    """Return how many entries a list lacks by the number that is stated beside it; 0 if no number is stated."""
    stated = _number(holder.value.get(kind.count_key))
    return 0 if stated is None else stated - len(_right_entries(subject, table_format, holder, kind))


def _then(subject: Input, table_format: str, holder: Place, kind: Kind, more: int) -> str:
    """Return what becomes of the stated number of entries when some are added to a list, as the end of a hint."""
    value = holder.value.get(kind.count_key)
    if value is None:
        return ""
    if _lacks(subject, table_format, holder, kind) == more:
        return f"; {kind.count_key} is then right"
    number = len(_right_entries(subject, table_format, holder, kind)) + more
    shown = number if table_format == "2.0" or type(value) is int else f'"{number}"'
    return f', and write "{kind.count_key}": {shown}'


def _move(subject: Input, table_format: str, found: list[Misplaced], holder: Kind) -> str:
    """Return the hint to move entries to the list of their kind."""
    first, number = found[0], sum(len(one.entries) for one in found)
    key, them = _list_key(holder, first.kind), "it" if number == 1 else "them"
    if first.is_list:
        them = "its entries" if len(found) == 1 else "their entries"
    level = next((level for level, one in enumerate(first.place.around) if one.kind is holder), None)
    if level is None:
        return f"move {them} {_into(subject, table_format, found, holder)}"
    if len({_around(one, level).path for one in found}) > 1:
        return f"move each to the {_titled(key)} of the {holder.noun} in which it is"
    behind = ""
    inner = {_around(one, level + 1).path for one in found if len(one.place.around) > level + 1}
    if inner and (own := _around(first, level + 1)).kind is first.kind:
        behind = (
            f", behind {_place_name(own)}"
            if len(inner) == 1
            else f", each behind the {own.kind.noun} in which it is"
        )
    then = _then(subject, table_format, _around(first, level), first.kind, number)
    return f"move {them} to {_list_of(_around(first, level), key)}{behind}{then}"


def _around(one: Misplaced, level: int) -> Place:
    return one.place.around[level]


def _into(subject: Input, table_format: str, found: list[Misplaced], holder: Kind) -> str:
    """Return where entries belong that are in a list above their own."""
    kind, number = found[0].kind, sum(len(one.entries) for one in found)
    key, it = _list_key(holder, kind), "it" if number == 1 else "them"
    if (target := _target(subject, table_format, found, holder)) is not None:
        return f"into {_list_of(target[0], key)}{target[1]}"
    holders = all_of(subject, table_format, holder)
    if not holders:
        return f'into the {_titled(key)} of {_a(holder.noun)}, which is missing: {{"{holder.own_id}": ..., "{key}": [...]}}'
    near = [one for one in holders if one.path < found[0].place.path]
    probably = f", probably {_place_name(near[-1])} before {it}" if near and _are_together(found) else ""
    return f"into the {_titled(key)} of {'its' if it == 'it' else 'their'} {holder.noun}{probably}"


def _target(
    subject: Input, table_format: str, found: list[Misplaced], holder: Kind
) -> tuple[Place, str] | None:
    """Return the object in whose list entries belong, and why, as the end of a hint; None if it is not certain."""
    kind, entries = found[0].kind, [entry for one in found for entry in one.entries]
    key, it = _list_key(holder, kind), "it" if len(entries) == 1 else "them"
    holders = all_of(subject, table_format, holder)
    lacking = [
        one for one in holders if kind.count_key and _lacks(subject, table_format, one, kind) == len(entries)
    ]
    if len(lacking) == 1:
        return lacking[0], f", whose {kind.count_key} is then right"
    empty = [one for one in holders if not entries_of(one.value, key)]
    if len(empty) == 1:
        return empty[0], ", which has no other"
    ids = {_id(kind, entry) for entry in entries}
    without = [one for one in holders if not kind.lists and _has_others(one, kind, key, ids)]
    if len(without) == 1 and len(holders) > 1:
        return without[0], f", which does not list {it}"
    return (
        (holders[0], _then(subject, table_format, holders[0], kind, len(entries)))
        if len(holders) == 1
        else None
    )


def emptied(subject: Input, table_format: str, found: list[Misplaced]) -> frozenset[Path]:
    """Return the path of the list that is empty because its entries are in a list above it."""
    first = found[0]
    if first.kind is kinds(table_format)[0] or first.kind is first.place.kind:
        return frozenset()
    holder = _holder(first.kind, table_format)
    if any(one.kind is holder for one in first.place.around):
        return frozenset()
    target = _target(subject, table_format, found, holder)
    key = _list_key(holder, first.kind)
    is_empty = target is not None and key in target[0].value and not entries_of(target[0].value, key)
    return frozenset([(*target[0].path, key)]) if target is not None and is_empty else frozenset()


def _has_others(holder: Place, kind: Kind, key: str, ids: set[str]) -> bool:
    """Return whether an object lists entries, and none with some ids."""
    own = {_id(kind, one) for one in entries_of(holder.value, key)}
    return bool(own) and own.isdisjoint(ids)


def _are_together(found: list[Misplaced]) -> bool:
    """Return whether entries follow one another in one list."""
    paths = [one.place.path for one in found]
    return all(one == (*paths[0][:-1], int(paths[0][-1]) + place) for place, one in enumerate(paths))


def _other_lists(subject: Input, table_format: str, found: list[Misplaced]) -> Finding:
    """Return the finding on lists in the list of an object that are those of other objects of its kind."""
    place, is_one = found[0].place, len(found) == 1
    owner, key = place.around[-1], place.list_key
    what = (
        f"entry {place.path[-1]} of {_list_of(owner, key)} is"
        if is_one
        else f"{len(found)} entries of {_titled(key)}s are"
    )
    noun = owner.kind.noun
    again = _named(place.kind, found[0].entries)
    keys = "".join(f'"{one}": ..., ' for one in sorted(required(table_format)[owner.kind.name] - {key}))
    holder = owner.around[-1]
    where = (
        _list_of(holder, owner.list_key)
        if is_one
        else f"the {_titled(owner.list_key)} in which its {noun} is"
    )
    then = _then(subject, table_format, holder, owner.kind, 1) if is_one else ""
    whose = f"the {_titled(key)} of another {noun}" if is_one else f"those of other {_plural(noun)}"
    are = "is" if len(found[0].entries) == 1 else "are"
    return Finding(
        f"{what} {whose}: {again} {are} there and beside it",
        place.path,
        f'write {"it" if is_one else "each"} as an entry of {where}: {{{keys}"{key}": [...]}} with the values of that {noun}{then}',
    )
