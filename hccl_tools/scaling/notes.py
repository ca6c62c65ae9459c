"""What the figures mean, in sentences: whether more devices pay, the serial share, the metric."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from hccl_tools.notation.phrases import count
from hccl_tools.scaling import amdahl

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.scaling.analysis import Point, Series

Better = Literal["higher", "lower"]
#: Metrics of which a lower value is better.
_LOWER = ("loss", "error", "perplexity", "wer", "cer")
#: The changes of the speed that measurements cannot tell from none.
_SAME = 0.02
_REMEDIES = "warm up the learning rate, train more epochs, or scale the learning rate with the global batch"


def percent(share: float | None, decimals: int = 0) -> str:
    """Return a share as a percentage, "" for none."""
    return "" if share is None else f"{100 * share:.{decimals}f} %"


def better_of(metric_name: str) -> Better:
    """Return which values of a metric are better, judged by its name."""
    return "lower" if any(word in metric_name.lower() for word in _LOWER) else "higher"


def of(series: Series, metric_name: str, better: Better | None) -> Iterator[str]:
    """Yield the sentences about a series."""
    yield from _failures(series)
    points = series.good
    if len(points) < 2:
        return
    yield from _gain(series, points)
    yield from _law(series, points)
    yield from _metric_losses(series, points, metric_name, better or better_of(metric_name))


def _failures(series: Series) -> Iterator[str]:
    for point in series.points:
        for reason, again in Counter(point.failed).items():
            yield f"{_size(point.size, series)}: {count(again, 'run')} failed: {reason}"


def _size(size: float, series: Series) -> str:
    return count(round(size), series.unit.removesuffix("s"))


def _gain(series: Series, points: Sequence[Point]) -> Iterator[str]:
    first, last = points[0], points[-1]
    base, most = _size(first.size, series), _size(last.size, series)
    gain, efficiency = last.speed_up or 0.0, last.efficiency or 0.0
    if gain < 1 - _SAME:
        yield f"{most}: slower than {base}, {gain:.2f} times its speed: more {series.unit} do not pay here"
    elif gain < 1 + _SAME:
        yield f"{most}: no faster than {base}: more {series.unit} do not pay here"
    else:
        compared = f"{gain:.2f} times the speed of {base} ({percent(gain)})"
        yield f"{most}: {compared}, efficiency {percent(efficiency)}"
    for before, after in pairwise(points):
        step = (after.speed_up or 0.0) / (before.speed_up or 1.0)
        if step < 1 - _SAME and len(points) > 2:
            slower, faster = _size(after.size, series), _size(before.size, series)
            yield f"{slower}: slower than {faster}, {step:.2f} times its speed"


def _law(series: Series, points: Sequence[Point]) -> Iterator[str]:
    fit, sizes = series.fit, len({point.size for point in points})
    if fit is None:
        yield (
            f"serial share (Amdahl's law): too few numbers of {series.unit}: "
            f"{sizes} measured, {amdahl.FEWEST_SIZES} or more needed"
        )
        return
    if fit.share >= 1:
        yield (
            "serial share (Amdahl's law): the law does not apply: the time grows with the number of "
            + series.unit
        )
        return
    of = _size(points[0].size, series)
    yield (
        f"serial share (Amdahl's law): {percent(fit.share, 1)} ± {percent(fit.error, 1)} of the time on {of} "
        f"(95 % confidence, {count(fit.runs, 'run')} with {sizes} different numbers of {series.unit})"
    )
    if fit.share <= 0:
        yield "no serial share is visible: the speed-up is the ideal one or better"
    last = points[-1]
    factor = 2 * last.size / points[0].size
    expected, low, high = (
        fit.speed_up(factor, share) for share in (fit.share, fit.share + fit.error, fit.share - fit.error)
    )
    yield (
        f"next doubling, {_size(2 * last.size, series)}: about {expected:.2f} times the speed of {of} "
        f"({low:.2f} to {high:.2f}), efficiency {percent(expected / factor)}"
    )


def _metric_losses(series: Series, points: Sequence[Point], name: str, better: Better) -> Iterator[str]:
    known = [point for point in points if point.metric is not None]
    if len(known) < 2 or known[0] is not points[0]:
        return
    values = [point.metric or 0.0 for point in known]
    one_point = 0.01 if all(abs(value) <= 1 for value in values) else 1.0
    losses = [(values[0] - value) / one_point * (1 if better == "higher" else -1) for value in values]
    worst = max(range(len(known)), key=losses.__getitem__)
    # Figures such as 85.2 - 84.2 are not exact.
    if losses[worst] <= 1 + 1e-9:
        return
    verb = "falls" if better == "higher" else "rises"
    yield (
        f"{name} {verb} by {losses[worst]:.1f} points: {values[0]:g} on {_size(known[0].size, series)}, "
        f"{values[worst]:g} on {_size(known[worst].size, series)}; remedies: {_REMEDIES}"
    )
    yield from _rate(known[0], known[worst])


def _rate(first: Point, last: Point) -> Iterator[str]:
    if not (first.batch_size and last.batch_size and first.learning_rate and last.learning_rate):
        return
    batches, rates = last.batch_size / first.batch_size, last.learning_rate / first.learning_rate
    if abs(batches / rates - 1) > _SAME:
        yield (
            f"the batch size grew {batches:g} times, the learning rate {rates:g} times: "
            f"the same factor gives a learning rate of {first.learning_rate * batches:g}"
        )
