"""The types of option values. Their error messages have one form: ``"x" is not ...``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import Context, Parameter
    from click.shell_completion import CompletionItem

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not generic before click 8.4


#: Settings of a command whose options may be written with underscores or hyphens: --device_num, --device-num.
#: Choices are matched the same way: group_list, group-list.
EITHER_SPELLING = {"token_normalize_func": lambda name: name.replace("_", "-")}


class Choice(_Choice):
    """One of a few names: accepted with ``_`` or ``-``, shown as declared."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str:
        """Return the name as declared."""
        for choice in self.choices:
            if _plain(choice) == _plain(value):
                return choice
        raise click.BadParameter(f'"{value}" is not one of {", ".join(self.choices)}', ctx, param)

    def get_metavar(self, param: Parameter, ctx: Context | None = None) -> str:  # noqa: ARG002  (click's)
        """Return the names for the help."""
        return f"[{'|'.join(self.choices)}]"

    def shell_complete(
        self,
        ctx: Context,  # noqa: ARG002  (click's signature)
        param: Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the names with this beginning, as declared."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  (only for the shell)

        typed = _plain(incomplete)
        return [CompletionItem(choice) for choice in self.choices if _plain(choice).startswith(typed)]


def _plain(name: str) -> str:
    return name.replace("_", "-")


class IntRange(click.IntRange):
    """A whole number between bounds."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            span = f"{self.min} or more" if self.max is None else f"{self.min} to {self.max}"
            raise click.BadParameter(f'"{value}" is not a whole number, {span}', ctx, param) from None
