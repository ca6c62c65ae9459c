"""Where a new table goes, and what may stand there already."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools import formats
from hccl_tools.document import Document, read_file, write_atomically
from hccl_tools.errors import TableError, UsageError

if TYPE_CHECKING:
    from hccl_tools.table import RankTable

#: Standard output in place of a file.
STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Saved:
    """Where the table is, and whether it stood there already."""

    path: Path
    unchanged: bool = False


def parse_mode(text: str) -> int:
    """Return a file mode as ``chmod`` takes it: three or four octal digits.

    Raises:
        UsageError: It is none, or its owner could not read the file.

    >>> oct(parse_mode("640"))
    '0o640'
    """
    if not 3 <= len(text) <= 4 or set(text) - set("01234567"):
        raise UsageError(f'--mode "{text}" is no file mode', hint="give octal digits as for chmod, such as 640")
    mode = int(text, 8)
    if mode > 0o777 or not mode & 0o400:
        raise UsageError(f'--mode "{text}" is no mode for a table', hint="its owner must be able to read it: 640")
    return mode


def target(destination: str | None, file_name: str) -> Path:
    """Return the file a table goes to.

    Args:
        destination: A folder (it exists, or ends in a slash) or a file; None is the current folder.
        file_name: The table's own name, in a folder.

    Raises:
        UsageError: A file whose name HCCL would not open.
    """
    if destination is None:
        return Path(file_name)
    if destination.endswith(os.sep) or Path(destination).is_dir():
        return Path(destination, file_name)
    if not destination.endswith(".json"):
        raise UsageError(
            f'-o "{destination}": HCCL opens no rank table whose name does not end in .json',
            hint=f"name a folder that exists, or a file such as {destination}.json",
        )
    return Path(destination)


def save(table: RankTable, path: Path, *, force: bool = False, mode: int | None = None) -> Saved:
    """Write a table, unless the same one stands there already.

    Args:
        table: What to write.
        path: From :func:`target`.
        force: Replace a file that holds something else.
        mode: The file's mode; None: 0666 minus the umask, and an existing file keeps its own.

    Raises:
        TableError: Something else stands there and ``force`` is off.
        InputError: What stands there cannot be read.
        WriteError: It cannot be written; what was there still is.
    """
    if os.path.lexists(path) and not path.is_dir():
        if path.exists() and _holds(path, table):
            if mode is not None and path.stat().st_mode & 0o777 != mode:
                path.chmod(mode)
            return Saved(path, unchanged=True)
        if not force and path.exists():
            raise TableError(
                f"{path} exists and holds another table", hint="--force replaces it, -o writes elsewhere"
            )
    return Saved(write_atomically(path, formats.write(table), mode=mode))


def _holds(path: Path, table: RankTable) -> bool:
    """Return whether a file is this table, whatever its layout; unknown or broken contents are another one."""
    value = Document.parse(read_file(path), str(path)).value
    try:
        return formats.read(value) == table
    except formats.StructureError:
        return False
