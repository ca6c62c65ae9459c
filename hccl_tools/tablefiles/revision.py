"""The name of a changed table: ``job.r1.json`` beside ``job.json``, never one that is there already."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hccl_tools.errors import TableError, UsageError

_REVISION = re.compile(r"(.+)\.r([0-9]{1,4})")


def next_name(path: str) -> str:
    """Return the name of the next revision: ``job.r1.json`` for ``job.json``, ``job.r2.json`` for that.

    >>> next_name("tables/job.r1.json")
    'job.r2.json'
    """
    stem = Path(path).stem
    match = _REVISION.fullmatch(stem)
    return f"{match[1]}.r{int(match[2]) + 1}.json" if match else f"{stem}.r1.json"


def target(path: str, destination: str | None) -> str:
    """Return where a changed table goes.

    Args:
        path: The table that was changed.
        destination: A folder or a file that is not there yet; None is the table's own folder.

    Raises:
        TableError: The file is there already.
        UsageError: A file whose name HCCL would not open.
    """
    if destination is None or destination.endswith(os.sep) or Path(destination).is_dir():
        folder = Path(path).parent if destination is None else Path(destination)
        found = folder / next_name(path)
        while os.path.lexists(found):
            found = folder / next_name(found.name)
        return str(found)
    if not destination.endswith(".json"):
        raise UsageError(
            f'-o "{destination}": HCCL opens no rank table whose name does not end in .json',
            hint=f"name a folder that exists, or a file such as {destination}.json",
        )
    if os.path.lexists(destination):
        raise TableError(
            f"{destination} is there already, and a table that jobs may use is never written over",
            hint="name a new file, or leave -o out",
        )
    return destination
