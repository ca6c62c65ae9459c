"""The file name of a changed table, next to the old table: its letter says what was done; it never exists.

``job.r1.json`` is ``job.json`` after a replacement, ``job.s1.json`` a subset of it, and ``job.s1.r2.json``
that subset after two replacements.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from hccl_tools.document.writing import is_folder
from hccl_tools.errors import TableError
from hccl_tools.files.outputs import require_json

#: What a command has done to a table: the letter in the name of the new file.
Change = Literal["r", "s"]

_REVISION = re.compile(r"(.+)\.([rs])([0-9]{1,4})")


def next_name(path: str, change: Change) -> str:
    """Return the name of the next revision: ``job.r1.json`` for ``job.json``, then ``job.r2.json``.

    >>> next_name("tables/job.r1.json", "r"), next_name("job.r1.json", "s")
    ('job.r2.json', 'job.r1.s1.json')
    """
    stem = Path(path).stem
    match = _REVISION.fullmatch(stem)
    if match and match[2] == change:
        return f"{match[1]}.{change}{int(match[3]) + 1}.json"
    return f"{stem}.{change}1.json"


def target(path: str, destination: str | None, change: Change) -> str:
    """Return the file for a changed table.

    Args:
        destination: A folder or a new file; None is the folder of the original table.

    Raises:
        TableError: The file exists.
        UsageError: HCCL does not open a file with this name.
    """
    if destination is None or is_folder(destination):
        folder = Path(path).parent if destination is None else Path(destination)
        found = folder / next_name(path, change)
        while os.path.lexists(found):
            found = folder / next_name(found.name, change)
        return str(found)
    require_json(destination)
    if os.path.lexists(destination):
        raise TableError(
            f"{destination} exists; a table that jobs may use is not overwritten",
            hint="specify a new file, or omit -o",
        )
    return destination
