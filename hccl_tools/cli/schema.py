"""``hccl-tools schema``: print the JSON Schema of a table format, or of an answer."""

from __future__ import annotations

import click

from hccl_tools.formats import MODULES
from hccl_tools.formats.schema import OTHERS, load, schema_text
from hccl_tools.notation import screen


@click.command("schema")
@click.argument("table_format", metavar="[FORMAT]", required=False)
def command(table_format: str | None) -> None:
    """Print the JSON Schema (draft 2020-12) of a table format, of another file, or of an answer.

    \b
    hccl-tools schema                    the formats
    hccl-tools schema 1.0 > rank_table.schema.json
    hccl-tools schema rootinfo           the root info of Ascend 950; endpoints: its endpoint files
    hccl-tools schema server_group_list  the service tables of MindIE-Motor and omni-infer
    hccl-tools schema validate           the answer of `validate --format json`; also doctor, explain
    hccl-tools schema plan               plan.json of a run, and `launch --dry-run=json`
    hccl-tools schema report             report.json of a run, and what `launch --notify` passes
    hccl-tools schema knowledge          messages of your own for `explain --knowledge`
    hccl-tools schema scaling            figures for `scaling report`, as `scaling run` writes them
    """  # noqa: D301  (click's mark: keep the lines)
    if table_format in {None, "list"}:
        for name in (*MODULES, *OTHERS):
            row = f"{name:<17}  {load(name)['title']}"
            click.echo("\n".join(screen.wrapped(row, screen.width(), " " * 19)))
    elif table_format is not None:
        click.echo(schema_text(table_format), nl=False)
