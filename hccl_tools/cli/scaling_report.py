"""``hccl-tools scaling report``: speed-up and efficiency of figures in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import options
from hccl_tools.cli.values import Choice
from hccl_tools.document.writing import write_atomically
from hccl_tools.notation.printable import tell
from hccl_tools.scaling import analysis, reading, rendering
from hccl_tools.scaling import plot as plotting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.scaling.analysis import Series

_EXAMPLES = """\
  hccl-tools scaling report times.csv
  hccl-tools scaling report times.csv -f markdown --plot speed-up.svg

\b
times.csv, one row per run; repeat a number for repeated runs, write - in an empty cell:
  machines,devices,time (h),accuracy
  1,8,60,0.952
  2,16,40,0.948

Columns: machines, devices (of all machines), time or throughput, accuracy (or another metric), batch size,
learning rate, name (of the experiment). Times: 40 h, 2.5 d, 1 d 4 h, 90 min, 1:30:00; a bare number has the
unit of the title, time (h), or is in seconds. JSON: a list of objects with these keys.
"""


form = click.option(
    "-f",
    "--format",
    "form",
    type=Choice(["text", "markdown", "csv", "json"]),
    default="text",
    help="Output format.",
)
plot = click.option("--plot", metavar="FILE", help="Also draw the speed-up to FILE.png or FILE.svg.")
better = click.option(
    "--metric-better",
    "better",
    type=Choice(["higher", "lower"]),
    help="Which metric is better. Default: lower for a loss or an error, else higher.",
)


@options.command("report", epilog=_EXAMPLES)
@click.argument("file", metavar="FILE")
@form
@plot
@click.option("--metric", metavar="COLUMN", help="The column of the metric, if it has an unusual name.")
@better
def command(*, file: str, form: str, plot: str | None, metric: str | None, better: Any) -> None:
    """Compare measured times: speed-up, efficiency, and what the next doubling would bring.

    FILE is CSV or JSON, - for standard input. The smallest number of machines or devices is the reference.
    Repeated runs count by their median. A metric that gets worse by more than one point (0.01 if all values
    are at most 1) is reported.
    """
    report(file, form=form, draw=plotter(plot), metric=metric, better=better)


def report(
    file: str, *, form: str, draw: Callable[[Sequence[Series]], None], better: Any, metric: str | None = None
) -> None:
    """Print the report of a file on standard output, and draw its plot."""
    figures = reading.read(file, metric)
    series = analysis.analyse(figures)
    draw(series)
    options.write(rendering.render(series, figures, form, better=better))


def plotter(path: str | None) -> Callable[[Sequence[Series]], None]:
    """Return a function that writes the plot to a file, if there is one; a wrong name is refused at once.

    Raises:
        UsageError: The name is wrong, or matplotlib is not installed.
    """
    if path is None:
        return lambda _: None
    suffix = plotting.check_target(path)

    def draw(series: Sequence[Series]) -> None:
        write_atomically(path, [plotting.draw(series, suffix)])
        tell(f"wrote {path}")

    return draw
