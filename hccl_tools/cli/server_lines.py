"""Report the ranks of each server of a new table, and an order of servers that is not numeric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.table.model import RankTable


def report(table: RankTable, origins: Sequence[str], *, in_order_given: bool) -> None:
    """Print on stderr the ranks of each server and the file or host it is from.

    Args:
        in_order_given: Whether the order is the user's: then an order that is not numeric gets a warning.
    """
    from hccl_tools.table import ordering  # noqa: PLC0415  (`--help` does not need it)

    click.echo("\n".join(_lines(table, origins)), err=True)
    if table.format == "group_list":
        click.echo(
            "note: HCCL numbers a group_list by server_id as text, not by the order of its servers",
            err=True,
        )
        return
    pair = ordering.out_of_order(table) if in_order_given else None
    if pair is not None:
        click.echo(
            f"warning: servers are not in the order of their addresses: {pair[0]} is before {pair[1]}; "
            "`--order ip` sorts them",
            err=True,
        )


def _lines(table: RankTable, origins: Sequence[str]) -> Iterator[str]:
    from hccl_tools.notation import number_list  # noqa: PLC0415
    from hccl_tools.table.ordering import FOLD_ABOVE  # noqa: PLC0415

    width = max(len(server.server_id) for server in table.servers)
    shown = range(len(table.servers))
    for index in (
        shown if len(shown) <= FOLD_ABOVE else [*shown[: FOLD_ABOVE // 2], *shown[-FOLD_ABOVE // 2 :]]
    ):
        if len(shown) > FOLD_ABOVE and index == len(shown) - FOLD_ABOVE // 2:
            yield f"... and {len(shown) - FOLD_ABOVE:,} more servers ..."
        server = table.servers[index]
        ranks = sorted(number for row in server.rows if (number := table.rank_numbers[row]) is not None)
        yield f"server {server.server_id:<{width}}  ranks {number_list.fold(ranks)}  from {origins[index]}"
