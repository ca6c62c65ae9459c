"""The output of ``replace`` and ``subset``: check the new table and write it next to the old table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import table_output
from hccl_tools.document.reading import is_stream
from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import LaunchError, TableError
from hccl_tools.files import next_command, outputs, rejected_table, revised_name
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.notation import screen
from hccl_tools.notation.printable import tell
from hccl_tools.runs import table_lock
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.table.products import PRODUCT_VARIABLE
from hccl_tools.validation.checker import validate
from hccl_tools.validation.product_choice import BY_SIMULATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.files.revised_name import Change
    from hccl_tools.table.model import RankTable


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
    digits = outputs.parse_mode(mode) if mode is not None else None
    to_stdout = output == outputs.STDOUT
    file, _ = config_maps.split(file)
    path = (
        None if to_stdout else revised_name.target("table.json" if is_stream(file) else file, output, change)
    )
    table_output.note_redirection(output)
    if product is None and not os.environ.get(PRODUCT_VARIABLE):
        product = next_command.simulated_product(before)
        if product is not None:
            tell(f"product {product} ({BY_SIMULATION})")
    _check(new, to_stdout, product=product, ignore=ignore)
    for line in changes:
        tell(line)
    tell(f"fingerprint {fingerprint(before)} becomes {fingerprint(after)}")
    _report_use(old)
    if path is None:
        outputs.print_text(new.decode())
        return

    write_atomically(path, [new.decode()], mode=digits, create=True)
    named = outputs.to_be_named(product, after)
    simulated = next_command.is_simulated(before)
    tell(*outputs.Saved(path, product=named).summary(after, simulated=simulated).split("\n"))


def _check(new: bytes, to_stdout: bool, **options: Any) -> None:
    # Without its text: a line of a table that is written nowhere helps no reader; the pointer stays.
    report = validate(new, **options)._replace(file=rejected_table.NAME, document=None)
    if not report.ok:
        width = screen.width(2 if to_stdout else 1)
        click.echo(outputs.findings_text(report, width), err=to_stdout, nl=False)
        raise rejected_table.refusal(report, table_output.typed_call())
    if report.table is None:
        raise TableError(f"no table is written: {report.format_reason}")


def _report_use(old: bytes) -> None:
    try:
        descriptor = table_lock.take(old, "hccl-tools replace", os.environ)
    except LaunchError as error:
        tell(f"note: {error.message}; that job continues with the old table")
        return
    if descriptor >= 0:
        os.close(descriptor)
