"""The types of option values. Their error messages have one form: ``"x" is not ...``."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.errors import UsageError
from hccl_tools.notation import durations
from hccl_tools.notation.look_alikes import mistyped, plain

if TYPE_CHECKING:
    from click import Context, Parameter

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not generic before click 8.4


def hyphenated(name: str) -> str:
    """Return a name with hyphens; options and choices are compared in this form."""
    return name.replace("_", "-")


#: Settings of a command whose options may be written with underscores or hyphens: --device_num, --device-num.
#: Choices are matched the same way: group_list, group-list.
EITHER_SPELLING = {"token_normalize_func": hyphenated}


def _refusal(value: Any, problem: str, param: Parameter | None, ctx: Context | None) -> Exception:
    """Return the error for a value; full-width digits or commas are named if the value is valid without."""
    other = click.BadParameter(f'"{value}" {problem}', ctx, param)
    typed = mistyped(str(value))
    if typed is None or param is None:
        return other
    try:
        param.type.convert(plain(str(value)), param, ctx)
    except click.BadParameter:
        return other
    return UsageError(f"{param.opts[0]}: {typed[0]}", hint=typed[1])


class Choice(_Choice):
    """One of a few names: accepted with ``_`` or ``-``, shown as declared."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str:
        """Return the choice that the user typed, in the spelling of the declaration."""
        for choice in self.choices:
            if hyphenated(choice) == hyphenated(value):
                return choice
        raise _refusal(value, f"is not one of {', '.join(self.choices)}", param, ctx)

    def get_metavar(self, param: Parameter, ctx: Context | None = None) -> str:  # noqa: ARG002  (click's)
        """Return the names for the help."""
        return f"[{'|'.join(self.choices)}]"

    def names(self, beginning: str) -> list[str]:
        """Return the names with a beginning, as declared: the shell completes them."""
        typed = hyphenated(beginning)
        return [choice for choice in self.choices if hyphenated(choice).startswith(typed)]


class Choices(Choice):
    """Several of a few names, separated by commas."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        """Return the choices as a set; click passes the default value through here as well."""
        if isinstance(value, frozenset):
            return value
        return frozenset(super(Choices, self).convert(part.strip(), param, ctx) for part in value.split(","))


class Pattern(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A regular expression."""

    name = "regex"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str:
        """Return the expression."""
        if not value:
            raise click.BadParameter('"" matches every line', ctx, param)
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            raise click.BadParameter(f'"{value}" is not a regular expression: {error}', ctx, param) from None
        return str(value)


class IntRange(click.IntRange):
    """A whole number between bounds."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            span = f"{self.min} or more" if self.max is None else f"from {self.min} to {self.max}"
            raise _refusal(value, f"is not a whole number, {span}", param, ctx) from None


class Seconds(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A finite duration within bounds, in seconds: ``300``, ``90s``, ``5m``, ``2h``, ``1d``.

    ``nan`` is refused: it would pass every comparison.
    """

    name = "seconds"

    def __init__(self, low: float = 0.0, high: float = math.inf, *, above: bool = False) -> None:
        self.low, self.high, self.above = low, high, above

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> float:
        """Return the number of seconds."""
        try:
            seconds, _ = durations.parse(str(value))
        except (ValueError, OverflowError):
            seconds = math.nan
        fits = seconds > self.low if self.above else seconds >= self.low
        if fits and seconds <= self.high and math.isfinite(seconds):
            return seconds
        raise _refusal(value, f"is not a time{self._span()} (such as 90, 90s, 5m, 2h)", param, ctx)

    def _span(self) -> str:
        if self.high < math.inf:
            return f" from {self.low:g} to {self.high:g} s"
        if self.above:
            return f" above {self.low:g} s"
        return f" of at least {self.low:g} s" if self.low else ""
