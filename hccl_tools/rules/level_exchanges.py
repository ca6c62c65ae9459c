"""Addresses of one rank of a 2.0 table that are exchanged among themselves, or mistyped. This module declares no rules."""

from __future__ import annotations

from socket import AF_INET6, inet_ntop
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.likeness import is_near
from hccl_tools.notation.phrases import and_more
from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.rules.registry import Subject

#: The most ranks with such addresses, beside which the others show an order, and the most values that a hint names.
_MOST_RANKS, _MOST_NAMED = 2, 16
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
    for (row, index), found in single.items():
        entries = subject.table.column("level_list")[row][index]["rank_addr_list"]
        if not _has_usual_ports(subject, row, index):
            continue
        layer = subject.table.column("level_list")[row][index]["net_layer"]
        texts = [_text(entries[one.path[3]], one.expected) for one in found]
        known = [text for text in texts if text is not None]
        if len(known) < len(found):
            continue
        node = subject.table.servers[subject.table.server_of_row[row]].server_id[:64]
        gen = f"`hccl-tools gen` on {node} prints the addresses of {subject.rank_name(row)}"
        if len(found) > 1 and sorted(one.number for one in found) == sorted(one.expected for one in found):
            what = "exchanged" if len(found) == 2 else "mixed up"
            yield Finding(
                f"the addresses of {subject.rank_name(row)} in layer {layer} do not follow the order of all others: "
                f"{len(found)} of them are probably {what}",
                ("rank_list", row, *found[0].path),
                f"{gen}: by the order of the others these are {and_more([quoted(text) for text in known], _MOST_NAMED)}",
                tuple(Related(("rank_list", row, *one.path), "and here") for one in found[1:]),
            )
        elif (
            len(found) == 1
            and len(single) <= _MOST_RANKS
            and is_near(entries[found[0].path[3]]["addr"], known[0])
        ):
            yield Finding(
                f"address {quoted(entries[found[0].path[3]]['addr'])} of {subject.rank_name(row)} in layer {layer} does not follow the "
                "order of all others: it was probably mistyped",
                ("rank_list", row, *found[0].path),
                f"{gen}: by the order of the others it is {quoted(known[0])}",
            )


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
