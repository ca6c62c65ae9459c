"""Check and write a new table or ConfigMap, or print it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hccl_tools import formats
from hccl_tools.diagnostics import render
from hccl_tools.document.document import Document
from hccl_tools.document.reading import read_file
from hccl_tools.document.writing import change_mode, is_folder, write_atomically
from hccl_tools.errors import TableError, UsageError, WriteError
from hccl_tools.files import next_command
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import on_stdout
from hccl_tools.records import NamedTuple
from hccl_tools.table.products import assumed_for
from hccl_tools.transform.generation import file_name
from hccl_tools.validation import checker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.formats.kubernetes.names import ConfigMapName
    from hccl_tools.table.model import RankTable


#: Standard output in place of a file.
STDOUT = "-"


class Saved(NamedTuple):
    """A saved table: its file, whether the file was up to date, and the product for later commands."""

    path: str
    unchanged: bool = False
    product: str | None = None

    def summary(self, table: RankTable, service: str | None = None, *, simulated: bool = False) -> str:
        """Return the result and the next command; see :func:`hccl_tools.files.next_command.launch`."""
        done = "already up to date:" if self.unchanged else "wrote"
        command = next_command.launch(
            table, self.path, product=self.product, service=service, simulated=simulated
        )
        return f"{done} {self.path}\n{next_command.explained(command)}"


def parse_mode(digits: str) -> int:
    """Parse a file mode of three or four octal digits, as for ``chmod``.

    Raises:
        UsageError: The text is not a file mode, or the owner could not read the file.

    >>> oct(parse_mode("640"))
    '0o640'
    """
    if not 3 <= len(digits) <= 4 or set(digits) - set("01234567"):
        raise UsageError(
            f'--mode "{digits}" is not a file mode', hint="specify octal digits as for chmod: 640"
        )
    mode = int(digits, 8)
    if mode > 0o777 or not mode & 0o400:
        raise UsageError(
            f'--mode "{digits}" must allow the owner to read, and be at most 777', hint="specify 640"
        )
    return mode


def to_be_named(product: str | None, table: RankTable) -> str | None:
    """Return the product that the user specified, unless it is also assumed for such a table."""
    return None if product == assumed_for(table.format).name else product


def check(
    table: RankTable, *, product: str | None, ignore: Sequence[str] = (), name: str | None = None
) -> Report:
    """Return the report of ``validate`` on a table that is not written yet.

    A table with findings is checked as text, so that each finding has a line and column. ``name`` is the file
    name in the report; by default the usual name for the table.
    """
    report = checker.check_table(table, product=product, ignore=ignore)
    if report.ok:
        return report
    report = checker.validate(table_text(table).encode(), product=product, ignore=ignore)
    return report._replace(file=name or file_name(table))


def findings_text(report: Report, width: int | None = None) -> str:
    """Return the findings as ``validate`` shows them on a screen of this width."""
    return "".join(render([report], "text", show_all=False, color=False, width=width))


def refusal(report: Report) -> TableError:
    """Return the error for a table that is not written, with its first finding."""
    first, *others = report.errors
    more = f" (and {count(len(others), 'more error')})" if others else ""
    return TableError(f"no table is written: {first.message}{more}", hint=first.hint)


def table_text(table: RankTable) -> str:
    """Return the whole text of a table."""
    return "".join(formats.write(table))


def print_text(whole: str) -> None:
    """Print the complete text of a table on standard output.

    Raises:
        WriteError: Standard output is closed or cannot be written, for example because the disk is full.
        BrokenPipeError: The reader closed the pipe.
    """
    if sys.__stdout__ is None and getattr(sys.stdout, "name", os.devnull) == os.devnull:
        raise WriteError("standard output is closed: the table cannot be printed", hint="use -o FILE")
    try:
        sys.stdout.write(on_stdout(whole))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # The unwritten text stays in the buffer; Python must not try to flush it at exit.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise WriteError(f"standard output cannot be written: {error.strerror}") from error


def target(destination: str | None, table: RankTable, *, name: str | None = None) -> str:
    """Return the file for a table.

    Args:
        destination: A folder (existing, or with a final slash) or a file; None is the current folder.
        name: The file name in a folder; by default the usual name for the table.

    Raises:
        UsageError: HCCL does not open a file with this name.
    """
    if destination is None:
        return name or file_name(table)
    if is_folder(destination):
        return os.path.join(destination, name or file_name(table))
    require_json(destination)
    return destination


def require_json(destination: str) -> None:
    """Refuse a file name that HCCL does not open.

    Raises:
        UsageError: The name does not end in ``.json``.
    """
    if not destination.endswith(".json"):
        raise UsageError(
            f'-o "{destination}": HCCL opens only files whose name ends in .json',
            hint=f"specify a folder that exists, or a file such as {_as_json(destination)}",
        )


def _as_json(destination: str) -> str:
    stem, ending = os.path.splitext(destination)
    return f"{stem if ending in {'.yaml', '.yml', '.txt'} else destination}.json"


def save(
    table: RankTable, path: str, *, force: bool = False, mode: int | None = None, product: str | None = None
) -> Saved:
    """Write a table, unless the file already contains an equal table.

    Args:
        mode: The mode of the file; None for the mode of an existing file, else 0666 minus the umask.
        product: The product that the user specified, if any.

    Raises:
        TableError: The file has other contents and ``force`` is off.
        InputError: The existing file cannot be read.
        WriteError: The file cannot be written; an existing file is unchanged.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        content = read_file(path)
        existing = _table_in(content, path)
        if existing == table:
            if mode is not None:
                change_mode(path, mode, content)
            return Saved(path, unchanged=True, product=to_be_named(product, table))
        if not force:
            what = "contains another table" if existing is not None else "is not a rank table"
            raise TableError(f"{path} exists and {what}", hint="--force replaces it, -o writes elsewhere")
    written = write_atomically(path, formats.write(table), mode=mode, create=not force)
    return Saved(written, product=to_be_named(product, table))


def _table_in(content: bytes, path: str) -> RankTable | None:
    try:
        return formats.read(Document.parse(content, path).value)
    except formats.StructureError:
        return None


def config_map_target(destination: str | None, names: ConfigMapName) -> str:
    """Return the file for a ConfigMap.

    Args:
        destination: A folder (existing, or with a final slash) or a file; None is the current folder.
    """
    name = f"{names.name}{config_maps.ENDING}"
    if destination is None:
        return name
    return os.path.join(destination, name) if is_folder(destination) else destination


def save_config_map(text: str, path: str, *, force: bool = False, mode: int | None = None) -> str:
    """Write a ConfigMap unless its file is up to date, and return the result as a phrase with the file.

    Args:
        mode: The mode of the file; None for the mode of an existing file, else 0666 minus the umask.

    Raises:
        TableError: The file has other contents and ``force`` is off.
        InputError: The existing file cannot be read.
        WriteError: The file cannot be written; an existing file is unchanged.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        if (content := read_file(path)) == text.encode():
            if mode is not None:
                change_mode(path, mode, content)
            return f"already up to date: {path}"
        if not force:
            raise TableError(
                f"{path} exists and has other contents", hint="--force replaces it, -o writes elsewhere"
            )
    return f"wrote {write_atomically(path, [text], mode=mode, create=not force)}"
