"""The types of option values. Each says in one style what is wrong with a value: ``"x" is not ...``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import Context, Parameter

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not generic before click 8.4


class Choice(_Choice):
    """One of a few words."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str:
        """Return the word as it was declared, whatever its spelling on the command line."""
        normalize = (ctx and ctx.token_normalize_func) or str
        for choice in self.choices:
            if normalize(choice) == normalize(value):
                return choice
        raise click.BadParameter(f'"{value}" is not one of {", ".join(self.choices)}', ctx, param)


class IntRange(click.IntRange):
    """A whole number between bounds."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            span = f"{self.min} or more" if self.max is None else f"{self.min} to {self.max}"
            raise click.BadParameter(f'"{value}" is not a whole number, {span}', ctx, param) from None
