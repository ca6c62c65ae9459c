"""Name the rank tables of the current folder to a user who has given none."""

from __future__ import annotations

import os
from itertools import islice

from hccl_tools.launch.planning import program_check
from hccl_tools.notation.phrases import and_more, operand

#: Entries of the folder that are looked at.
_MOST = 500
#: Tables that are read for a suggestion.
_MOST_READ = 8


def names() -> list[str]:
    """Return the names of the rank tables of the current folder, the one that was written last first."""
    try:
        with os.scandir() as entries:
            found = [one for one in islice(entries, _MOST) if one.name.endswith(".json") and one.is_file()]
            files = sorted((-one.stat().st_mtime_ns, one.name) for one in found)
    except OSError:
        return []
    return [name for _age, name in files if program_check.is_table(name)]


def sound_first() -> list[str]:
    """Return the names as ``names`` does, those of tables without errors before the others."""
    found, is_sound = names(), program_check.suggestions().is_sound
    return [*sorted(found[:_MOST_READ], key=lambda name: not is_sound(name)), *found[_MOST_READ:]]


def hint() -> str:
    """Return what to type for the tables of the current folder; "" without one."""
    found = names()
    if not found:
        return ""
    if len(found) == 1:
        return f"this folder has a table: --rank-table {operand(found[0])}"
    return f"this folder has tables: {and_more([operand(name) for name in found])}"
