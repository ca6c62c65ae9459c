"""Values of one rank of a 2.0 table that are exchanged among themselves, or mistyped. This module declares no rules."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.likeness import is_near
from hccl_tools.notation.phrases import and_more
from hccl_tools.records import NamedTuple
from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.registry import Finding, Subject, shared
from hccl_tools.rules.value_order import order_of
from hccl_tools.table.addresses import AF_INET6, V2_CHECKS, inet_ntop, packed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The most ranks with such addresses, beside which the others show an order, and the most values that a hint names.
_MOST_RANKS, _MOST_NAMED = 2, 16
#: The fewest other ranks that agree on the ports of one that does not.
_LEAST_OTHERS = 3
#: The bytes of an address by its type.
_BYTES = {"EID": 16, "IPV4": 4, "IPV6": 16}


class Outside(NamedTuple):
    """An address outside the order of those of the other ranks at its place.

    Attributes:
        path: Its path in the rank.
        number: The address as a number.
        expected: The address that it has by the order of the others.
    """

    path: tuple[Any, ...]
    number: int
    expected: int


def within_ranks(subject: Subject, single: dict[tuple[int, int], list[Outside]]) -> Iterator[Finding]:
    """Yield the findings on addresses that no other rank has by the order.

    Args:
        single: These addresses by rank and layer, in the order of the file.
    """
    if len({row for row, _ in single}) > _MOST_RANKS:
        return
    for (row, _), found in _by_exchange(single).items():
        levels = subject.table.column("level_list")[row]
        indexes = list(dict.fromkeys(one.path[1] for one in found))
        if not all(_has_usual_ports(subject, row, index) for index in indexes):
            continue
        layer = " and ".join(str(levels[index]["net_layer"]) for index in indexes)
        entries = [levels[one.path[1]]["rank_addr_list"][one.path[3]] for one in found]
        texts = [_text(entry, one.expected) for entry, one in zip(entries, found, strict=True)]
        known = [text for text in texts if text is not None]
        if len(known) < len(found):
            continue
        node = subject.table.servers[subject.table.server_of_row[row]].server_id[:64]
        gen = f"`hccl-tools gen` on {shown_host(node)} prints the addresses of {subject.rank_name(row)}"
        if len(found) > 1 and _are_exchanged(found):
            what = "exchanged" if len(found) == 2 else "mixed up"
            yield Finding(
                f"the addresses of {subject.rank_name(row)} in {'layer' if len(indexes) == 1 else 'layers'} {layer} do not follow the order "
                f"of all others: {len(found)} of them are probably {what}",
                ("rank_list", row, *found[0].path),
                f"{gen}: by the order of the others these are {and_more([quoted(text) for text in known], _MOST_NAMED)}",
                tuple(Related(("rank_list", row, *one.path), "and here") for one in found[1:]),
            )
        elif len(found) == 1 and len(single) <= _MOST_RANKS and is_near(entries[0]["addr"], known[0]):
            yield Finding(
                f"address {quoted(entries[0]['addr'])} of {subject.rank_name(row)} in layer {layer} does not follow the "
                "order of all others: it was probably mistyped",
                ("rank_list", row, *found[0].path),
                f"{gen}: by the order of the others it is {quoted(known[0])}",
            )


def _are_exchanged(found: list[Outside]) -> bool:
    return sorted(one.number for one in found) == sorted(one.expected for one in found)


def _by_exchange(single: dict[tuple[int, int], list[Outside]]) -> dict[tuple[int, int], list[Outside]]:
    """Return the addresses of a rank with those of all its layers together, if they are exchanged between layers."""
    together: dict[int, list[Outside]] = {}
    for (row, _), found in single.items():
        together.setdefault(row, []).extend(found)
    between = {
        row
        for row, found in together.items()
        if _are_exchanged(found)
        and not all(_are_exchanged(own) for (one, _), own in single.items() if one == row)
    }
    alone = {at: found for at, found in single.items() if at[0] not in between}
    return alone | {(row, 0): together[row] for row in sorted(between)}


def _has_usual_ports(subject: Subject, row: int, index: int) -> bool:
    """Return whether a rank has its ports in the order of another rank: an address moves with its entry."""
    levels = subject.table.column("level_list")
    other = levels[row - 1 if row else row + 1][index]["rank_addr_list"]
    own = levels[row][index]["rank_addr_list"]
    return [entry["ports"] for entry in own] == [entry["ports"] for entry in other]


def _text(entry: dict[str, Any], number: int) -> str | None:
    """Return a number as an address of the type of an entry; None if it is too high or low for one."""
    size = _BYTES.get(entry["addr_type"], 0)
    if not 0 <= number < 1 << 8 * size:
        return None
    if entry["addr_type"] == "EID":
        return f"{number:032x}"
    raw = number.to_bytes(size, "big")
    return inet_ntop(AF_INET6, raw) if entry["addr_type"] == "IPV6" else ".".join(map(str, raw))


def number_of(entry: dict[str, Any]) -> int | None:
    """Return an address as a number; None if it is not an address of its type."""
    kind, text = entry["addr_type"], entry["addr"]
    if kind not in V2_CHECKS or not V2_CHECKS[kind](text):
        return None
    return int(text, 16) if kind == "EID" else int.from_bytes(packed(text) or b"", "big")


#: A place in the levels of a rank: the index of the level, and that of the address in it.
_Place = tuple[int, int]


class Exchanged(NamedTuple):
    """Values of a rank that are those of its other addresses on all other ranks.

    Attributes:
        keys: The keys of these values: ports, plane_id or both.
        right: For each place the entry that another rank has there.
        are_whole: Whether the addresses moved with these values.
        is_known: Whether the order of the addresses shows this.
    """

    keys: tuple[str, ...]
    right: dict[_Place, dict[str, Any]]
    are_whole: bool
    is_known: bool = True


@shared
def exchanged_ports(subject: Subject) -> dict[int, Exchanged]:
    """Return the few ranks whose ports or planes are exchanged among their addresses, as all other ranks show."""
    column = subject.table.column("level_list")
    shapes = Counter(
        tuple((level["net_layer"], len(level["rank_addr_list"])) for level in levels) for levels in column
    )
    if len(shapes) != 1 or len(column) <= _LEAST_OTHERS:
        return {}
    kinds = Counter(map(_values, column))
    usual, number = kinds.most_common(1)[0]
    odd = [row for row, levels in enumerate(column) if _values(levels) != usual]
    if (
        not odd
        or len(odd) > _MOST_RANKS
        or number < len(column) - len(odd)
        or number < _LEAST_OTHERS * len(odd)
    ):
        return {}
    model = column[next(row for row in range(len(column)) if row not in odd)]
    found = {row: _exchanged(subject, row, model) for row in odd}
    return {row: one for row, one in found.items() if one is not None}


def _values(levels: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Return the ports and planes of a rank."""
    return tuple(
        (tuple(entry["ports"]), entry.get("plane_id"))
        for level in levels
        for entry in level["rank_addr_list"]
    )


def _exchanged(subject: Subject, row: int, model: list[dict[str, Any]]) -> Exchanged | None:
    """Return the values of a rank that are exchanged among its addresses; None if others differ from the usual ones."""
    levels = subject.table.column("level_list")[row]
    pairs = {
        (index, place): (entry, right)
        for index, (level, usual) in enumerate(zip(levels, model, strict=True))
        for place, (entry, right) in enumerate(
            zip(level["rank_addr_list"], usual["rank_addr_list"], strict=True)
        )
    }
    keys = tuple(
        key
        for key in ("ports", "plane_id")
        if any(one.get(key) != model_entry.get(key) for one, model_entry in pairs.values())
    )
    at = [
        place for place, (one, other) in pairs.items() if any(one.get(key) != other.get(key) for key in keys)
    ]
    for key in keys:
        own, usual = ([str(pairs[place][side].get(key)) for place in at] for side in (0, 1))
        if sorted(own) != sorted(usual):
            return None
    right = {place: pairs[place][1] for place in at}
    outside = [_is_outside(subject, row, place) for place in at]
    if all(one is None for one in outside):
        is_in_one = len({index for index, _ in at}) == 1
        return None if is_in_one else Exchanged(keys, right, are_whole=False, is_known=False)
    are_whole = all(outside)
    if any(outside) and (not are_whole or len({index for index, _ in at}) == 1):
        return None  # The entries of a level may stand in any order.
    return Exchanged(keys, right, are_whole=are_whole)


def _is_outside(subject: Subject, row: int, place: _Place) -> bool | None:
    """Return whether an address does not follow the order of those of the other ranks; None if these follow none."""
    column = subject.table.column("level_list")
    numbers = [number_of(levels[place[0]]["rank_addr_list"][place[1]]) for levels in column]
    order = (
        None if None in numbers else order_of(subject, [number or 0 for number in numbers], is_steady=True)
    )
    return None if order is None else row in order.expected


def exchanged_ports_finding(subject: Subject, row: int) -> Finding:
    """Return the finding on a rank of ``exchanged_ports``."""
    found, levels = exchanged_ports(subject)[row], subject.table.column("level_list")[row]
    places = list(found.right)
    entries = [levels[index]["rank_addr_list"][place] for index, place in places]
    layers = [levels[index]["net_layer"] for index, _ in places]
    node = subject.table.servers[subject.table.server_of_row[row]].server_id[:64]
    paths = [
        ("rank_list", row, "level_list", index, "rank_addr_list", place, found.keys[0])
        for index, place in places
    ]
    what = " and ".join("ports" if key == "ports" else f"{key}s" for key in found.keys)
    which = [
        f"{quoted(entry['addr'])} in layer {layer}" for entry, layer in zip(entries, layers, strict=True)
    ]
    related = tuple(Related(path, "and here") for path in paths[1:_MOST_NAMED])
    gen = f"`hccl-tools gen` on {shown_host(node)} prints the entries of {subject.rank_name(row)}"
    if not found.is_known:
        gen += "; if it prints other addrs at these places, exchange the whole entries"
    if found.are_whole:
        return Finding(
            f"the entries of {_listed(which)} of {subject.rank_name(row)} are in each other's place, as all other ranks show",
            paths[0],
            f"exchange these entries, each with its addr, ports and plane_id: {gen}",
            related,
        )
    right = [
        f"{', '.join(_written(key, one[key]) for key in found.keys if key in one)} for {where}"
        for where, one in zip(which, found.right.values(), strict=True)
    ]
    return Finding(
        f"{subject.rank_name(row)} has exchanged the {what} of {len(places)} addresses: {_listed(which)} have those that all other ranks "
        "have in each other's place",
        paths[0],
        f"leave each addr, and write {and_more(right, _MOST_NAMED)}, as the other ranks have: {gen}",
        related,
    )


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(parts) if len(parts) == 2 else and_more(parts)


def _written(key: str, value: Any) -> str:
    text = f"[{', '.join(quoted(str(one)) for one in value)}]" if type(value) is list else quoted(str(value))
    return f'"{key}": {text}'
