"""The type of options with a duration: seconds, or a number with a unit."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import Context, Parameter

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: A number for float(), then a unit of timeout(1).
_TIME = re.compile(r"(.*?)([smhd]?)", re.DOTALL)


class Seconds(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A finite duration within bounds, in seconds: ``300``, ``90s``, ``5m``, ``2h``, ``1d``.

    ``nan`` is refused: it would pass every comparison.
    """

    name = "seconds"

    def __init__(self, low: float = 0.0, high: float = math.inf, *, above: bool = False) -> None:
        self.low, self.high, self.above = low, high, above

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> float:
        """Return the number of seconds."""
        number, unit = _TIME.fullmatch(str(value)).groups()  # type: ignore[union-attr]  # fits any text
        try:
            seconds = float(number) * _UNITS[unit]
        except ValueError:
            seconds = math.nan
        fits = seconds > self.low if self.above else seconds >= self.low
        if fits and seconds <= self.high and math.isfinite(seconds):
            return seconds
        problem = f'"{value}" is not a time{self._span()} (such as 90, 90s, 5m, 2h)'
        raise click.BadParameter(problem, ctx, param)

    def _span(self) -> str:
        if self.high < math.inf:
            return f" from {self.low:g} to {self.high:g} s"
        return f" above {self.low:g} s" if self.above else ""
