"""``hccl-tools replace``: a spare server takes a failed one's ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import options, revise, table_options

if TYPE_CHECKING:
    from hccl_tools.table import RankTable
    from hccl_tools.table_input import Inputs

_EXAMPLES = """\
  hccl-tools replace job.json --server 10.0.0.7 --with spare.json     writes job.r1.json
  hccl-tools replace job.r1.json --server 10.0.0.3 --with spare2.json  writes job.r2.json

spare.json is the spare's own table; write it there with `hccl-tools gen`.
"""


@options.command("replace", epilog=_EXAMPLES)
@click.argument("file", metavar="FILE")
@click.option("--server", required=True, metavar="ID", help="The server_id of the failed server.")
@click.option("--with", "spare", required=True, metavar="SPARE", help="The table of the spare server.")
@revise.output
@table_options.mode
@options.product
@table_options.ignore
def command(*, file: str, server: str, spare: str, **settings: Any) -> None:
    """Give a spare server the ranks of a failed one.

    Ranks, the order of devices and every other entry stay byte for byte. The spare must be like the failed
    server: as many devices, the same product, super pod and address family. The new table goes into a new
    file beside the old one, never over a table that is there.
    """
    from hccl_tools.replacement import replace_server  # noqa: PLC0415  (`--help` does not need it)
    from hccl_tools.table_input import Inputs  # noqa: PLC0415

    inputs = Inputs(product=settings["product"])
    document = inputs.document(file)
    before = inputs.table(file)
    done = replace_server(document, server, _spare(inputs, spare))
    revise.deliver(file, document.data, before, done.table, done.data, changes=done.changes, **settings)


def _spare(inputs: Inputs, name: str) -> RankTable:
    """Return the spare's table; only files so far."""
    return inputs.table(name)
