"""``hccl-tools replace``: give a spare server the ranks of a failed server."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import asked_hosts, gather_options, options, revise
from hccl_tools.errors import TableError
from hccl_tools.files.inputs import Inputs
from hccl_tools.gathering.failures import GatheringError
from hccl_tools.host.selection import Wanted
from hccl_tools.host.survey import SurveyRequest
from hccl_tools.notation.phrases import named, operand
from hccl_tools.notation.printable import tell
from hccl_tools.transform import generation
from hccl_tools.transform.replacement import replace_server
from hccl_tools.transform.spare import index_of
from hccl_tools.validation.checker import product_of

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable

_EXAMPLES = """\
  hccl-tools replace job.json --server 10.0.0.7 --with spare.json     writes job.r1.json
  hccl-tools replace job.r1.json --server 10.0.0.3 --with spare2.json  writes job.r2.json
  hccl-tools replace job.json --server 10.0.0.7 --with 10.0.0.17      queries the spare over ssh

spare.json is the spare's own table; write it on the spare with `hccl-tools gen`.
"""


@options.command("replace", epilog=_EXAMPLES)
@click.argument("file", metavar="FILE")
@click.option("--server", required=True, metavar="ID", help="The server_id of the failed server.")
@click.option("--with", "spare", required=True, metavar="FILE|HOST", help="The spare server, or its table.")
@revise.output("r")
@options.mode
@options.product
@options.ignore
@gather_options.one_host
def command(*, file: str, server: str, spare: str, **settings: Any) -> None:
    """Give a spare server the ranks of a failed server.

    Ranks, the order of devices and all other entries stay the same, byte for byte. The spare must match the
    failed server: number of devices, product, super pod and address family. The new table is written to a new
    file next to the old file; no file is overwritten.
    """
    inputs = Inputs(product=settings["product"])
    document = inputs.document(file)
    before = inputs.table(file)
    with_table = _spare(inputs, spare, before, server, settings)
    _require_order(file, before, server, spare, with_table, product=settings["product"])
    _require_one_server(file, before, spare, with_table)
    done = replace_server(document, server, with_table)
    revise.deliver(
        file, document.data, before, done.table, done.data, change="r", changes=done.changes, **settings
    )


def _require_order(
    file: str, before: RankTable, server: str, name: str, spare: RankTable, *, product: str | None
) -> None:
    """Refuse the table of the spare in place of the table of the job.

    Raises:
        TableError: Only the other table has the failed server.
    """
    job_ids = [one.server_id for one in spare.servers]
    if len(before.servers) != 1 or before.servers[0].server_id == server or server not in job_ids:
        return
    line = f"hccl-tools replace {operand(name)} --server {quote(server)} --with {operand(file)}"
    line += f" --product {product}" if product else ""
    raise TableError(
        f'{file} has no server "{server}", but {name} has: the two tables are swapped', hint=f"type `{line}`"
    )


def _require_one_server(file: str, before: RankTable, name: str, spare: RankTable) -> None:
    """Refuse a table of several servers in place of the spare's.

    Raises:
        TableError: The table has several servers.
    """
    if len(spare.servers) == 1:
        return
    job_ids = {one.server_id for one in before.servers}
    others = [one.server_id for one in spare.servers if one.server_id not in job_ids]
    hint = f"`--with` takes the table of a server that is not in {file}"
    if others:
        hint = f"select one: `hccl-tools subset {operand(name)} --servers {named(others[0], 'ID')}`"
    raise TableError(f"the spare's table has {len(spare.servers)} servers, not one", hint=hint)


def _spare(inputs: Inputs, name: str, before: RankTable, server: str, settings: dict[str, Any]) -> RankTable:
    how = {key: settings.pop(key) for key in gather_options.REACHING}
    if name == "-" or name.endswith(".json") or os.path.lexists(name):
        return inputs.table(name)
    if name in [one.server_id for one in before.servers]:
        raise TableError(f"the spare {name} is already in the table", hint="use a server that is not in it")
    rows = before.servers[index_of(before, server)].rows
    ids = sorted(number for row in rows if (number := before.device_numbers[row]) is not None)
    wanted = Wanted(devices=",".join(map(str, ids)))
    request = SurveyRequest(wanted, product=settings["product"], table_format=before.format)
    try:
        facts = asked_hosts.facts_of(name, request, how)
    except GatheringError as error:
        also = "`--with FILE` takes the table that `hccl-tools gen` writes on that host"
        error.hint = f"{error.hint}; {also}" if error.hint else also
        raise
    checked_for = product_of(before, settings["product"]).name
    if facts.product != checked_for:
        tell(
            f"warning: the spare {name} is {facts.product} ({facts.product_source}), but the table is "
            f"checked for {checked_for}: use a spare of that product, or specify another --product"
        )
    return generation.table([facts], table_format=facts.table_format)
