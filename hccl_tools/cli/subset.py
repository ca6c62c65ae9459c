"""``hccl-tools subset``: keep some servers or devices of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import exclude_option, options, revise
from hccl_tools.errors import UsageError
from hccl_tools.files import outputs
from hccl_tools.files.inputs import Inputs
from hccl_tools.notation import device_range, number_list
from hccl_tools.notation.phrases import count, named, operand
from hccl_tools.notation.printable import tell
from hccl_tools.transform.subsetting import subset, without
from hccl_tools.validation.checker import product_of

if TYPE_CHECKING:
    from hccl_tools.notation.exclusion import Exclusion
    from hccl_tools.table.products import Product

_EXAMPLES = """\
  hccl-tools subset job.json --servers 10.0.0.1,10.0.0.2             two of its servers
  hccl-tools subset job.json --servers 10.0.0.1 --devices 0-3        four devices of one server
  hccl-tools subset job.json --devices "[4,8)" -o second_group.json  the same devices of every server
  hccl-tools subset job.json --exclude 10.0.0.3@10.0.0.4:0,1         all but a server and two devices
"""


@options.command("subset", epilog=_EXAMPLES)
@click.argument("file", metavar="FILE")
@click.option(
    "--servers",
    "--server",
    "servers",
    metavar="IDS",
    help="The server_ids to keep, separated by commas. Default: all.",
)
@click.option(
    "--devices", metavar="RANGE", help='The device ids to keep per server: 0-3, 0,2 or "[4,8)". Default: all.'
)
@exclude_option.option
@revise.output("s")
@options.mode
@options.product
@options.ignore
def command(
    *,
    file: str,
    servers: str | None,
    devices: str | None,
    exclude: tuple[Exclusion, ...],
    **settings: Any,
) -> None:
    """Keep some servers or devices of a table.

    The remaining ranks are renumbered from 0, in their old order. The new table is written to a new file
    next to the old file, NAME.s1.json; no file is overwritten.
    """
    if not servers and not devices and not exclude:
        raise UsageError(
            "--servers, --devices or --exclude is missing", hint=_examples(file, settings["product"])
        )
    inputs = Inputs(product=settings["product"])
    before = inputs.table(file)
    names = [name.strip() for name in servers.split(",") if name.strip()] if servers is not None else None
    ids = _device_ids(devices, product_of(before, settings["product"])) if devices else None
    after = subset(before, servers=names, devices=ids)
    after = without(after, exclude) if exclude else after
    of_servers, of_ranks = count(len(before.servers), "server"), count(len(before), "rank")
    kept = f"{len(after.servers)} of {of_servers}, {len(after)} of {of_ranks}"
    changes = [f"kept: {kept}", f"the ranks are renumbered, 0 to {len(after) - 1}"]
    new = outputs.table_text(after).encode()
    revise.deliver(file, inputs.data(file), before, after, new, change="s", changes=changes, **settings)


def _examples(file: str, product: str | None) -> str:
    """Return calls that work for the table at hand: its first server, and half of its devices."""
    table = Inputs(product=product).table(file)
    server, ids = table.servers[0], sorted({one for one in table.device_numbers if one is not None})
    kept = number_list.fold(ids[: max(1, len(ids) // 2)])
    command = f"hccl-tools subset {operand(file)}"
    return (
        f"`{command} --servers {named(server.server_id, 'ID')}` keeps one server, "
        f"`{command} --devices {kept}` these devices of each server"
    )


def _device_ids(text: str, product: Product) -> tuple[int, ...]:
    found = device_range.parse(text, device_limit=product.device_limit, product=product.name)
    for warning in found.warnings:
        tell(f"warning: {warning}")
    return found.ids
