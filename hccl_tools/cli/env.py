"""``hccl-tools env``: print what a framework needs in the environment of this host."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import chosen_table, options, site_options
from hccl_tools.cli.chosen_table import named, this_host
from hccl_tools.diagnostics.wording import next_step, no_rank_table
from hccl_tools.errors import TableError, UsageError
from hccl_tools.files import export_targets
from hccl_tools.notation.printable import tell
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from hccl_tools.files.export_targets import Target
    from hccl_tools.table.model import RankTable, Server

_EXAMPLES = """\
  eval "$(hccl-tools env rank_table.json --target mindie)"   the same line on every host
  hccl-tools env rank_table.json --target torch              look at it first
  hccl-tools env rank_table.json --target mindie --server 10.0.0.2   for another host
  hccl-tools env --site                                      the defaults of this site
"""


@options.command("env", epilog=_EXAMPLES)
@click.argument("table", required=False, metavar="[TABLE]")
@click.option(
    "--target", "name", type=options.TARGET,
    help="The framework of the job.",
)  # fmt: skip
@click.option("--server", metavar="ID", help="For this server of the table. Default: this host.")
@click.option("--site", is_flag=True, help="Print the defaults of this site, and where they are from.")
@options.product
@click.pass_context
def command(
    ctx: click.Context, *, table: str | None, name: str | None, server: str | None, site: bool,
    product: str | None,
) -> None:  # fmt: skip
    """Print the variables that a framework needs on this host, as shell commands.

    TABLE is the rank table of the job; without it, that of RANK_TABLE_FILE. The same line works on every
    host: addresses are those of the host's server in the table. A table or file that the framework would
    refuse is an error, and nothing is printed.

    --site prints the defaults of this site: HCCL_TOOLS_PRODUCT, HCCL_TOOLS_SSH, HCCL_TOOLS_VIA,
    HCCL_TOOLS_LOG_DIR and HCCL_TOOLS_START_PORT, from the environment or from /etc/hccl-tools.env.
    """
    if site:
        if table is not None or name is not None or server is not None:
            raise UsageError("--site needs no table, target or server", hint="`hccl-tools env --site`")
        options.write(f"{line}\n" for line in site_options.in_force())
        return
    if name is None:
        target_option = next(param for param in ctx.command.params if param.name == "name")
        raise click.MissingParameter(ctx=ctx, param=target_option)

    file = chosen_table.from_environment() if table is None else table
    target = export_targets.TARGETS[name]
    read = _checked(file, product, target)
    index = named(read, server) if server is not None else this_host(read)[0]
    found = export_targets.variables(target, file, _address(read.servers[index]))
    if sentence := export_targets.derived(target, read):
        tell(f"note: {sentence}")
    options.write(f"unset {variable}\n" for variable in export_targets.unset(target, os.environ))
    options.write(export_targets.exports(found | export_targets.job_variables(target, read, os.environ)))


def _checked(file: str, product: str | None, target: Target) -> RankTable:
    if file == "-":
        raise TableError("the table of a job is a file that all ranks read, not standard input")
    report = validate(file, product=product, target=target.name)
    if other := no_rank_table(report):
        raise TableError(f"{report.file} cannot be used: {other[0]}", hint=other[1])
    general = [one for one in report.errors if one.rule.reader != target.title]
    if general or report.table is None:
        first = (general or report.errors)[0]
        raise TableError(f"{file} cannot be used: {first.rule.id} {first.message}", hint=next_step(report))
    export_targets.require_no_error(target, report.findings)
    for warning in export_targets.warnings(target, report.findings):
        tell(*warning.split("\n"))
    return report.table


def _address(server: Server) -> str:
    own = server.fields.get("container_ip")
    if isinstance(own, str) and own:
        return own
    return server.server_id
