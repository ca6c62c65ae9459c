"""Write the table that a command makes: check it, save it or print it, and say where it is from."""

from __future__ import annotations

import os
import shlex
import stat
from typing import TYPE_CHECKING

import click

from hccl_tools import formats
from hccl_tools.cli.lazy_group import TYPED_CALL
from hccl_tools.files import outputs, rejected_table
from hccl_tools.notation import number_list, screen
from hccl_tools.notation.phrases import count, operand
from hccl_tools.notation.printable import escaped, tell
from hccl_tools.table import model
from hccl_tools.table.model import FOLD_ABOVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.table.model import RankTable


def note_redirection(output: str | None) -> None:
    """Say that the table has a file of its own, if standard output alone was redirected to another one."""
    if output is not None:
        return
    try:
        out, err = os.fstat(1), os.fstat(2)
        name = os.readlink("/proc/self/fd/1")  # noqa: PTH115  (pathlib is not loaded for it)
    except OSError:
        return
    is_shared = (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
    if stat.S_ISREG(out.st_mode) and not is_shared and os.path.exists(name):  # noqa: PTH110
        file = shlex.quote(name.removeprefix(f"{os.getcwd()}/"))  # noqa: PTH109
        tell(f"note: the table is not printed: `-o {file}` writes it to that file, `-o -` prints it")


def deliver(
    table: RankTable,
    *,
    name: str,
    output: str | None,
    force: bool,
    mode: str | None,
    product: str | None,
    ignore: Sequence[str],
    origins: Sequence[str] = (),
    service: str | None = None,
) -> None:
    """Check a table and write it, as ``gen`` does.

    Args:
        name: The file name if ``output`` is a folder.
        product: The product whose rules apply; by default the product of the table's format.
        origins: The source file of each server, for the findings.
        service: The service that reads the table, for the next command.

    Raises:
        TableError: The table has an error, or another table exists in the file.
    """
    digits = outputs.parse_mode(mode) if mode is not None else None
    to_stdout = output == outputs.STDOUT
    note_redirection(output)
    report = require_valid(table, to_stdout=to_stdout, product=product, ignore=ignore, origins=origins)
    if to_stdout:
        outputs.print_text(outputs.table_text(table))
        return
    path = outputs.target(output, table, name=name)
    saved = outputs.save(table, path, force=force, mode=digits, product=product)
    tell(*saved.summary(table, service).split("\n"))
    warnings = sum(rule.severity == "warning" for rule in report.counts.elements())
    if warnings:
        shows = "shows it" if warnings == 1 else "shows them"
        tell(f"{count(warnings, 'warning')}: `hccl-tools validate {operand(path)}` {shows}")


def require_valid(
    table: RankTable,
    *,
    to_stdout: bool,
    product: str | None,
    ignore: Sequence[str],
    origins: Sequence[str] = (),
) -> Report:
    """Check a table that is to be written, and print its findings if it has an error; see ``deliver``.

    Returns:
        The report on the table, which has no error.

    Raises:
        TableError: The table has an error.
    """
    report = outputs.check(table, product=product, ignore=ignore, name=rejected_table.NAME)
    if not report.ok:
        width = screen.width(2 if to_stdout else 1)
        click.echo(
            outputs.findings_text(report, width) + _origins_of_errors(report, origins),
            err=to_stdout,
            nl=False,
        )
        raise rejected_table.refusal(report, typed_call())
    return report


def typed_call() -> tuple[str, ...]:
    """Return the call of this command as it was typed, with the tool; empty for an own program."""
    typed: tuple[str, ...] = click.get_current_context().meta.get(TYPED_CALL, ())
    return typed


def _origins_of_errors(report: Report, origins: Sequence[str]) -> str:
    if report.table is None or not origins:
        return ""
    module = formats.module(report.table.format)
    paths = [module.server_path(report.table, index) for index in range(len(origins))]
    at_fault = [
        index
        for index, path in enumerate(paths)
        if any(finding.path[: len(path)] == path for finding in report.errors)
    ]
    return "".join(
        escaped(f'server "{report.table.servers[index].server_id}" is from {origins[index]}') + "\n"
        for index in at_fault[:20]
    )


def report_servers(table: RankTable, origins: Sequence[str], *, in_order_given: bool) -> None:
    """Print on stderr the ranks of each server and its source, a file or host.

    Args:
        in_order_given: Whether the user chose the order; an order that is not numeric then causes a warning.
    """
    tell(*_server_lines(table, origins))
    if table.format == "group_list":
        tell("note: HCCL numbers a group_list by server_id as text, not by the order of its servers")
        return
    pair = model.out_of_order(table) if in_order_given else None
    if pair is not None:
        tell(
            f"warning: servers are not in the order of their addresses: {pair[0]} is before {pair[1]}; "
            "`--order ip` sorts them"
        )


def _server_lines(table: RankTable, origins: Sequence[str]) -> Iterator[str]:
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
