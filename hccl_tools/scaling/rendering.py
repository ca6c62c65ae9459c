"""The report as text, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any

from hccl_tools.notation import durations, screen
from hccl_tools.notation.phrases import aligned
from hccl_tools.notation.printable import escaped, json_escaped
from hccl_tools.scaling import notes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hccl_tools.scaling.analysis import Point, Series
    from hccl_tools.scaling.notes import Better
    from hccl_tools.scaling.reading import Figures

SCHEMA_VERSION = 1
_NONE = "-"
_MARKUP = re.compile(r"[|\\`*_<>&\[\]]")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
#: Where a spreadsheet begins a formula; it may take another character than the comma as its separator.
_FORMULA = re.compile(r"(^|[,;|])(\s*)(?=[=+@\-\uff1d\uff0b\uff0d\uff20])")


def render(
    series: Sequence[Series], figures: Figures, form: str, *, better: Better | None = None
) -> Iterator[str]:
    """Yield the report in the given form: ``text``, ``markdown``, ``csv`` or ``json``."""
    yield from _FORMS[form](series, figures, better)


def sentences(series: Sequence[Series], figures: Figures, better: Better | None) -> Iterator[str]:
    """Yield the sentences below the table, with the name of the experiment if there are several."""
    for one in series:
        for sentence in notes.of(one, figures.metric_name, better):
            yield f"{one.name}: {sentence}" if one.name else sentence
    yield from figures.notes


def _text(series: Sequence[Series], figures: Figures, better: Better | None) -> Iterator[str]:
    titles, rows = _table(series, figures)
    right = [index for index, title in enumerate(titles) if title != "name"]
    for line in aligned([list(map(escaped, row)) for row in (titles, *rows)], right=right):
        yield line + "\n"
    yield "\n"
    for sentence in sentences(series, figures, better):
        yield screen.fitted(escaped(sentence), screen.width()) + "\n"


def _markdown(series: Sequence[Series], figures: Figures, better: Better | None) -> Iterator[str]:
    titles, rows = _table(series, figures)
    marks = ["---" if title == "name" else "---:" for title in titles]
    for row in (titles, marks, *rows):
        yield "| " + " | ".join(map(_markdown_text, row)) + " |\n"
    yield "\n"
    for sentence in sentences(series, figures, better):
        yield f"- {_markdown_text(sentence)}\n"


def _markdown_text(text: str) -> str:
    """Return a text without Markdown markup: the names come from the file of figures."""
    return _MARKUP.sub(lambda match: _ENTITIES.get(match[0], "\\" + match[0]), escaped(text))


def _cell(value: Any) -> Any:
    """Return the value of a CSV cell; a formula in it begins with an apostrophe and is text."""
    if not isinstance(value, str):
        return value
    return _FORMULA.sub(r"\1\2'", escaped(value))


def _csv(series: Sequence[Series], _figures: Figures, _better: Better | None) -> Iterator[str]:
    rows = [{"name": one.name, **_as_json(point)} for one in series for point in one.points]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = {**row, "failed": "; ".join(row["failed"])}
        writer.writerow({title: _cell(cell) for title, cell in cells.items()})
    yield out.getvalue()


def _json(series: Sequence[Series], figures: Figures, better: Better | None) -> Iterator[str]:
    document = {
        "schema_version": SCHEMA_VERSION,
        "metric": figures.metric_name,
        "series": [
            {
                "name": one.name,
                "unit": one.unit,
                "serial_share": one.fit and {"value": one.fit.share, "error": one.fit.error},
                "points": [_as_json(point) for point in one.points],
                "notes": list(notes.of(one, figures.metric_name, better)),
            }
            for one in series
        ],
        "notes": list(figures.notes),
    }
    yield json_escaped(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


_FORMS: dict[str, Callable[[Sequence[Series], Figures, Better | None], Iterator[str]]] = {
    "text": _text,
    "markdown": _markdown,
    "csv": _csv,
    "json": _json,
}


def _as_json(point: Point) -> dict[str, Any]:
    values = point._asdict()
    del values["size"]
    return {**values, "failed": list(point.failed)}


def _table(series: Sequence[Series], figures: Figures) -> tuple[list[str], list[list[str]]]:
    """Return the titles and the rows of the table; a column without any value is left out."""
    repeated = any(point.runs + len(point.failed) > 1 for one in series for point in one.points)
    columns: Mapping[str, Callable[[Series, Point], str]] = {
        "name": lambda one, _: one.name,
        "machines": lambda _, point: _whole(point.machines),
        "devices": lambda _, point: _whole(point.devices),
        "runs": lambda _, point: str(point.runs) if repeated else "",
        "time": lambda one, point: time_text(point.seconds, one.time_unit),
        "throughput": lambda _, point: number_text(point.throughput),
        figures.metric_name: lambda _, point: number_text(point.metric),
        "batch size": lambda _, point: number_text(point.batch_size),
        "learning rate": lambda _, point: number_text(point.learning_rate),
        "speed-up": lambda _, point: "failed" if point.speed_up is None else f"{point.speed_up:.2f}",
        "of single runs": lambda _, point: _spread(point),
        "efficiency": lambda _, point: notes.percent(point.efficiency),
    }
    points = [(one, point) for one in series for point in one.points]
    cells = {title: [make(*pair) for pair in points] for title, make in columns.items()}
    used = {title: column for title, column in cells.items() if any(column)}
    return list(used), [[cell or _NONE for cell in row] for row in zip(*used.values(), strict=True)]


def _whole(number: int | None) -> str:
    return "" if number is None else str(number)


def _spread(point: Point) -> str:
    if point.slowest is None or point.fastest is None or point.runs < 2:
        return ""
    return f"{point.slowest:.2f}-{point.fastest:.2f}"


def number_text(value: float | None) -> str:
    """Return a number as text with at least four significant digits, "" for ``None``."""
    if value is None:
        return ""
    return (
        f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.5g}" if value == int(value) else f"{value:.4g}"
    )


def time_text(seconds: float | None, unit: str) -> str:
    """Return a time in a unit of ``durations``, "" for none."""
    return "" if seconds is None else f"{number_text(seconds / durations.UNITS[unit])} {unit}"
