"""The findings on entries that are in a list of another level of the table. This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.document import joined_tables
from hccl_tools.rules.misplaced_entries import entries_of, right_entries
from hccl_tools.rules.misplaced_names import list_of, named, one_of, plural, titled
from hccl_tools.rules.misplaced_targets import are_listed, how_to_move, then
from hccl_tools.rules.registry import Finding

if TYPE_CHECKING:
    from hccl_tools.rules.misplaced_entries import Place
    from hccl_tools.rules.misplaced_targets import Group


def finding(group: Group) -> Finding:
    """Return the finding on entries of one kind that are all in lists of one other kind."""
    if group.kind is group.table:
        return _of_tables(group)
    if group.kind is group.place.kind:
        return _of_lists(group)
    entries, number = group.entries(), len(group.found)
    who, are = named(group.kind, entries), len(entries) > 1
    if group.is_list:
        who, are = f"{'a list' if number == 1 else f'{number} lists'} with {who}", number > 1
    holder, key = group.holder(), group.key()
    right = key if holder is group.table else f"the {titled(key)} of {one_of(holder.noun)}"
    return Finding(
        f"{who} {'are' if are else 'is'} in {_where(group)}, not in {right}",
        group.place.path,
        how_to_move(group),
    )


def _where(group: Group) -> str:
    """Return the list in which entries are, or what such lists are called."""
    place = group.place
    if len({one.place.path[:-1] for one in group.found}) == 1:
        return list_of(place.around[-1], place.list_key)
    return f"the {titled(place.list_key)} of {plural(place.around[-1].kind.noun)}"


def _of_tables(group: Group) -> Finding:
    """Return the finding on whole tables that are entries of a list."""
    place, number = group.place, len(group.found)
    what = f"entry {int(place.path[-1]) + 1} of {list_of(place.around[-1], place.list_key)} is a whole table"
    if number > 1:
        what = f"{number} entries of {_where(group)} are whole tables"
    tables = group.entries()
    key = next(key for key in group.table.lists if type(tables[0].get(key)) is list)
    return Finding(what, place.path, _how_to_join(group, tables, key))


def _how_to_join(group: Group, tables: list[dict[str, Any]], key: str) -> str:
    """Return the hint on whole tables in a list; ``key`` is the list of their entries."""
    place, kind = group.place, group.table.lists[key]
    it, its = ("it", "its") if len(group.found) == 1 else ("them", "their")
    inner = [entry for one in tables for entry in entries_of(one, key)]
    own = right_entries(group.subject, group.table_format, place.around[0], key)
    many = "entry" if len(inner) == 1 else f"{len(inner)} entries"
    if are_listed(group, place.around[0], key, inner):
        return f'delete {it}: the table lists the {many} of {its} "{key}" already'
    is_beside = place.kind is kind
    hint = f'move the {many} of {its} "{key}" to {key} of the table itself'
    if is_beside:
        hint = f'put the {many} of {its} "{key}" in {its} place'
    for other in group.table.lists:
        if other != key and any(entries_of(one, other) for one in tables):
            hint += f', {"move " if is_beside else ""}those of {its} "{other}" to {other} of the table itself'
    hint += "" if is_beside else f", and delete {it} here"
    hint += then(group, place.around[0], kind, key, len(inner))
    return hint + (joined_tables.ranks_on([*own, *inner]) if key == "server_list" else "")


def _of_lists(group: Group) -> Finding:
    """Return the finding on lists in the list of an object that are those of other objects of its kind."""
    place, number, key = group.place, len(group.found), group.place.list_key
    owner: Place = place.around[-1]
    noun, holder = owner.kind.noun, owner.around[-1]
    keys = "".join(f'"{one}": ..., ' for one in sorted(owner.kind.required - {key}))
    form = f'{{{keys}"{key}": [...]}} with the values of that {noun}'
    if number > 1:
        return Finding(
            f"{number} entries of the {titled(key)}s are those of other {plural(noun)}", place.path,
            f"write each as an entry of the {titled(owner.list_key)} in which its {noun} is: {form}",
        )  # fmt: skip
    inner = group.found[0].entries
    again = f"{named(place.kind, inner)} {'is' if len(inner) == 1 else 'are'} there and beside it"
    return Finding(
        f"entry {int(place.path[-1]) + 1} of {list_of(owner, key)} is the {titled(key)} of another {noun}: {again}", place.path,
        f"write it as an entry of {list_of(holder, owner.list_key)}: {form}"
        f"{then(group, holder, owner.kind, owner.list_key, 1)}",
    )  # fmt: skip
