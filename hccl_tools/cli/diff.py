"""``hccl-tools diff``: compare two tables by meaning."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import options
from hccl_tools.cli.values import Choice
from hccl_tools.diagnostics import render
from hccl_tools.diagnostics.wording import no_rank_table
from hccl_tools.errors import UsageError
from hccl_tools.formats.kubernetes.config_maps import split
from hccl_tools.notation.phrases import operand
from hccl_tools.show import differences
from hccl_tools.table.difference import compare, problem
from hccl_tools.validation.checker import validate
from hccl_tools.validation.config_maps import check_one

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable

_EXAMPLES = """\
  hccl-tools diff before.json after.json             servers, ranks and addresses that differ
  ssh node2 cat hccl.json | hccl-tools diff hccl.json -
  hccl-tools diff a.json b.json -f json
"""


@options.command("diff", epilog=_EXAMPLES)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--all", "unfold", is_flag=True, help="List every difference.")
@click.option(
    "-f", "--format", "output", type=Choice(["text", "json"]), default="text", help="Output format."
)
@options.product
@options.color
@click.pass_context
def command(
    context: click.Context,
    *,
    first: str,
    second: str,
    unfold: bool,
    output: str,
    product: str | None,
    color: bool,
) -> None:
    """Compare two tables by meaning: servers that are gone or new, ranks that moved, changed addresses.

    Layout, order of keys, spelling, and keys that HCCL does not read make no difference. A or B can be - for
    standard input. The exit code is 0 if the tables have the same meaning, 1 if they differ, 2 if one cannot
    be read.
    """
    if split(first)[0] == split(second)[0] == "-":
        raise UsageError("both tables are standard input", hint="name a file for one of them")
    gc.disable()  # the tables have no reference cycles
    files = [_read(first, product, (first, second)), _read(second, product, (first, second))]
    found = compare(files[0][1], files[1][1])
    if output == "json":
        options.write([differences.as_json(found, files)])
    else:
        options.write(f"{line}\n" for line in differences.lines(found, files, unfold=unfold, color=color))
    context.exit(0 if found.is_empty else 1)


def _read(file: str, product: str | None, both: tuple[str, str]) -> tuple[str, RankTable]:
    """Return the shown name of a file, and its table, whose ranks and devices are known.

    Raises:
        UsageError: The file is no table, or its ranks or devices are not unique numbers.
    """
    report = check_one(file, partial(validate, product=product))
    if other := no_rank_table(report):
        raise UsageError(f"{report.file} cannot be compared: {other[0]}", hint=other[1])
    if report.table is None or not report.table.servers:
        findings = "".join(render([report], "text")).rstrip()
        raise UsageError(f"{report.file} cannot be compared", lines=findings.split("\n"))
    if why := problem(report.table):
        hint = f"see `hccl-tools validate {operand(file)}`"
        if all(Path(name).is_file() for name in both):  # Neither a pipe nor a table in another file.
            hint += f"; `diff -u {operand(both[0])} {operand(both[1])}` compares the texts"
        raise UsageError(f"{report.file} cannot be compared: {why}", hint=hint)
    return report.file, report.table
