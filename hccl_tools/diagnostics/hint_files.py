"""The files in the commands of hints: their names are known only with the report on a table."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from hccl_tools.notation.hint import Hint, unused
from hccl_tools.notation.phrases import operand

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Report

#: The file that a command reads if the text of a table is in none.
_USUAL_FILE = "table.json"


def with_files(hint: str, report: Report) -> str:
    """Return a hint whose command reads the file of a report, and writes another one beside it.

    A table that is in no file, or is a part of one, must be in a file of its own first.
    """
    if not isinstance(hint, Hint):
        return hint
    file, first = report.file, ""
    if report.origin is not None or not os.path.isfile(file):  # noqa: PTH113  (not loaded for it)
        extracted = report.origin.extracted if report.origin is not None else ""
        (file,) = shlex.split(extracted) or [unused(_USUAL_FILE)]
        first = f"with the text in {operand(file)}, "
    new = f"{os.path.splitext(file)[0]}.new.json"  # noqa: PTH122
    return first + hint.filled_in(operand(file), operand(unused(new)))
