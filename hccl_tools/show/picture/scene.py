"""What a picture of a table has in it, without coordinates: super pods, servers, devices, and their links.

Neighbouring servers that are equal in devices and links, and have no mark, are folded into one box.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from hccl_tools.host.recognition import listed_addresses
from hccl_tools.show.picture.boxes import Fold, Npu, PodBox, Scene, ServerBox, buses
from hccl_tools.table.links import MEANINGS, UNKNOWN, Links
from hccl_tools.table.model import super_pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hccl_tools.show.picture.boxes import Bus, Selection
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

#: The greatest number of servers that are all drawn; with more, equal ones are folded.
MOST_UNFOLDED = 16
#: The greatest number of servers that are drawn beside folds, and of super pods.
MOST_DRAWN, MOST_PODS = 12, 4
#: The greatest number of servers that are drawn because of a mark.
MOST_MARKED = 6
#: The greatest number of devices that are drawn of a server: no machine has as many.
MOST_DEVICES = 128
#: The greatest number of different servers whose links to each other are compared.
_MOST_KEYS = 32
#: Fewer equal servers in a row are not folded.
_LEAST_FOLDED = 2
_KINDS = tuple(MEANINGS)


def scene(table: RankTable, product: Product, selection: Selection) -> Scene:
    """Return what the picture of some servers has in it."""
    maker = _Maker(table, product)
    indices, marked = selection.servers, set(selection.marked)
    pod_of = super_pods(table) if table.super_pods else {}
    members: dict[str | None, list[int]] = {}
    for index in indices:
        members.setdefault(pod_of.get(table.servers[index].server_id), []).append(index)
    chosen = set(indices)
    everything = selection.unfold or len(indices) <= MOST_UNFOLDED
    wanted = set([index for index in selection.important if index in chosen][:MOST_MARKED])
    shown = dict(members) if everything else _shown_pods(members, wanted)
    pods = []
    for name, own in shown.items():
        if everything:
            items: list[ServerBox | Fold] = [maker.server(index) for index in own]
        elif len(members) > 1:
            items = maker.brief(own, wanted, marked)
        else:
            items = maker.folded(own, wanted, marked)
        pods.append(PodBox(name, items, maker.between([own])))
    return Scene(pods, maker.between(list(members.values())), len(members) - len(shown), indices)


def _shown_pods(members: dict[str | None, list[int]], wanted: set[int]) -> dict[str | None, list[int]]:
    """Return at most ``MOST_PODS`` super pods: the first, the last, and those with a mark."""
    names = list(members)
    order = sorted(
        range(len(names)),
        key=lambda place: (wanted.isdisjoint(members[names[place]]), min(place, len(names) - 1 - place)),
    )
    return {names[place]: members[names[place]] for place in sorted(order[:MOST_PODS])}


class _Maker:
    """Makes the parts of a scene."""

    def __init__(self, table: RankTable, product: Product) -> None:
        self._table, self._product = table, product
        self._links = Links(table, product)
        self._buses: dict[Any, list[Bus]] = {}
        self._outer: dict[int, Any] = {}

    def _rows(self, index: int) -> list[int]:
        numbers = self._table.device_numbers
        rows = self._table.servers[index].rows
        return sorted(rows, key=lambda row: (numbers[row] is None, numbers[row] or 0, row))

    def server(self, index: int) -> ServerBox:
        """Return a server with its devices."""
        table, server = self._table, self._table.servers[index]
        rows = self._rows(index)
        kept = rows[:MOST_DEVICES]
        npus = [
            Npu(
                row, table.rank_numbers[row], table.device_numbers[row],
                [text for _, text in listed_addresses(table, row)],
            )
            for row in kept
        ]  # fmt: skip
        key = self._links.inner_key(kept)
        if key not in self._buses:
            self._buses[key] = list(buses(self._links.within(kept)))
        return ServerBox(
            index, server.server_id, npus, len(rows) - len(kept), self._groups(npus), self._buses[key]
        )

    def _groups(self, npus: list[Npu]) -> list[tuple[str, int]]:
        size = self._product.group_size
        if size is None:
            return [("", len(npus))]
        numbers = [None if npu.device is None else npu.device // size for npu in npus]
        return [
            ("in no group" if number is None else f"group {number * size}-{number * size + size - 1}",
             len(list(own)))
            for number, own in groupby(numbers)
        ]  # fmt: skip

    def folded(self, own: Sequence[int], wanted: set[int], marked: set[int]) -> list[ServerBox | Fold]:
        """Return the servers with equal neighbours folded, and those beyond ``MOST_DRAWN`` as well."""
        items: list[ServerBox | Fold] = []
        spare = MOST_DRAWN - len(wanted.intersection(own))
        for (alone, _), group in groupby(
            own, key=lambda index: (index in wanted and index, self._key(index))
        ):
            run = list(group)
            middle = run[1:-1]
            if alone is not False:
                items.append(self.server(run[0]))
            elif spare <= 1:
                items.append(_fold(run, marked, alike=False))
            elif len(middle) >= _LEAST_FOLDED:
                items += [self.server(run[0]), _fold(middle, marked, alike=True), self.server(run[-1])]
                spare -= 2
            else:
                items += map(self.server, run)
                spare -= len(run)
        return list(_joined(items))

    def brief(self, own: Sequence[int], wanted: set[int], marked: set[int]) -> list[ServerBox | Fold]:
        """Return the first server and those with a mark; the others are folded."""
        shown = {own[0], *wanted}
        items: list[ServerBox | Fold] = []
        for alone, group in groupby(own, key=lambda index: index in shown):
            run = list(group)
            if alone:
                items += map(self.server, run)
            else:
                alike = all(self._key(index) == self._key(own[0]) for index in run)
                items.append(_fold(run, marked, alike=alike))
        return items

    def _key(self, index: int) -> tuple[Any, ...]:
        rows = self._rows(index)[:MOST_DEVICES]
        return self._links.inner_key(rows), self._outer_key(index)

    def _outer_key(self, index: int) -> Any:
        if index not in self._outer:
            self._outer[index] = self._links.server_key(self._table.servers[index])
        return self._outer[index]

    def between(self, parts: Sequence[Sequence[int]]) -> str:
        """Return the link between the servers of one part, or of different parts; "" if there is none."""
        keys = [self._counts(part) for part in parts]
        if sum(map(len, keys)) > _MOST_KEYS * len(parts) or len(parts) > _MOST_KEYS:
            return UNKNOWN if len(parts) > 1 or len(parts[0]) > 1 else ""
        found: set[str] = set()
        for place, one in enumerate(keys):
            for other in keys[place + 1 :] if len(parts) > 1 else keys:
                pairs = ((a, b) for a in one for b in other if a != b or other is not one or one[a] > 1)
                found |= {word for a, b in pairs for word in self._links.between(a, b).split("/")}
        return "/".join(sorted(found, key=_KINDS.index))

    def _counts(self, part: Sequence[int]) -> dict[Any, int]:
        counts: dict[Any, int] = {}
        for index in part:
            key = self._outer_key(index)
            counts[key] = counts.get(key, 0) + 1
        return counts


def _fold(indices: list[int], marked: set[int], *, alike: bool) -> Fold:
    return Fold(indices, len(marked.intersection(indices)), alike)


def _joined(items: Iterable[ServerBox | Fold]) -> Iterator[ServerBox | Fold]:
    """Join folds that follow each other."""
    for folds, group in groupby(items, key=lambda item: isinstance(item, Fold)):
        own = list(group)
        if not folds or len(own) == 1:
            yield from own
            continue
        several = [item for item in own if isinstance(item, Fold)]
        indices = [index for item in several for index in item.indices]
        yield Fold(indices, sum(item.marked for item in several), alike=False)
