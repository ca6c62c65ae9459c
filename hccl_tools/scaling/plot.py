"""The plot of a report: measured speed-up against the ideal, with the spread of repeated runs."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped
from hccl_tools.programs.lookup import PLOT
from hccl_tools.scaling.notes import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.scaling.amdahl import Fit
    from hccl_tools.scaling.analysis import Point, Series

SUFFIXES = ("png", "svg")
#: Colours that readers with a colour-vision deficiency can tell apart (Okabe and Ito), most contrast first.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_GREY = "#767676"
#: The most sizes and names that a reader can tell apart; matplotlib takes minutes for some thousands.
_MOST_SIZES, _MOST_NAMES, _LONGEST_NAME = 64, 20, 60
#: A name of the figures is text, also one such as $x^2$, which matplotlib reads as mathematics.
_SETTINGS = {
    "svg.hashsalt": "hccl-tools", "font.size": 11, "text.usetex": False, "text.parse_math": False,
}  # fmt: skip


def check_target(path: str) -> str:
    """Return the format of a plot by the name of its file; also check that matplotlib is installed.

    Raises:
        UsageError: The name ends neither with .png nor with .svg, or matplotlib is not installed.
    """
    suffix = path.rpartition(".")[2].lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"--plot {path}: the name of a plot ends with .png or .svg")
    if find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib, which is not installed", hint=PLOT)
    return suffix


def draw(series: Sequence[Series], suffix: str) -> bytes:
    """Return the plot as a PNG or SVG file; the same figures give the same bytes.

    Raises:
        UsageError: There are too many sizes or names for a plot.
    """
    _check_size(series)
    with _in_root_folder():
        import matplotlib as mpl  # noqa: PLC0415  (optional)
        from matplotlib.figure import Figure  # noqa: PLC0415  (optional)

    with mpl.rc_context():
        mpl.rcdefaults()  # Settings of a user would give other bytes.
        mpl.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(7.2, 4.8), layout="constrained")
        axes = figure.subplots()
        _axes(axes, series)
        _ideal(axes, series)
        for index, one in enumerate(series):
            _series(axes, one, _COLORS[index % len(_COLORS)], label=_label(one), alone=len(series) == 1)
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
        out = io.BytesIO()
        metadata = {"Date": None} if suffix == "svg" else None
        figure.savefig(out, format=suffix, dpi=150, metadata=metadata)
    return out.getvalue()


@contextmanager
def _in_root_folder() -> Iterator[None]:
    """Make / the current folder: matplotlib reads ``matplotlibrc`` of the current folder when it is imported.

    Another user may have written that file. Older versions evaluate a setting of it as Python.
    """
    folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir("/")
        yield
    finally:
        os.fchdir(folder)
        os.close(folder)


def _check_size(series: Sequence[Series]) -> None:
    sizes = {point.size for one in series for point in one.good}
    for number, most, noun in ((len(sizes), _MOST_SIZES, "size"), (len(series), _MOST_NAMES, "name")):
        if number > most:
            raise UsageError(
                f"--plot: the figures have {count(number, noun)}, and a plot shows at most {most}",
                hint="plot a part of the figures, or omit --plot",
            )


def _label(one: Series) -> str:
    """Return the name of a series in the legend, which omits names that begin with an underscore."""
    name = escaped(one.name or "measured")
    name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
    return f" {name}" if name.startswith("_") else name


def _factors(one: Series) -> list[float]:
    return [point.size / one.good[0].size for point in one.good]


def _axes(axes: Any, series: Sequence[Series]) -> None:
    units = " or ".join(dict.fromkeys(one.unit for one in series))
    base = {one.good[0].size for one in series}
    sizes = sorted({point.size for one in series for point in one.good})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel(f"number of {units}")
    against = f"{base.pop()} {units.removesuffix('s')}" if base == {1} else f"the smallest number of {units}"
    axes.set_ylabel(f"speed-up against {against}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.12, y=0.12)
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _ideal(axes: Any, series: Sequence[Series]) -> None:
    longest = max(series, key=lambda one: max(_factors(one)))
    sizes = [point.size for point in longest.good]
    axes.plot(sizes, _factors(longest), "--", color=_GREY, linewidth=1.3, label="ideal")


def _series(axes: Any, one: Series, color: str, *, label: str, alone: bool) -> None:
    points = one.good
    sizes = [point.size for point in points]
    speeds = [point.speed_up or 0.0 for point in points]
    errors = [
        [speed - (point.slowest or speed) for speed, point in zip(speeds, points, strict=True)],
        [(point.fastest or speed) - speed for speed, point in zip(speeds, points, strict=True)],
    ]
    repeated = any(point.runs > 1 for point in points)
    label += " (median, slowest to fastest run)" if repeated and alone else ""
    has_curve = alone and one.fit is not None and 0 <= one.fit.share < 1
    style = "o" if has_curve else "o-"
    axes.errorbar(
        sizes, speeds, yerr=errors if repeated else None, fmt=style, color=color, capsize=4, label=label
    )
    if has_curve and one.fit is not None:
        _curve(axes, one.fit, sizes)
    for point in points[1:] if alone else ():
        _annotate(axes, point)


def _curve(axes: Any, fit: Fit, sizes: Sequence[int]) -> None:
    first, last = sizes[0], sizes[-1]
    shown = [first * (last / first) ** (step / 40) for step in range(41)]
    label = f"Amdahl's law, serial share {percent(fit.share, 1)}"
    axes.plot(shown, [fit.speed_up(size / first) for size in shown], ":", color=_COLORS[1], label=label)


def _annotate(axes: Any, point: Point) -> None:
    text = f"{point.speed_up:.2f} ({percent(point.efficiency)})"
    place = {"xytext": (7, -7), "textcoords": "offset points", "ha": "left", "va": "top"}
    axes.annotate(text, (point.size, point.speed_up), **place)
