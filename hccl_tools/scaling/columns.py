"""The columns of a file of figures: their names, and what a cell may contain."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from hccl_tools.notation import durations
from hccl_tools.notation.phrases import did_you_mean
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The names of each column, compared without case, spaces, hyphens and underscores.
NAMES: dict[str, tuple[str, ...]] = {
    "name": ("name", "model", "network", "experiment", "job"),
    "machines": ("machines", "machine", "nodes", "servers", "hosts", "nnodes"),
    "devices": ("devices", "device", "npus", "npu", "ranks", "cards", "gpus", "processes", "worldsize"),
    "time": ("time", "duration", "trainingtime", "traintime", "elapsed", "walltime"),
    "throughput": ("throughput", "speed", "samplespersecond", "imagespersecond", "tokenspersecond",
                   "samples/s", "images/s", "tokens/s", "fps"),
    "metric": ("metric", "accuracy", "acc", "top1", "map", "hmean", "f1", "bleu", "loss", "perplexity", "wer",
               "cer", "heldoutaccuracy"),
    "batch_size": ("batchsize", "batch", "globalbatch", "globalbatchsize"),
    "learning_rate": ("learningrate", "lr"),
    "failed": ("failed", "failure"),
}  # fmt: skip
#: What ``scaling run`` adds for the user.
IGNORED = frozenset({"repeat", "run", "exitcode", "wholetime"})
EMPTY = frozenset({"", "-", "--", "—", "n/a", "na", "none"})
#: Figures outside of this range, except 0, are mistakes: their quotients overflow or have hundreds of digits.
_LEAST, _MOST = 1e-12, 1e15
_RANGE = "from 1e-12 to 1e15"
_UNIT = re.compile(r"(.{0,200}?)\s{0,9}[(\[/,_ ]\s{0,9}([a-zA-Z]{1,40})\s{0,9}[)\]]?", re.DOTALL)
_FEWEST_LETTERS = 3


class Column(NamedTuple):
    """A column of the file: what it holds, the unit of its bare numbers, and its title."""

    kind: str
    title: str
    #: Only for times.
    unit: str = "s"


def _bare(title: str) -> str:
    return re.sub(r"[\s_-]", "", title).lower()


def recognised(title: str, metric: str | None) -> Column | None:
    """Return the column with a title; ``None`` if the report does not use it.

    ``metric`` is the title of the column that the user chose as the metric.
    """
    if metric is not None and _bare(title) == _bare(metric):
        return Column("metric", title.strip())
    for kind, names in NAMES.items():
        if _bare(title) in names and not (kind == "metric" and metric is not None):
            return Column(kind, title.strip())
    if found := _UNIT.fullmatch(title.strip()):
        unit = durations.unit_named(found[2])
        if unit is not None and _bare(found[1]) in NAMES["time"]:
            return Column("time", title.strip(), unit)
    unit = durations.unit_named(title)
    if unit is not None and len(_bare(title)) >= _FEWEST_LETTERS:  # "hours", but not "s"
        return Column("time", title.strip(), unit)
    return None


def known_title(title: str) -> str:
    """Return a suggestion for an unknown title, or ""."""
    return did_you_mean(title, _all_names())


def _all_names() -> Iterable[str]:
    return (kind for kind in NAMES if kind != "failed")


def whole(text: str) -> int:
    """Return a number of machines or devices, 1 or more.

    Raises:
        ValueError: The text is anything else; the message says what was expected.
    """
    expected = "expected a whole number, 1 or more"
    if not re.fullmatch(r"[0-9]{1,7}(?:\.0*)?", text, re.ASCII):
        raise ValueError(expected)
    number = int(float(text))
    if number < 1:
        raise ValueError(expected)
    return number


def number(text: str) -> float:
    """Return a number in the range of figures; a per cent sign is dropped.

    Raises:
        ValueError: The text is anything else; the message says what was expected.
    """
    try:
        value = float(text.removesuffix("%").strip())
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("expected a number, such as 0.9694 or 85.2%")
    if not is_figure(value):
        raise ValueError(f"expected 0 or a number {_RANGE}")
    return value


def is_figure(value: float) -> bool:
    """Return whether a number is in the range of figures, with either sign."""
    return value == 0 or _LEAST <= abs(value) <= _MOST


def positive(text: str) -> float:
    """Return a number above 0.

    Raises:
        ValueError: The text is anything else; the message says what was expected.
    """
    expected = f"expected a number above 0, {_RANGE}"
    try:
        value = number(text)
    except ValueError:
        raise ValueError(expected) from None
    if value <= 0:
        raise ValueError(expected)
    return value


def seconds(text: str, unit: str) -> tuple[float, str]:
    """Return a time above 0 in seconds, and the unit in which it is written.

    Raises:
        ValueError: The text is anything else; the message says what was expected.
    """
    expected = "expected a time above 0, such as 40 h, 2.5 d, 90 s, 1 d 4 h or 1:30:00"
    try:
        value, written = durations.parse(text, unit)
    except (ValueError, OverflowError):
        raise ValueError(expected) from None
    if value <= 0:
        raise ValueError(expected)
    if not is_figure(value):
        raise ValueError(f"expected a time {_RANGE} s")
    return value, written
