"""Name the rank tables of the current folder to a user who has given none."""

from __future__ import annotations

import os
from itertools import islice

from hccl_tools.launch.planning import script_kind
from hccl_tools.notation.phrases import and_more, operand

#: Entries of the folder that are looked at.
_MOST = 500


def hint() -> str:
    """Return what to type for the tables of the current folder; "" without one."""
    try:
        with os.scandir() as entries:
            files = [
                one.name for one in islice(entries, _MOST) if one.name.endswith(".json") and one.is_file()
            ]
    except OSError:
        return ""
    names = [name for name in sorted(files) if script_kind.is_table(name)]
    if not names:
        return ""
    if len(names) == 1:
        return f"this folder has a table: --rank-table {operand(names[0])}"
    return f"this folder has tables: {and_more([operand(name) for name in names])}"
