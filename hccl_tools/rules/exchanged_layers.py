"""Ranks of a 2.0 table whose levels have exchanged their net_layer. This module declares no rules.

The number is wrong, and the type, the network instance and the addresses are right. Rules that compare a level with the
ranks of its layer would report each of them, and following one of them would move the addresses to the wrong layer.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import ordinal
from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import Finding, shared

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

#: The most levels of a rank that are compared in pairs.
_MOST_LEVELS = 8


class _Layers(NamedTuple):
    """What the levels of most ranks look like.

    Attributes:
        usual: The net_type and the number of addresses of most levels, by layer.
        names: The network instances by layer, of the ranks whose levels are all as usual.
    """

    usual: dict[int, tuple[Any, ...]]
    names: dict[int, set[str]]

    def is_of(self, level: dict[str, Any], layer: int) -> bool:
        """Return whether a level looks like those of a layer; its name may be one that no layer has."""
        others = (self.names[one] for one in self.names if one != layer)
        name = level["net_instance_id"]
        return _look(level) == self.usual[layer] and (
            name in self.names[layer] or not any(name in one for one in others)
        )


@shared
def exchanged_layers(subject: Subject) -> dict[int, tuple[int, int]]:
    """Return the ranks of which two levels look like each other's layer, with the places of the two levels, by row."""
    column = subject.table.column("level_list")
    layers = Counter(tuple(sorted(_numbers(levels))) for levels in column)
    usual, number = layers.most_common(1)[0]
    if 2 * number <= len(column) or not 2 <= len(set(usual)) == len(usual) <= _MOST_LEVELS:
        return {}
    looks: dict[int, Counter[tuple[Any, ...]]] = {layer: Counter() for layer in usual}
    whole = {row for row, levels in enumerate(column) if tuple(sorted(_numbers(levels))) == usual}
    for row in whole:
        for layer, level in zip(_numbers(column[row]), column[row], strict=True):
            looks[layer][_look(level)] += 1
    known = {layer: found.most_common(1)[0] for layer, found in looks.items()}
    if any(2 * times <= len(column) for _, times in known.values()):
        return {}
    if any(layer and look[0] == "TOPO_FILE_DESC" for layer, (look, _) in known.items()):
        return {}  # Most ranks are wrong: HCCL has no such instance on a layer from 1 on.
    found = _Layers({layer: look for layer, (look, _) in known.items()}, {layer: set() for layer in usual})
    odd = [row for row in whole if not _is_usual(found, column[row])]
    for row in whole.difference(odd):
        for layer, level in zip(_numbers(column[row]), column[row], strict=True):
            found.names[layer].add(level["net_instance_id"])
    pairs = {row: _exchanged(found, column[row]) for row in sorted(odd)}
    return {row: pair for row, pair in pairs.items() if pair is not None}


@shared
def out_of_order(subject: Subject) -> frozenset[int]:
    """Return the ranks of ``exchanged_layers`` whose layers do not ascend, so that HCCL refuses the table."""
    column = subject.table.column("level_list")
    return frozenset(
        row for row in exchanged_layers(subject) if (own := _numbers(column[row])) != sorted(own)
    )


def exchanged_finding(subject: Subject, row: int) -> Finding:
    """Return the finding on a rank of ``exchanged_layers``."""
    levels = subject.table.column("level_list")[row]
    places = exchanged_layers(subject)[row]
    first, second = (levels[place]["net_layer"] for place in places)
    paths = [("rank_list", row, "level_list", place, "net_layer") for place in places]
    order = ", and put the level with the lower number first" if first < second else ""
    return Finding(
        f"{subject.rank_name(row)} has exchanged the net_layer of two levels: the one with {first} has the net_type and the addresses "
        f"of layer {second} of the other ranks, and the one with {second} those of layer {first}",
        paths[1] if first > second else paths[0],
        f'exchange only the two numbers: write "net_layer": {second} in the {ordinal(places[0] + 1)} level of the rank and "net_layer": {first} in '
        f"the {ordinal(places[1] + 1)}; leave the rest of both levels as it is{order}",
        (Related(paths[0] if first > second else paths[1], "the other one here"),),
    )


@shared
def exchanged_names(subject: Subject) -> dict[int, tuple[int, int]]:
    """Return the few ranks of which two levels have the network instances of each other's layer, with their places, by row."""
    column = subject.table.column("level_list")
    layers = Counter(tuple(_numbers(levels)) for levels in column)
    if len(layers) != 1 or len(next(iter(layers))) > _MOST_LEVELS:
        return {}
    names = [Counter(level["net_instance_id"] for level in levels) for levels in zip(*column, strict=True)]
    found: dict[int, tuple[int, int]] = {}
    for row, levels in enumerate(column):
        own = [level["net_instance_id"] for level in levels]
        for one, other in combinations(range(len(own)), 2):
            are_of_others = names[one][own[other]] > 1 and names[other][own[one]] > 1
            if are_of_others and names[one][own[one]] == names[other][own[other]] == 1:
                found[row] = one, other
    return found if 3 * len(found) <= len(column) else {}


def exchanged_names_finding(subject: Subject, row: int) -> Finding:
    """Return the finding on a rank of ``exchanged_names``."""
    levels = subject.table.column("level_list")[row]
    places = exchanged_names(subject)[row]
    first, second = (levels[place] for place in places)
    paths = [("rank_list", row, "level_list", place, "net_instance_id") for place in places]
    return Finding(
        f"{subject.rank_name(row)} has exchanged the net_instance_id of two levels: {quoted(first['net_instance_id'])} is that of layer "
        f"{second['net_layer']} of the other ranks, and {quoted(second['net_instance_id'])} that of layer {first['net_layer']}",
        paths[0],
        f'exchange only the two names: write "net_instance_id": {quoted(second["net_instance_id"])} in layer {first["net_layer"]} of the '
        f'rank and "net_instance_id": {quoted(first["net_instance_id"])} in layer {second["net_layer"]}',
        (Related(paths[1], "the other one here"),),
    )


def _numbers(levels: list[dict[str, Any]]) -> list[int]:
    """Return the layers of a rank; -1 for what is not a number."""
    return [one if type(one := level["net_layer"]) is int else -1 for level in levels]


def _look(level: dict[str, Any]) -> tuple[Any, ...]:
    return level.get("net_type", "CLOS"), len(level["rank_addr_list"])


def _is_usual(layers: _Layers, levels: list[dict[str, Any]]) -> bool:
    return all(
        _look(level) == layers.usual[layer] for layer, level in zip(_numbers(levels), levels, strict=True)
    )


def _exchanged(layers: _Layers, levels: list[dict[str, Any]]) -> tuple[int, int] | None:
    """Return the places of the two levels of a rank that look like each other's layer, if all others are right."""
    numbers = _numbers(levels)
    for one, other in combinations(range(len(levels)), 2):
        right = [*numbers]
        right[one], right[other] = numbers[other], numbers[one]
        if layers.usual[numbers[one]] == layers.usual[numbers[other]]:
            continue
        if all(layers.is_of(level, layer) for level, layer in zip(levels, right, strict=True)):
            return one, other
    return None
