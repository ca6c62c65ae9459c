"""The option ``--help`` of every command, and options whose help needs no cleaning."""

from __future__ import annotations

from typing import Any

import click


class Option(click.Option):
    """An option whose help is one line: click would load ``inspect`` to clean it."""

    def __init__(self, *args: Any, help: str | None = None, **attributes: Any) -> None:  # noqa: A002  (click's name)
        super().__init__(*args, **attributes)
        self.help = help


class QuickHelp(click.Command):
    """A command whose ``--help`` has its text here: click looks for a translation, which takes 1 ms."""

    _help: click.Option | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option, always the same."""
        if self._help is None:
            names = self.get_help_option_names(ctx)
            self._help = Option(
                [*names, "_show_help"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_help,
                help="Show this message and exit.",
            )
        return self._help


def _show_help(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
