"""Where a new table goes, and what may stand there already."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools import formats
from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import TableError, UsageError, WriteError
from hccl_tools.table.products import assumed_for
from hccl_tools.transform.generation import file_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.table.model import RankTable

#: Standard output in place of a file.
STDOUT = "-"


class Saved(NamedTuple):
    """Where the table is, whether it stood there already, and the product to name with it from now on."""

    path: str
    unchanged: bool = False
    product: str | None = None

    def summary(self) -> str:
        """Return what was done and what to type next."""
        from shlex import quote  # noqa: PLC0415  (what is printed with -o - needs no quoting)

        done = "already up to date:" if self.unchanged else "wrote"
        product = f" --product {self.product}" if self.product else ""
        return (
            f"{done} {self.path}\nnext: hccl-tools launch --rank-table {quote(self.path)}{product} train.py"
        )


def parse_mode(digits: str) -> int:
    """Return a file mode as ``chmod`` takes it: three or four octal digits.

    Raises:
        UsageError: It is none, or its owner could not read the file.

    >>> oct(parse_mode("640"))
    '0o640'
    """
    if not 3 <= len(digits) <= 4 or set(digits) - set("01234567"):
        raise UsageError(f'--mode "{digits}" is not a file mode', hint="give octal digits as chmod does: 640")
    mode = int(digits, 8)
    if mode > 0o777 or not mode & 0o400:
        raise UsageError(f'--mode "{digits}" must let the owner read, and be at most 777', hint="give 640")
    return mode


def to_be_named(product: str | None, table: RankTable) -> str | None:
    """Return the product that a user has named, unless it is assumed for such a table anyway."""
    return None if product == assumed_for(table.format).name else product


def check(
    table: RankTable,
    *,
    product: str | None,
    ignore: Sequence[str] = (),
    name: str | None = None,
) -> Report:
    """Return what ``validate`` will say to a table that is not written yet.

    A table with findings is judged as a text, so that each has its line and column. ``name`` is what the
    report calls it, where its file will not have the usual name.
    """
    from hccl_tools.validation import checker  # noqa: PLC0415  (the rules are needed for nothing else here)

    report = checker.check_table(table, product=product, ignore=ignore)
    if report.ok:
        return report
    report = checker.validate(text(table).encode(), product=product, ignore=ignore)
    return report._replace(file=name or file_name(table))


def shown(report: Report) -> str:
    """Return the findings as ``validate`` shows them."""
    from hccl_tools.diagnostics import render  # noqa: PLC0415  (only where something is wrong)

    return "".join(render([report], "text", show_all=False, color=False))


def refusal(report: Report) -> TableError:
    """Return the error with which a bad table is not written: one sentence with the first cause."""
    first, *rest = report.errors
    more = f" (and {len(rest)} more error{'s' if len(rest) > 1 else ''})" if rest else ""
    return TableError(f"no table is written: {first.message}{more}", hint=first.hint)


def text(table: RankTable) -> str:
    """Return the whole text of a table."""
    return "".join(formats.write(table))


def print_out(table: RankTable) -> None:
    """Print a table on standard output; see ``print_text``."""
    print_text(text(table))


def print_text(whole: str) -> None:
    """Print the text of a table on standard output, to its last byte.

    Raises:
        WriteError: It is closed, or does not take the text: a full disk behind ``>``.
        BrokenPipeError: The reader has gone.
    """
    if sys.__stdout__ is None and getattr(sys.stdout, "name", os.devnull) == os.devnull:
        raise WriteError("standard output is closed: the table cannot be printed", hint="use -o FILE")
    try:
        sys.stdout.write(whole)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What could not be written stays in the buffer; Python must not try again on its way out.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise WriteError(f"standard output cannot be written: {error.strerror}") from error


def target(destination: str | None, table: RankTable, *, name: str | None = None) -> str:
    """Return the file a table goes to.

    Args:
        destination: A folder (it exists, or ends in a slash) or a file; None is the current folder.
        table: It has its own name in a folder.
        name: The name in a folder, where it is not the usual one.

    Raises:
        UsageError: A file whose name HCCL would not open.
    """
    if destination is None:
        return name or file_name(table)
    if destination.endswith(os.sep) or os.path.isdir(destination):
        return os.path.join(destination, name or file_name(table))
    if not destination.endswith(".json"):
        raise UsageError(
            f'-o "{destination}": HCCL opens no rank table whose name does not end in .json',
            hint=f"name a folder that exists, or a file such as {destination}.json",
        )
    return destination


def save(
    table: RankTable, path: str, *, force: bool = False, mode: int | None = None, product: str | None = None
) -> Saved:
    """Write a table, unless the same one stands there already.

    Args:
        table: What to write.
        path: From :func:`target`.
        force: Replace a file that holds something else.
        mode: The file's mode; None: 0666 minus the umask, and an existing file keeps its own.
        product: The product that the user has named for it, if any.

    Raises:
        TableError: Something else stands there and ``force`` is off.
        InputError: What stands there cannot be read.
        WriteError: It cannot be written; what was there still is.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        held = _held(path)
        if held == table:
            if mode is not None and os.stat(path).st_mode & 0o777 != mode:
                os.chmod(path, mode)
            return Saved(path, unchanged=True, product=to_be_named(product, table))
        if not force:
            what = "holds another table" if held is not None else "is not a rank table"
            raise TableError(f"{path} exists and {what}", hint="--force replaces it, -o writes elsewhere")
    written = write_atomically(path, formats.write(table), mode=mode)
    return Saved(written, product=to_be_named(product, table))


def _held(path: str) -> RankTable | None:
    """Return the table that a file holds, whatever its layout; None for anything else."""
    from hccl_tools.document.document import Document, read_file  # noqa: PLC0415  (only where a file stands already)

    try:
        return formats.read(Document.parse(read_file(path), path).value)
    except formats.StructureError:
        return None
