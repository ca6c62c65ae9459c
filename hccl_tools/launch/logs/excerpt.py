"""Extract the last traceback, the last lines and HCCL's error codes from the log of a failed rank."""

from __future__ import annotations

import os
import re

from hccl_tools.processes import run_files
from hccl_tools.processes.stack_dump import without_dumps

#: Bytes read from the end of a log.
_TAIL = 1 << 18
_LONGEST_LINE = 400
_MOST_TRACEBACK_LINES = 60
_TRACEBACK = "Traceback (most recent call last):"
#: Python's lines between two tracebacks of one failure.
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_CODE = r"(?<![A-Za-z0-9])E[IJ]\d{4}(?![A-Za-z0-9])"


def log_end(path: str) -> list[str]:
    """Return the lines at the end of a log, the newest last; a redrawn line in its last state only."""
    try:
        with open(run_files.open_read(path), "rb") as log:
            size = os.fstat(log.fileno()).st_size
            log.seek(max(0, size - _TAIL))
            data = log.read(_TAIL)
    except OSError:
        return []
    lines = data.decode(errors="replace").split("\n")
    if size > _TAIL:
        # The first line is incomplete; a log that is a single line is shown from its end.
        lines[0] = "" if any(lines[1:]) else "... " + lines[0][4 - _LONGEST_LINE :]
    return [_clean(line) for line in lines]


def _clean(line: str) -> str:
    shown = line.rstrip("\r").rpartition("\r")[2].rstrip()
    shown = "".join(character if character.isprintable() or character == "\t" else "?" for character in shown)
    return shown if len(shown) <= _LONGEST_LINE else shown[:_LONGEST_LINE] + " ..."


def last_lines(lines: list[str], count: int = 20) -> list[str]:
    """Return the last lines that are not empty and are the program's: no stack dumps, no messages of ours."""
    own = without_dumps(lines)
    return [line for line in own if line and not line.startswith('{"hccl_tools":')][-count:]


def last_traceback(lines: list[str]) -> list[str]:
    """Return the last Python traceback and its causes, shortened in the middle; [] if there is none."""
    starts = [number for number, line in enumerate(lines) if line.lstrip().startswith(_TRACEBACK)]
    if not starts:
        return []
    first = starts[-1]
    end = _traceback_end(lines, first)
    for start in reversed(starts[:-1]):
        if not any(line.startswith(_CHAINED) for line in lines[_traceback_end(lines, start) : first]):
            break
        first = start
    shown = lines[first:end]
    if len(shown) > _MOST_TRACEBACK_LINES:
        head, tail = _MOST_TRACEBACK_LINES // 4, _MOST_TRACEBACK_LINES * 3 // 4
        shown = [*shown[:head], f"  ... {len(shown) - head - tail} lines ...", *shown[-tail:]]
    return shown


def _traceback_end(lines: list[str], start: int) -> int:
    indent = len(lines[start]) - len(lines[start].lstrip())
    number = start + 1
    while number < len(lines) and lines[number].startswith(" " * (indent + 1)):
        number += 1
    # The exception's message may have several lines; an empty line ends it.
    while number < len(lines) and lines[number].strip():
        number += 1
    return number


def hccl_codes(lines: list[str]) -> list[str]:
    """Return HCCL's error codes in the lines (EI0006, EJ0003, ...), in order of their first occurrence."""
    return list(dict.fromkeys(code for line in lines for code in re.findall(_CODE, line)))
