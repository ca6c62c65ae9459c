"""The curve of docs/scaling_hosts.svg: ``python -m benchmarks.hosts_curve FIGURES PICTURE``.

FIGURES is the output of ``python -m benchmarks.hosts``, PICTURE ends with .svg or .png. Points are medians.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.hosts import COLUMNS, WAYS

#: Each panel: title, unit, the figure by way, the goals by number of hosts.
PANELS: tuple[tuple[str, str, str, dict[int, float]], ...] = (
    ("from the last host to the last “go”", "s", "go", {1024: 0.5, 8192: 4.0}),
    ("CPU time of the controller until then", "s", "cpu", {}),
    ("memory of the idle controller", "MB", "megabytes", {1024: 60.0}),
    ("until all hosts know that one is lost", "s", "told", {1024: 0.5}),
)
#: Colours that readers with a colour-vision deficiency can tell apart (Okabe and Ito).
COLORS = ("#0072B2", "#D55E00")
GREY = "#767676"


def read(path: Path) -> dict[tuple[str, str], dict[int, list[float]]]:
    """Return the figures by name and way, each by number of hosts; ``told`` is that of closed connections."""
    found: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in path.read_text().splitlines():
        hosts, *rest = line.replace("by hand", "by-hand").split()
        if not hosts.isdecimal() or len(rest) != len(COLUMNS) + 2:
            continue  # A heading.
        way, end = rest[0].replace("-", " "), rest[1]
        for (name, *_), value in zip(COLUMNS, rest[2:], strict=True):
            if name != "told" or end == "closed":
                found[name, way][int(hosts)].append(float(value))
    return found


def _panel(axes: Any, found: dict[tuple[str, str], dict[int, list[float]]], panel: Any) -> None:
    title, unit, name, goals = panel
    for way, color in zip(WAYS, COLORS, strict=True):
        by_hosts = {hosts: median(values) for hosts, values in sorted(found[name, way].items())}
        axes.plot(list(by_hosts), list(by_hosts.values()), marker="o", markersize=4, color=color, label=way)
    axes.plot(list(goals), list(goals.values()), "v", color=GREY, label="goal: at most")
    sizes = sorted(found[name, WAYS[0]])
    axes.set_xscale("log", base=2)
    axes.set_yscale("linear" if unit == "MB" else "log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
    axes.minorticks_off()
    axes.set_ylim(bottom=0 if unit == "MB" else None)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title(f"{title}, {unit}", fontsize=10, loc="left")
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main(figures: Path, picture: Path) -> None:
    """Draw."""
    found = read(figures)
    with mpl.rc_context({"svg.hashsalt": "hccl-tools", "font.size": 10}):
        figure = Figure(figsize=(8.4, 5.6), layout="constrained")
        grid = figure.subplots(2, 2)
        for axes, panel in zip(grid.flat, PANELS, strict=True):
            _panel(axes, found, panel)
        for axes in grid[-1]:
            axes.set_xlabel("hosts, with 8 ranks each")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)
        metadata = {"Date": None} if picture.suffix == ".svg" else None
        figure.savefig(picture, dpi=110, metadata=metadata)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
