"""A group of commands, one per module, which are loaded when called, and the layout of their ``--help``."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from hccl_tools import load_part
from hccl_tools.cli.help_option import QuickHelp
from hccl_tools.errors import UsageError
from hccl_tools.notation.screen import cells, each_fitted, padded, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

#: Commands whose arguments are words to look for.
_TAKE_WORDS = ("explain", "rules", "guide")
#: The key of the call as it was typed, with the name of the tool, in ``click.Context.meta``.
TYPED_CALL = "hccl_tools.typed_call"
#: click's mark: the lines of the paragraph stay as they are.
_KEPT = "\b"
#: An example: the spaces before it, the command, and after two spaces or more what it does.
_EXAMPLE = r"( *)(\S.*?)(?: {2,}(\S.*))?"
#: A word of a command line, with the blanks in quotes.
_WORD = r"""(?:"[^"]*"|'[^']*'|\S)+"""
#: The name of an option, and the sign for its hyphens, at which lines are not broken.
_OPTION, _HELD = r"--[a-z][a-z0-9-]+", "\u2011"
_SPACES = "  "
#: The share of the width that commands may take where the explanations need more than one line.
_COMMANDS = 0.55
#: Columns that an explanation has beside the commands.
_NARROWEST = 24


def usage() -> ModuleType:
    """Load the module that says what is wrong with a call, and what to type instead."""
    return load_part("cli.usage")


class Context(click.Context):
    """A context whose help is laid out by ``Formatter``."""

    def make_formatter(self) -> click.HelpFormatter:
        """Return the formatter of ``--help``."""
        return Formatter(width=self.terminal_width, max_width=self.max_content_width)


class LazyGroup(QuickHelp, click.Group):
    """A group whose ``members`` are command names with their descriptions.

    The command ``x-y`` is ``command`` in ``hccl_tools.cli.x_y``, in a group with the prefix ``group_`` in
    ``hccl_tools.cli.group_x_y``.
    """

    context_class = Context

    def __init__(self, *args: Any, members: Mapping[str, str], prefix: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._members, self._prefix = members, prefix

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """Return the names in their order."""
        return list(self._members)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; ``None`` if it does not exist."""
        if cmd_name not in self._members:
            return None
        module = import_module(f"hccl_tools.cli.{self._prefix}{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        command.context_class = Context
        if ctx.resilient_parsing:  # the shell completes a command line
            command = load_part("cli.completion").equip(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; for an unknown name say which command is meant.

        Raises:
            UsageError: The command does not exist, or an option is typed with a dash instead of hyphens.
        """
        ctx.meta[TYPED_CALL] = (*ctx.command_path.split(), *args)
        is_unknown = bool(args) and args[0] not in self._members and args[0][:1] != "-"
        if not ctx.resilient_parsing and (is_unknown or any(not arg[:2].isascii() for arg in args)):
            usage().refuse_words(ctx, self, args)
        if args[1:] == ["help"] and args[0] not in _TAKE_WORDS and not os.path.lexists("help"):
            raise UsageError(
                f'"help" is not an argument of {args[0]}', hint=f"type `{ctx.command_path} {args[0]} --help`"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands with their descriptions, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._members.items()))


class Formatter(click.HelpFormatter):
    """A formatter that lays out examples in two columns that fit the screen, like the options."""

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
    return re.sub(_OPTION, lambda match: match[0].replace("-", _HELD), text)


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
    found = [match.groups() for line in lines if (match := re.fullmatch(_EXAMPLE, line))]
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
    for word in re.findall(_WORD, command):
        if line.strip() and cells(f"{line} {word} \\") > room and cells(f"{line} {word}") > room:
            yield line if line.lstrip().startswith("{") else f"{line} \\"  # JSON goes on without a mark.
            line = f"{lead}    {word}"
        else:
            line = f"{line} {word}" if line.strip() else line + word
    yield line
