"""The file name of a changed table: ``job.r1.json`` next to ``job.json``, never an existing file."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hccl_tools.errors import TableError, UsageError

_REVISION = re.compile(r"(.+)\.r([0-9]{1,4})")


def next_name(path: str) -> str:
    """Return the name of the next revision: ``job.r1.json`` for ``job.json``, then ``job.r2.json``.

    >>> next_name("tables/job.r1.json")
    'job.r2.json'
    """
    stem = Path(path).stem
    match = _REVISION.fullmatch(stem)
    return f"{match[1]}.r{int(match[2]) + 1}.json" if match else f"{stem}.r1.json"


def require_json(destination: str) -> None:
    """Refuse a file name that HCCL does not open.

    Raises:
        UsageError: The name does not end in ``.json``.
    """
    if not destination.endswith(".json"):
        raise UsageError(
            f'-o "{destination}": HCCL opens only files whose name ends in .json',
            hint=f"specify a folder that exists, or a file such as {destination}.json",
        )


def target(path: str, destination: str | None) -> str:
    """Return the file for a changed table.

    Args:
        destination: A folder or a new file; None is the folder of the original table.

    Raises:
        TableError: The file exists.
        UsageError: HCCL does not open a file with this name.
    """
    if destination is None or destination.endswith(os.sep) or Path(destination).is_dir():
        folder = Path(path).parent if destination is None else Path(destination)
        found = folder / next_name(path)
        while os.path.lexists(found):
            found = folder / next_name(found.name)
        return str(found)
    require_json(destination)
    if os.path.lexists(destination):
        raise TableError(
            f"{destination} exists; a table that jobs may use is not overwritten",
            hint="specify a new file, or omit -o",
        )
    return destination
