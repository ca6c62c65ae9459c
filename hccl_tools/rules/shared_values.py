"""To which of two servers the values belong that both have, shared by several rules. This module declares no rules.

Two servers with the same addresses, or the same super_device_ids, say nothing about which of them is wrong: the later one
in the file is not more likely than the earlier one. The order of the other servers may say it, and the hosts themselves do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.records import NamedTuple
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.value_order import names_of, order_of, other_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.rules.registry import Subject
    from hccl_tools.rules.value_order import Names, Order


#: The most servers outside the order that a hint names: more are not read for each of many findings.
_MOST_OTHERS = 64


class Owners(NamedTuple):
    """The order of a table in which servers have the values of others.

    Attributes:
        values: The values of all rows.
        order: The order of these values.
        names: How the server_ids follow the values.
        outside: The servers whose server_ids do not follow the values.
    """

    values: Sequence[int]
    order: Order
    names: Names
    outside: dict[int, None]

    def expected(self, index: int) -> int | None:
        """Return the number that a server adds to those of its devices by its server_id; None if it has no number."""
        number = self.names.numbers[index]
        return None if number is None else self.names.base + self.names.step * number


def owners_of(subject: Subject, values: Sequence[int]) -> Owners | None:
    """Return the order of values of which some occur twice; None if the server_ids do not follow the values."""
    order = order_of(subject, values)
    names = None if order is None else names_of(subject, order.first)
    if order is None or names is None:
        return None
    return Owners(values, order, names, dict.fromkeys(other_names(names, order.first)))


class Claim(NamedTuple):
    """Which of two servers with the same values is probably the wrong one.

    Attributes:
        wrong: The index of the server whose values are probably those of the other.
        owner: The index of the other one.
        order: What the order of the other servers says, as the begin of a hint; "" if it says nothing.
        rest: What it says of further servers, as the end of a hint; "" if all others follow it.
    """

    wrong: int
    owner: int
    order: str
    rest: str


def claim(
    subject: Subject, pair: tuple[int, int], owners: Owners | None, text: Callable[[int], str], key: str
) -> Claim:
    """Return which of two servers with the same values is wrong: without an order, the first of the pair.

    Args:
        pair: The indices of the two servers.
        owners: The order of the values.
        text: Returns a value as it is written.
        key: The key of the values.
    """
    wrong = [] if owners is None else [one for one in pair if one in owners.outside]
    if owners is None or len(wrong) != 1 or not all(one in owners.order.first for one in pair):
        return Claim(*pair, "", "")
    (index,) = wrong
    owner = pair[0] if index == pair[1] else pair[1]
    begin = owners.expected(index)
    if begin is None or begin + owners.names.step < 0:
        return Claim(*pair, "", "")
    rows = subject.table.servers[index].rows
    own = [owners.values[row] - owners.order.first[index] + begin for row in (rows[0], rows[-1])]
    others = [one for one in owners.outside if one not in pair] if len(owners.outside) <= _MOST_OTHERS else []
    rest = ""
    if others:
        some = (
            f"server {others[0] + 1} does"
            if len(others) == 1
            else f"servers {fold(one + 1 for one in others)} do"
        )
        rest = f"; the {key}s of {some} not follow this order either: check them in the same way"
    belong = f"by the order of the other servers these belong to {named_server(subject, owner)}, and"
    if not _is_in_the_row(owners.names, index):
        return Claim(
            index,
            owner,
            f"{belong} server {index + 1} may be an old entry of the same host: if {quoted(subject.table.servers[index].server_id)} is not a "
            f"host of the job, remove the entry{without_one(subject)}; else ",
            rest,
        )
    return Claim(
        index,
        owner,
        f"{belong} those of {named_server(subject, index)} are probably {quoted(text(own[0]))} to {quoted(text(own[1]))}, if it is a host of the "
        "job: ",
        rest,
    )


def _is_in_the_row(names: Names, index: int) -> bool:
    """Return whether the number of a server is among those of the others or next to them: a series does not reach further."""
    others = [number for place, number in enumerate(names.numbers) if number is not None and place != index]
    own = names.numbers[index]
    return own is not None and bool(others) and min(others) - 1 <= own <= max(others) + 1


def without_one(subject: Subject) -> str:
    """Return what else is to be done if a server is removed, as the end of a hint."""
    declared, number = subject.table.declared.get("server_count"), len(subject.table.servers)
    if subject.table.format == "group_list":  # It has no ranks.
        return " and correct instance_count and device_count"
    count = f', write "server_count": "{number - 1}"' if declared == str(number) else ""
    return f"{count} and number the ranks without a gap"
