"""A group of commands, one per module, which are loaded when they are called."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli.help_text import Formatter
from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


#: Commands whose arguments are words to look for.
_TAKE_WORDS = ("explain", "rules", "guide")
#: The key of the call as it was typed, with the name of the tool, in ``click.Context.meta``.
TYPED_CALL = "hccl_tools.typed_call"


class Context(click.Context):
    """A context whose help is laid out by ``help_text``."""

    def make_formatter(self) -> click.HelpFormatter:
        """Return the formatter of ``--help``."""
        return Formatter(width=self.terminal_width, max_width=self.max_content_width)


class LazyGroup(click.Group):
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
            from hccl_tools.cli.completion import equip  # noqa: PLC0415  (24 ms; only at TAB)

            return equip(command)
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
            from hccl_tools.cli import usage  # noqa: PLC0415  (61 ms; the call is wrong)

            usage.refuse_words(ctx, self, args)
        if args[1:] == ["help"] and args[0] not in _TAKE_WORDS and not os.path.lexists("help"):
            raise UsageError(
                f'"help" is not an argument of {args[0]}', hint=f"type `{ctx.command_path} {args[0]} --help`"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands with their descriptions, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._members.items()))
