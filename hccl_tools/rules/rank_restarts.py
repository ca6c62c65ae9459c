"""Ranks that start at 0 again, as in tables that were joined by hand. This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import Finding, shared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.rules.registry import Subject


class Restart(NamedTuple):
    """Servers whose ranks start at 0 again, as if two tables were joined.

    Attributes:
        server: The index of the first of them.
        row: Its row with rank 0.
        size: The number of their ranks.
        rank: The rank that they would continue with.
    """

    server: int
    row: int
    size: int
    rank: int


@shared
def restarts(subject: Subject) -> list[Restart]:
    """Return where the ranks start at 0 again.

    The result is empty unless the servers form blocks, each with the ranks from 0 on, or from where the block before
    ends: only then the ranks of all devices are known.
    """
    numbers, servers = subject.table.rank_numbers, subject.table.servers
    begins = [
        index
        for index, server in enumerate(servers)
        if index == 0 or any(numbers[row] == 0 for row in server.rows)
    ]
    found, before = [], 0
    for begin, end in zip(begins, [*begins[1:], len(servers)], strict=True):
        rows = [row for server in servers[begin:end] for row in server.rows]
        own, size = {numbers[row] for row in rows}, len(rows)
        offset = 0 if own == {*range(size)} else before
        if own != {*range(offset, offset + size)}:
            return []
        if before and not offset:
            found.append(Restart(begin, next(row for row in rows if numbers[row] == 0), size, before))
        before += size
    return found


def restarted_servers(subject: Subject) -> Iterator[Finding]:
    """Yield the findings on servers whose ranks start at 0 again."""
    servers, first = subject.table.servers, subject.table.rank_numbers.index(0)
    alike = _said_once(subject, restarts(subject))
    for again in restarts(subject):
        ranks = count(again.size, "rank")
        what = f'server "{servers[again.server].server_id}" starts at rank 0 again ({ranks})'
        if subject.table.format == "2.0":
            what = f"entry {again.row} of rank_list is rank 0 again ({ranks} from there on), as if two tables were joined"
        elif again.size > len(servers[again.server].rows):
            what += ", as if two tables were joined"
        yield Finding(
            what,
            subject.device_path(again.row, "rank_id"),
            f"continue the rank numbers with {again.rank}, or join the tables of the servers with `hccl-tools merge`, which does this",
            (Related(subject.device_path(first, "rank_id"), "first used here"),),
            alike=alike,
        )


def _said_once(subject: Subject, found: list[Restart]) -> tuple[str, str]:
    """Return message and hint for several places where the ranks start at 0 again."""
    sizes, what = (
        {again.size for again in found},
        (("entry", "entries") if subject.table.format == "2.0" else ("server",)),
    )
    each = f" ({count(sizes.pop(), 'rank')} each)" if len(sizes) == 1 else ""
    first, second = found[0], found[1] if found[1:] else found[0]
    hint = (
        f"continue the rank numbers over the whole table: here with {first.rank}, at the next place with {second.rank}, and so on; "
        "or join the tables of the servers with `hccl-tools merge`, which does this"
    )
    message = f"the ranks start at 0 again in {count(len(found), *what)}{each}, as if tables were joined or each host counted its own"
    return message, hint
