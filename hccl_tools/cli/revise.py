"""The output of ``replace`` and ``subset``: check the new table and write it next to the old table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import table_options
from hccl_tools.errors import LaunchError, TableError
from hccl_tools.notation import screen
from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.table.model import RankTable
    from hccl_tools.tablefiles.revision import Change


def output(change: Change) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option for the new file."""
    return click.option(
        "-o",
        "--output",
        metavar="DIR|FILE|-",
        help=f"Output path; - for stdout. Default: NAME.{change}1.json next to FILE.",
    )


def deliver(
    file: str,
    old: bytes,
    before: RankTable,
    after: RankTable,
    new: bytes,
    *,
    change: Change,
    changes: Sequence[str],
    output: str | None,
    mode: str | None,
    product: str | None,
    ignore: Sequence[str],
) -> None:
    """Check a changed table, write it to a new file and report the changes.

    Raises:
        TableError: The table has an error, or its file exists.
    """
    from hccl_tools.document.reading import is_stream  # noqa: PLC0415
    from hccl_tools.kubernetes import config_maps  # noqa: PLC0415
    from hccl_tools.table.fingerprint import fingerprint  # noqa: PLC0415
    from hccl_tools.tablefiles import next_command, outputs, revision  # noqa: PLC0415  (`--help` does not need it)

    digits = outputs.parse_mode(mode) if mode is not None else None
    to_stdout = output == outputs.STDOUT
    file, _ = config_maps.split(file)
    path = None if to_stdout else revision.target("table.json" if is_stream(file) else file, output, change)
    table_options.note_redirection(output)
    _check(new, to_stdout, product=product, ignore=ignore)
    for line in changes:
        tell(line)
    tell(f"fingerprint {fingerprint(before)} becomes {fingerprint(after)}")
    _report_use(old)
    if path is None:
        outputs.print_text(new.decode())
        return
    from hccl_tools.document.writing import write_atomically  # noqa: PLC0415

    write_atomically(path, [new.decode()], mode=digits, create=True)
    named = outputs.to_be_named(product, after)
    simulated = next_command.is_simulated(before)
    tell(*outputs.Saved(path, product=named).summary(after, simulated=simulated).split("\n"))


def _check(new: bytes, to_stdout: bool, **options: Any) -> None:
    from hccl_tools.tablefiles import outputs, unwritten  # noqa: PLC0415
    from hccl_tools.validation.checker import validate  # noqa: PLC0415

    # Without its text: a line of a table that is written nowhere helps no reader; the pointer stays.
    report = validate(new, **options)._replace(file=unwritten.NAME, document=None)
    if not report.ok:
        width = screen.width(2 if to_stdout else 1)
        click.echo(outputs.findings_text(report, width), err=to_stdout, nl=False)
        raise unwritten.refusal(report, table_options.typed_call())
    if report.table is None:
        raise TableError(f"no table is written: {report.format_reason}")


def _report_use(old: bytes) -> None:
    from hccl_tools.launch.runs import table_lock  # noqa: PLC0415

    try:
        descriptor = table_lock.take(old, "hccl-tools replace", os.environ)
    except LaunchError as error:
        tell(f"note: {error.message}; that job continues with the old table")
        return
    if descriptor >= 0:
        os.close(descriptor)
