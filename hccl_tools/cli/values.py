"""The types of option values. Each says in one style what is wrong with a value: ``"x" is not ...``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import Context, Parameter
    from click.shell_completion import CompletionItem

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not generic before click 8.4


class Choice(_Choice):
    """One of a few words: ``rank_loop`` or ``rank-loop``, but shown as it is declared."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str:
        """Return the word as it is declared."""
        for choice in self.choices:
            if _plain(choice) == _plain(value):
                return choice
        raise click.BadParameter(f'"{value}" is not one of {", ".join(self.choices)}', ctx, param)

    def shell_complete(
        self,
        ctx: Context,  # noqa: ARG002  (click's signature)
        param: Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the words that begin so, as they are declared."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  (only for the shell)

        typed = _plain(incomplete)
        return [CompletionItem(choice) for choice in self.choices if _plain(choice).startswith(typed)]


def _plain(word: str) -> str:
    return word.replace("_", "-")


class IntRange(click.IntRange):
    """A whole number between bounds."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            span = f"{self.min} or more" if self.max is None else f"{self.min} to {self.max}"
            raise click.BadParameter(f'"{value}" is not a whole number, {span}', ctx, param) from None
