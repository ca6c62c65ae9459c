"""Read the figures of a report from CSV or JSON; every error names the row and the column."""

from __future__ import annotations

import csv
import json
from collections import Counter
from functools import reduce
from itertools import islice
from operator import getitem
from typing import TYPE_CHECKING, Any

from hccl_tools.document.reading import read_file, shown_name
from hccl_tools.errors import InputError
from hccl_tools.formats import misfits
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.records import NamedTuple
from hccl_tools.scaling import columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.scaling.columns import Column

_SEPARATORS = ",;\t|"
_MOST_ROWS, _MOST_COLUMNS = 100_000, 1000
_LONGEST_TITLE = 200
_EXAMPLE = "see `hccl-tools scaling report --help` for an example"


def read(file: str, metric: str | None = None) -> Figures:
    """Return the figures of a file, ``-`` for standard input.

    ``metric`` is the title of the column of the metric, if it is not a usual one.

    Raises:
        InputError: The file cannot be read, or a row is wrong; the message names the row and the column.
    """
    data, shown = read_file(file), shown_name(file)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{shown} is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from None
    return parse(text, shown, metric)


def parse(text: str, shown: str, metric: str | None = None) -> Figures:
    """Return the figures of a text; ``shown`` is its name in messages.

    Raises:
        InputError: A row is wrong; the message names the row and the column.
    """
    if not text.strip():
        raise InputError(f"{shown} is empty", hint=_EXAMPLE)
    is_json = text.lstrip()[0] in "[{"
    value = _json(text, shown) if is_json else None
    rows = list(islice(_json_rows(value, shown) if is_json else _csv_rows(text, shown), _MOST_ROWS + 1))
    if len(rows) > _MOST_ROWS:
        raise InputError(f"{shown} has more than {_MOST_ROWS:,} rows")
    if is_json:
        _check_cells(value, shown)
    if len(rows) < 2:
        hint = "add a row for each number of machines or devices"
        raise InputError(
            f"{shown} has {count(len(rows), 'row')} of figures: a comparison needs two or more", hint=hint
        )
    titles = _checked_titles(list(dict.fromkeys(title for _, row in rows for title in row)), shown)
    used = _used(titles, shown, metric)
    reader = _Reader(shown, used)
    figures = tuple(reader.figure(place, row) for place, row in rows)
    _check_complete(figures, shown)
    title = next((column.title for column in used.values() if column.kind == "metric"), "metric")
    if isinstance(value, dict) and value.get("metric_name"):  # the file of a series
        title = str(value["metric_name"])
    return Figures(figures, title, _notes(titles, used))


def _csv_rows(text: str, shown: str) -> Iterator[tuple[str, dict[str, str]]]:
    lines = {number: line for number, line in enumerate(text.splitlines(), 1) if _is_row(line)}
    if not lines:
        raise InputError(f"{shown} has comments only", hint=_EXAMPLE)
    first, *_ = lines.values()
    separator = max(_SEPARATORS, key=first.count)
    if separator == "|":  # a Markdown table, whose second line has dashes only
        lines = {number: line.strip().strip("|") for number, line in lines.items() if set(line) - set("|-: ")}
    numbers = list(lines)
    reader = csv.reader(iter(lines.values()), delimiter=separator, skipinitialspace=True)
    titles: list[str] = []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            place = f"line {numbers[reader.line_num - 1]}"
            if not titles:
                titles = _checked_titles(cells, shown)
                continue
            if len(cells) != len(titles):
                raise InputError(
                    f"{shown}, {place}: {count(len(cells), 'cell')}, but the first row has {len(titles)}",
                    hint="write - in an empty cell",
                )
            yield place, dict(zip(titles, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{shown} is not CSV: {error}", hint=_EXAMPLE) from None


def _is_row(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _checked_titles(titles: list[str], shown: str) -> list[str]:
    if len(titles) > _MOST_COLUMNS:
        raise InputError(f"{shown} has {len(titles):,} columns, more than {_MOST_COLUMNS:,}")
    for title, times in Counter(titles).items():
        if len(title) > _LONGEST_TITLE:
            raise InputError(f"{shown} has a title of {len(title):,} characters, more than {_LONGEST_TITLE}")
        if times > 1:
            raise InputError(f'{shown} has two columns "{title}"', hint="rename or remove one of them")
    return titles


def _json(text: str, shown: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{shown}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except ValueError:  # more digits than Python reads
        raise InputError(f"{shown} has a number of too many digits") from None
    except RecursionError:
        raise InputError(f"{shown} is nested too deeply") from None


def _json_rows(value: Any, shown: str) -> Iterator[tuple[str, dict[str, str]]]:
    name = "rows"
    if isinstance(value, dict):
        name = "runs"
        value = value.get("runs")
    if not isinstance(value, list):
        raise InputError(f'{shown} must be a list of objects, or an object with such a list as "runs"',
                         hint=_EXAMPLE)  # fmt: skip
    for index, row in enumerate(value):
        if not isinstance(row, dict):
            raise InputError(
                f'{shown}, {name}[{index}]: expected an object, such as {{"devices": 8, "time": 40}}'
            )
        yield f"{name}[{index}]", {str(title): _cell(cell) for title, cell in row.items()}


def _check_cells(value: Any, shown: str) -> None:
    """Refuse a cell that does not fit the published schema."""
    if misfit := misfits.first(value, "scaling"):
        *place, title = misfit.path
        if not place:
            raise InputError(f"{shown}: {misfit.sentence}")
        row = reduce(getitem, place, value)
        where = f"rows[{place[-1]}]" if isinstance(value, list) else f"runs[{place[-1]}]"
        raise _wrong_cell(shown, where, str(title), _cell(row[title]), str(misfit.hint))


def _wrong_cell(shown: str, place: str, title: str, text: str, expected: str) -> InputError:
    text = text if len(text) <= 40 else text[:40] + "..."
    return InputError(f'{shown}, {place}, column "{title}": "{text}": {expected}')


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value)


def _used(titles: Sequence[str], shown: str, metric: str | None) -> dict[str, Column]:
    """Return the columns that the report uses, by title.

    Raises:
        InputError: A column is missing, or two columns hold the same.
    """
    used: dict[str, Column] = {}
    by_kind: dict[str, str] = {}
    for title in titles:
        column = columns.recognised(title, metric)
        if column is None:
            continue
        if column.kind in by_kind:
            other = by_kind[column.kind]
            what = column.kind.replace("_", " ")
            raise InputError(f'{shown}: columns "{other}" and "{title}" are both the {what}',
                             hint="rename or remove one of them; --metric selects the metric")  # fmt: skip
        used[title], by_kind[column.kind] = column, title
    listed = and_more(titles, 8)
    if metric is not None and "metric" not in by_kind:
        raise InputError(f'{shown} has no column "{metric}"', hint=f"its columns are: {listed}")
    for kinds, what in (
        (("machines", "devices"), "machines or devices"),
        (("time", "throughput"), "time or throughput"),
    ):
        if not by_kind.keys() & set(kinds):
            guess = next(filter(None, map(columns.known_title, titles)), "")
            raise InputError(
                f"{shown} has no column for {what}",
                hint=f"its columns are: {listed}" + (f"; {guess}" if guess else ""),
            )
    return used


def _notes(titles: Sequence[str], used: Mapping[str, Column]) -> tuple[str, ...]:
    unused = [
        title for title in titles if title not in used and title.replace("_", "") not in columns.IGNORED
    ]
    if not unused:
        return ()
    several = "columns are" if len(unused) > 1 else "column is"
    return (f"{len(unused)} {several} not used: {and_more(unused, 6)}",)


class _Reader:
    """Makes figures of rows."""

    def __init__(self, shown: str, used: Mapping[str, Column]) -> None:
        self._shown, self._used = shown, used

    def figure(self, place: str, row: Mapping[str, str]) -> Figure:
        """Return the figure of a row."""
        values: dict[str, Any] = {}
        for title, column in self._used.items():
            text = row.get(title, "")
            if text.lower() in columns.EMPTY:
                continue
            try:
                self._put(values, column, text)
            except ValueError as error:
                raise _wrong_cell(self._shown, place, title, text, str(error)) from None
        return Figure(place, **values)

    def _put(self, values: dict[str, Any], column: Column, text: str) -> None:
        if column.kind == "time":
            values["seconds"], values["time_unit"] = columns.seconds(text, column.unit)
        elif column.kind in {"machines", "devices"}:
            values[column.kind] = columns.whole(text)
        elif column.kind in {"throughput", "batch_size", "learning_rate"}:
            values[column.kind] = columns.positive(text)
        elif column.kind == "metric":
            values["metric"] = columns.number(text)
        else:
            values[column.kind] = text


def _check_complete(figures: Sequence[Figure], shown: str) -> None:
    """Refuse a row without a size or a result that other rows have."""
    for field in ("machines", "devices"):
        have = [getattr(figure, field) is not None for figure in figures]
        if any(have) and not all(have):
            place = figures[have.index(False)].place
            raise InputError(f"{shown}, {place}: no number of {field}, which other rows have",
                             hint="write it in every row or in none")  # fmt: skip
    good = [figure for figure in figures if not figure.failed]
    if any(all(getattr(figure, field) is not None for figure in good) for field in ("seconds", "throughput")):
        return
    for figure in good:
        if figure.seconds is None and figure.throughput is None:
            raise InputError(f"{shown}, {figure.place}: no time and no throughput",
                             hint="write one of them in every row")  # fmt: skip
    raise InputError(f"{shown}: some rows have only a time, others only a throughput",
                     hint="give the same in every row")  # fmt: skip


class Figure(NamedTuple):
    """One run of the job on a number of machines or devices.

    ``devices`` counts those of all machines. At least one of ``machines`` and ``devices`` is known, and at
    least one of ``seconds`` and ``throughput`` unless the run ``failed``.
    """

    #: The position in the file, for messages: ``row 3`` or ``runs[2]``.
    place: str
    #: The experiment, if the file has several, such as a network's name.
    name: str = ""
    machines: int | None = None
    devices: int | None = None
    seconds: float | None = None
    #: The unit in which the file gives the time: ms, s, min, h or d.
    time_unit: str = "s"
    #: Work per second, in any unit.
    throughput: float | None = None
    metric: float | None = None
    batch_size: float | None = None
    learning_rate: float | None = None
    #: Why the run has no result; empty for a run that ended well.
    failed: str = ""


class Figures(NamedTuple):
    """The figures of a file, and how its columns are to be shown."""

    rows: tuple[Figure, ...]
    metric_name: str = "metric"
    #: Remarks about the file, such as columns that are not used.
    notes: tuple[str, ...] = ()
