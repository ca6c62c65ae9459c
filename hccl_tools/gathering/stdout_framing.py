"""Answers on standard output, between the other lines that ``mpirun`` or ``srun`` forwards.

Slurm keeps lines of up to 1024 bytes whole and may mix longer lines with other hosts' output, so a text is
sent in pieces: ``hccl-tools-gather HOST 1/3 TEXT``.
"""

from __future__ import annotations

import sys
from collections import deque

_MARK = "hccl-tools-gather"
_PIECE = 800
_BEGAN = "began"
_MOST_OTHER = 10_000
#: Digits of the number of a piece.
_MOST_DIGITS = 6


def began(host: str) -> None:
    """Report that the process on this host has started."""
    sys.stdout.write(f"{_MARK} {host} {_BEGAN}\n")
    sys.stdout.flush()


def emit(host: str, text: str) -> None:
    """Write a text (ASCII, one line) in pieces."""
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    for number, piece in enumerate(pieces, 1):
        sys.stdout.write(f"{_MARK} {host} {number}/{len(pieces)} {piece}\n")
    sys.stdout.flush()


def _is_number(text: str) -> bool:
    return len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal()


class EngineOutput:
    """The output of an engine, parsed line by line.

    Attributes:
        began: The hosts whose process has started.
        other: The last lines that do not belong to an answer.
    """

    def __init__(self) -> None:
        self.began: set[str] = set()
        self.other: deque[str] = deque(maxlen=_MOST_OTHER)
        self._pieces: dict[str, dict[int, str]] = {}
        self._counts: dict[str, int] = {}

    def add_line(self, line: str) -> None:
        """Parse one line of output."""
        mark, _, rest = line.rstrip("\n").partition(" ")
        host, _, rest = rest.partition(" ")
        place, _, piece = rest.partition(" ")
        number, slash, count = place.partition("/")
        if mark != _MARK:
            self.other.append(line)
        elif place == _BEGAN:
            self.began.add(host)
        elif slash and _is_number(number) and _is_number(count):
            self._counts[host] = int(count)
            self._pieces.setdefault(host, {})[int(number)] = piece

    def texts(self) -> dict[str, str]:
        """Return the complete texts, by host."""
        return {
            host: "".join(pieces[number] for number in sorted(pieces))
            for host, pieces in self._pieces.items()
            if len(pieces) == self._counts[host]
        }
