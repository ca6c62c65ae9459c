"""``hccl-tools merge``: merge the tables of many hosts into one table."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import options, table_output
from hccl_tools.cli.values import Choice
from hccl_tools.files.inputs import Inputs
from hccl_tools.notation.printable import tell
from hccl_tools.transform import address_layout
from hccl_tools.transform.merge_conflicts import MergeConflictError
from hccl_tools.transform.merging import merge_batches

if TYPE_CHECKING:
    from hccl_tools.transform.merging import Merged

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
    type=Choice(["given", "server-id", "ip"]),
    default="given",
    show_default=True,
    help="Order of the servers: as the files are given, by server_id as text, or by numeric address.",
)
@options.writing
@options.product
@options.ignore
def command(*, files: tuple[str, ...], order: Any, **settings: Any) -> None:
    """Merge the tables of many hosts into one table.

    FILE is a table, a pattern in quotes (its files in the order of their names), or - for standard input.
    All tables must have one format, and no server, device_ip or super_device_id may occur twice.

    Ranks are renumbered in the order of the servers. HCCL accepts any order; MindSpore's guide requires
    the order of --order server-id. If `validate` finds no error in the table, the command writes it to
    hccl_{servers}s_{ranks}p.json.
    """
    gc.disable()  # the tables have no reference cycles, and collecting takes longer than merging
    names = [file for name in files for file in options.expand(name)]
    merged = _merge(names, Inputs(product=settings["product"]), order)
    table_output.report_servers(merged.table, merged.origins, in_order_given=order == "given")
    if settings["product"] is None and (warning := address_layout.mixture(merged.table)):
        tell(f"warning: {warning}")
    name = f"hccl_{len(merged.table.servers)}s_{len(merged.table)}p.json"
    table_output.deliver(merged.table, name=name, origins=merged.origins, **settings)


def _merge(names: list[str], inputs: Inputs, order: Any) -> Merged:
    try:
        return merge_batches(inputs.batches(names), order=order)
    except MergeConflictError as conflict:
        places = [f"  {place}" for place in inputs.located(conflict.places)]
        raise type(conflict)(conflict.head, conflict.places, hint=conflict.hint, lines=places) from None
