"""The layout of ``--help``: examples in two columns that fit the screen, like the options."""

from __future__ import annotations

import re
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

import click

from hccl_tools.notation.screen import cells, each_fitted, padded, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: click's mark: the lines of the paragraph stay as they are.
_KEPT = "\b"
#: An example: the spaces before it, the command, and after two spaces or more what it does.
_EXAMPLE = re.compile(r"( *)(\S.*?)(?: {2,}(\S.*))?")
#: A word of a command line, with the blanks in quotes.
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
#: The name of an option, and the sign for its hyphens, at which lines are not broken.
_OPTION, _HELD = re.compile(r"--[a-z][a-z0-9-]+"), "\u2011"
_SPACES = "  "
#: The share of the width that commands may take where the explanations need more than one line.
_COMMANDS = 0.55
#: Columns that an explanation has beside the commands.
_NARROWEST = 24


class Formatter(click.HelpFormatter):
    """A formatter that lays out examples."""

    def write_text(self, text: str) -> None:
        """Write paragraphs; those whose lines are kept are laid out if lines are too long for the screen."""
        room = self.width - self.current_indent
        paragraphs = text.split("\n\n")
        with self._whole_options():
            super().write_text(_held("\n\n".join(_fitted(paragraph, room) for paragraph in paragraphs)))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write options or commands with their descriptions."""
        with self._whole_options():
            super().write_dl([(name, _held(text)) for name, text in rows], col_max, col_spacing)

    @contextmanager
    def _whole_options(self) -> Iterator[None]:
        """Write the hyphens of options that ``_held`` has replaced."""
        before = len(self.buffer)
        yield
        self.buffer[before:] = [part.replace(_HELD, "-") for part in self.buffer[before:]]


def _held(text: str) -> str:
    """Return a text in which no line break can be inside the name of an option."""
    return _OPTION.sub(lambda match: match[0].replace("-", _HELD), text)


def _fitted(paragraph: str, room: int) -> str:
    lines = paragraph.strip("\n").split("\n")
    if lines[0].strip() != _KEPT or all(cells(line) <= room for line in lines):
        return paragraph
    laid_out = [lines[0]]
    for is_example, group in groupby(lines[1:], key=lambda line: line.startswith(" ")):
        several = list(group)
        laid_out += _examples(several, room) if is_example else each_fitted(several, room)
    return "\n".join(laid_out)


def _examples(lines: Sequence[str], room: int) -> Iterator[str]:
    """Yield examples in two columns; the explanation of a longer command is below it."""
    found = [match.groups() for line in lines if (match := _EXAMPLE.fullmatch(line))]
    explained = [cells(lead + command) for lead, command, what in found if what]
    column = max((size for size in explained if size <= room * _COMMANDS), default=0) + len(_SPACES)
    if room - column < _NARROWEST or column <= len(_SPACES):
        column = 6  # More than the commands are indented.
    for lead, command, what in found:
        *above, last = _command(command, lead, room)
        yield from above
        if not what:
            yield last
            continue
        first, *rest = wrapped(" " * column + what, room, " " * column)
        fits = not above and cells(last) + len(_SPACES) <= column
        yield from [padded(last, column) + first[column:]] if fits else [last, first]
        yield from rest


def _command(command: str, lead: str, room: int) -> Iterator[str]:
    """Yield a command line, continued on further lines as a shell reads them."""
    line = lead
    for word in _WORD.findall(command):
        if line.strip() and cells(f"{line} {word} \\") > room and cells(f"{line} {word}") > room:
            yield line if line.lstrip().startswith("{") else f"{line} \\"  # JSON goes on without a mark.
            line = f"{lead}    {word}"
        else:
            line = f"{line} {word}" if line.strip() else line + word
    yield line
