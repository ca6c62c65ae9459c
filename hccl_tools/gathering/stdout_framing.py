"""Answers on standard output, between the other lines that ``mpirun`` or ``srun`` forwards.

Slurm keeps lines of up to 1024 bytes whole and may mix longer lines with other hosts' output, so a text is
sent in pieces: ``hccl-tools-gather HOST 1/3 TEXT``. A process can write any host there. Where the engine
labels the lines of each process (``srun --label``: ``3: TEXT``; Open MPI: ``[1,3]<stdout>:TEXT``), the label
decides.
"""

from __future__ import annotations

import re
import sys
from collections import deque

TYPE_CHECKING = False  # hosts get this module in an archive
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MARK = "hccl-tools-gather"
_PIECE = 800
_BEGAN = "began"
_MOST_OTHER = 10_000
#: The greatest length of what a host sends, in characters; an answer has some kilobytes.
MOST_OF_HOST = 1 << 22
#: The most pieces of an answer: a piece without text takes memory, too.
_MOST_PIECES = MOST_OF_HOST // _PIECE + 1
TOO_MUCH = f"it sent more than {MOST_OF_HOST >> 20} MiB instead of an answer"
TWO_ANSWERS = "two different answers came in its name: another host may have written one of them"
#: The greatest length of a line that is read at once; those of an answer are shorter.
LONGEST_LINE = 1 << 13
#: Digits of the number of a piece.
_MOST_DIGITS = 6
#: The labels of engines: the number of the process, from 0.
SRUN_LABEL = re.compile(r" {0,8}([0-9]{1,6}): ")
MPIRUN_LABEL = re.compile(r"\[[^][,\s]*,([0-9]{1,6})\]<std(?:out|err)>: ?")


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

    Args:
        hosts: The hosts that may answer.
        label: The form of the engine's label of each line; None if it has none.
        first: The number of the process on the first host; the other hosts follow in their order.
        answered: Called with each host whose text is complete, or whose process has started if ``by_start``.

    Attributes:
        began: The hosts whose process has started.
        other: The last lines that do not belong to an answer, each with the host whose process wrote it, or
            None for a line of the engine or without a label.
        flooded: The hosts that sent more than ``MOST_OF_HOST``; they have no text.
        is_flooded: Whether the lines without a label are more than that, although the engine writes labels: a
            host writes in place of the engine's daemon there.
        impostors: The hosts whose process wrote another host's name, and that name.
        contradicted: The hosts in whose names two different answers came, so that they have no text: a daemon
            of the engine on another host can write in the name of each process.
    """

    def __init__(
        self,
        hosts: Sequence[str] = (),
        *,
        label: re.Pattern[str] | None = None,
        first: int = 0,
        answered: Callable[[str], None] | None = None,
        by_start: bool = False,
    ) -> None:
        self.began: set[str] = set()
        self.other: deque[tuple[str | None, str]] = deque(maxlen=_MOST_OTHER)
        self.flooded: set[str] = set()
        self.is_flooded = False
        self.impostors: dict[str, str] = {}
        self.contradicted: set[str] = set()
        self._hosts, self._label, self._first = hosts, label, first
        self._answered, self._by_start = answered, by_start
        self._pieces: dict[str, dict[int, str]] = {host: {} for host in hosts}
        self._counts: dict[str, int] = {}
        self._sizes = dict.fromkeys(hosts, 0)
        self._of_others: dict[str | None, int] = {}
        self._sender: str | None = None
        self._is_cut = False

    def add_line(self, line: str) -> None:
        """Parse one line of output, or a part of a line that is longer than ``LONGEST_LINE``."""
        if self._is_cut:  # the rest of the line has no label: what looks like one is the text of the host
            self._add_other(self._sender, line)
        else:
            self._sender, text = self._split_label(line, self._label) if self._label else (None, line)
            self._add_text(self._sender, text)
        self._is_cut = self._label is not None and not line.endswith("\n")

    def _add_text(self, sender: str | None, text: str) -> None:
        mark, _, rest = text.rstrip("\r\n").partition(" ")
        host, _, rest = rest.partition(" ")
        place, _, piece = rest.partition(" ")
        number, slash, count = place.partition("/")
        if mark != _MARK or host not in self._pieces or (self._label and sender is None):
            self._add_other(sender, text)
        elif sender not in {None, host}:
            self.impostors[str(sender)] = host
        elif place == _BEGAN:
            self.began.add(host)
            self._count_answer(host, counts=self._by_start)
        elif slash and _is_number(number) and _is_number(count):
            self._add_piece(host, int(number), int(count), piece)

    def _add_other(self, sender: str | None, text: str) -> None:
        self.other.append((sender, text))
        self._of_others[sender] = self._of_others.get(sender, 0) + len(text)
        if self._label is None or self._of_others[sender] <= MOST_OF_HOST:
            return
        if sender is None:
            self.is_flooded = True
        else:
            self.flooded.add(sender)
            self._pieces[sender] = {}

    def _split_label(self, line: str, label: re.Pattern[str]) -> tuple[str | None, str]:
        """Return the host that sent a line and the line without label; None for a line of the engine."""
        found = label.match(line)
        index = int(found[1]) - self._first if found else -1
        if found and 0 <= index < len(self._hosts):
            return self._hosts[index], line[found.end() :]
        return None, line

    def _add_piece(self, host: str, number: int, count: int, piece: str) -> None:
        self._sizes[host] += len(piece) + 1
        known = self._counts.setdefault(host, count), self._pieces[host].get(number, piece)
        if known != (count, piece):
            self.contradicted.add(host)
        if host in self.flooded or self._sizes[host] > MOST_OF_HOST or number > _MOST_PIECES:
            self.flooded.add(host)
            self._pieces[host] = {}
        else:
            self._pieces[host][number] = piece
            self._count_answer(host, counts=len(self._pieces[host]) == self._counts[host])

    def _count_answer(self, host: str, *, counts: bool) -> None:
        if counts and self._answered is not None:
            self._answered(host)

    def text(self, host: str) -> str | None:
        """Return the text of a host, None if it is not complete."""
        pieces = self._pieces[host]
        if not pieces or len(pieces) != self._counts[host] or host in self.contradicted:
            return None
        return "".join(pieces[number] for number in sorted(pieces))

    def texts(self) -> dict[str, str]:
        """Return the complete texts, by host."""
        return {host: text for host in self._pieces if (text := self.text(host)) is not None}
