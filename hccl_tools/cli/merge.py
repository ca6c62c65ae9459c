"""``hccl-tools merge``: the tables of many hosts become one."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import options, table_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.merging import Merged
    from hccl_tools.table_input import Inputs

_EXAMPLES = """\
  hccl-tools merge 'tables/*.json'                      every table in a folder; quote the pattern
  hccl-tools merge --order ip 'hccl_8p_*.json'          servers by address: 10.0.0.2 before 10.0.0.10
  hccl-tools merge node0.json node1.json -o job.json    node0 gets ranks 0 to 7, node1 ranks 8 to 15
  hccl-tools merge 'hccl_*.json' -o - | hccl-tools validate -
"""


@options.command("merge", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--order",
    type=click.Choice(["given", "server-id", "ip"]),
    default="given",
    show_default=True,
    help="Which server comes first: as the files are given, by server_id as text, or by address as a number.",
)
@table_options.writing
@options.product
@table_options.ignore
def command(*, files: tuple[str, ...], order: Any, **settings: Any) -> None:
    """Make one table of the tables of many hosts.

    FILE is a table, a pattern in quotes (its files in the order of their names), or - for standard input.
    All tables must be of one format, and no server, device_ip or super_device_id may come twice.

    Ranks are numbered anew in the order of the servers. HCCL takes any order; MindSpore's guide asks for that
    of --order server-id. The table goes into hccl_{servers}s_{ranks}p.json, and is written only if
    `validate` finds no error in it.
    """
    from hccl_tools.table_input import Inputs  # noqa: PLC0415  (`--help` does not need it)

    gc.disable()  # thousands of tables are objects without a cycle; collecting takes longer than merging
    names = [file for name in files for file in options.expand(name)]
    merged = _merge(names, Inputs(product=settings["product"]), order)
    _tell(merged, order)
    name = f"hccl_{len(merged.table.servers)}s_{len(merged.table)}p.json"
    table_options.deliver(merged.table, name=name, origins=merged.origins, **settings)


def _merge(names: list[str], inputs: Inputs, order: Any) -> Merged:
    from hccl_tools.merge_conflicts import MergeConflictError  # noqa: PLC0415
    from hccl_tools.merging import merge_batches  # noqa: PLC0415

    try:
        return merge_batches(inputs.batches(names), order=order)
    except MergeConflictError as conflict:
        places = "".join(f"\n  {place}" for place in inputs.located(conflict.places))
        raise type(conflict)(conflict.message + places, conflict.places, hint=conflict.hint) from None


def _tell(merged: Merged, order: str) -> None:
    """Say which server got which ranks, and whether the order is the one that people expect."""
    from hccl_tools import server_order  # noqa: PLC0415

    click.echo("\n".join(_lines(merged)), err=True)
    if merged.table.format == "group_list":
        click.echo(
            "note: HCCL numbers a group_list by server_id as text, whatever the order of its servers",
            err=True,
        )
        return
    pair = server_order.out_of_order(merged.table) if order == "given" else None
    if pair is not None:
        click.echo(
            f"warning: servers are not in the order of their addresses: {pair[0]} stands before {pair[1]}; "
            "`--order ip` sorts them",
            err=True,
        )


def _lines(merged: Merged) -> Iterator[str]:
    from hccl_tools.server_order import FOLD_ABOVE, blocks  # noqa: PLC0415

    table = merged.table
    width = max(len(server.server_id) for server in table.servers)
    shown = range(len(table.servers))
    for index in (
        shown if len(shown) <= FOLD_ABOVE else [*shown[: FOLD_ABOVE // 2], *shown[-FOLD_ABOVE // 2 :]]
    ):
        if len(shown) > FOLD_ABOVE and index == len(shown) - FOLD_ABOVE // 2:
            yield f"... and {len(shown) - FOLD_ABOVE:,} more servers ..."
        server = table.servers[index]
        ranks = sorted(number for row in server.rows if (number := table.rank_numbers[row]) is not None)
        yield f"server {server.server_id:<{width}}  ranks {blocks(ranks)}  from {merged.origins[index]}"
