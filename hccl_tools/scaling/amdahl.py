"""Amdahl's law fitted to measured times: ``T(n) = T(1) * (share + (1 - share) / n)``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The 97.5 % quantiles of Student's t distribution with 1, 2, ... degrees of freedom; then close to 2.
_T = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
)
_T_OF_MANY = 2.0
FEWEST_SIZES = 3


class Fit(NamedTuple):
    """The fit: ``share`` is the serial share of the time on the smallest size, with its 95 % confidence.

    A share below 0 means that the job gains more than its devices explain; above 1, that it gets slower.
    """

    share: float
    #: Half of the confidence interval.
    error: float
    #: The time on the smallest size, in the unit of the costs.
    cost: float
    runs: int

    def speed_up(self, factor: float, share: float | None = None) -> float:
        """Return the speed-up that the law gives for ``factor`` times the smallest size."""
        share = min(max(self.share if share is None else share, 0.0), 1.0)
        return 1 / (share + (1 - share) / factor)


def fit(costs: Sequence[tuple[float, float]]) -> Fit | None:
    """Fit the law to pairs of relative size and time; ``None`` with fewer than three sizes.

    The times are ``a + b / n``. Each is weighted by its inverse square: the errors of measured times grow
    with the times. The error of ``a / (a + b)`` follows from the covariance of ``a`` and ``b``.
    """
    if len({size for size, _ in costs}) < FEWEST_SIZES:
        return None
    weights = [1 / cost**2 for _, cost in costs]
    xs = [1 / size for size, _ in costs]
    total = sum(weights)
    sum_x = sum(w * x for w, x in zip(weights, xs, strict=True))
    sum_xx = sum(w * x * x for w, x in zip(weights, xs, strict=True))
    sum_y = sum(w * y for w, (_, y) in zip(weights, costs, strict=True))
    sum_xy = sum(w * x * y for w, x, (_, y) in zip(weights, xs, costs, strict=True))
    determinant = total * sum_xx - sum_x**2
    b = (total * sum_xy - sum_x * sum_y) / determinant
    a = (sum_y - b * sum_x) / total
    freedom = len(costs) - 2
    residual = sum(w * (y - a - b * x) ** 2 for w, x, (_, y) in zip(weights, xs, costs, strict=True))
    variance = max(residual / freedom, 0.0) / determinant
    whole = a + b
    # share = a / whole: its derivatives by a and b.
    by_a, by_b = b / whole**2, -a / whole**2
    spread = by_a**2 * sum_xx + by_b**2 * total - 2 * by_a * by_b * sum_x
    quantile = _T[freedom - 1] if freedom <= len(_T) else _T_OF_MANY
    return Fit(a / whole, quantile * math.sqrt(max(variance * spread, 0.0)), whole, len(costs))
