"""The type of options that take a time: seconds, and a number that a clock can reach."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from click import FloatRange

if TYPE_CHECKING:
    from click import Context, Parameter


class Seconds(FloatRange):
    """A finite number of seconds, from 0: ``nan`` would pass every comparison and mean never."""

    def __init__(self, *, min_open: bool = False) -> None:
        super().__init__(min=0, min_open=min_open)

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> float:
        """Return the number; refuse what is none."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return number
