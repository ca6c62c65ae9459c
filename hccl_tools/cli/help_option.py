"""The option ``--help`` of every command."""

from __future__ import annotations

import click


class QuickHelp(click.Command):
    """A command whose ``--help`` has its text here: click looks for a translation, which takes 1 ms."""

    _help: click.Option | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option, always the same."""
        if self._help is None:
            names = self.get_help_option_names(ctx)
            self._help = click.Option(
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
