"""What a picture marks on a table: findings of ``validate``, results of ``doctor`` and ``explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools import formats
from hccl_tools.diagnostics.placing import place
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.diagnostics.diagnostic import Path, Report
    from hccl_tools.table.model import RankTable

#: The kinds of marks and their meanings, the most important first.
MEANINGS = {
    "cause": "cause",
    "error": "error",
    "warning": "warning",
    "consequence": "consequence",
    "note": "note",
    "silent": "no error in the logs",
}
KINDS = tuple(MEANINGS)


class Mark(NamedTuple):
    """One finding, cause or consequence, and the part of the table that it is about.

    Attributes:
        kind: One of ``KINDS``.
        label: The id of the rule, check or message; "" if there is none.
        sentence: What is wrong, or what happened.
        rows: The devices concerned.
        servers: The indices of servers that are concerned as a whole. With neither rows nor servers, the
            mark is about the whole table.
        place: The file and line, such as ``job.json:9``; "" if unknown.
        peers: Pairs of rows: which device has failed to communicate with which.
    """

    kind: str
    label: str
    sentence: str
    rows: tuple[int, ...] = ()
    servers: tuple[int, ...] = ()
    place: str = ""
    peers: tuple[tuple[int, int], ...] = ()


class Note(NamedTuple):
    """Marks with equal kind and label, as one line of a picture: its number, and all their marks.

    ``omitted`` is the number of further findings that the report counted but did not keep.
    """

    number: int
    marks: list[Mark]
    omitted: int = 0

    @property
    def kind(self) -> str:
        """The kind of all the marks."""
        return self.marks[0].kind


def notes(marks: Iterable[Mark], omitted: Mapping[str, int]) -> list[Note]:
    """Return the marks as numbered notes, the most important first; silent ranks are not numbered.

    Args:
        omitted: The number of findings that have no mark, by the label of their rule.
    """
    found: dict[tuple[int, str, str], list[Mark]] = {}
    for mark in marks:
        if mark.kind != "silent":
            alone = mark.sentence if mark.kind == "cause" else ""
            found.setdefault((KINDS.index(mark.kind), mark.label, alone), []).append(mark)
    ordered = sorted(found.items(), key=lambda item: item[0][0])
    return [
        Note(number, own, omitted.get(own[0].label, 0)) for number, (_, own) in enumerate(ordered, start=1)
    ]


def of_findings(report: Report) -> list[Mark]:
    """Return the kept findings of a report as marks."""
    table = report.table
    if table is None or not report.findings:
        return []
    located = _Located(table)
    found = []
    for finding, where, _ in place(report, report.findings):
        paths = [finding.path, *(one.path for one in finding.related)]
        rows = dict.fromkeys(row for path in paths if (row := located.row(path)) is not None)
        server = None if rows else located.server(finding.path)
        found.append(
            Mark(
                finding.rule.severity,
                finding.rule.id,
                finding.message,
                tuple(rows),
                () if server is None else (server,),
                "" if where is None else f"{report.file}:{where.start.line}",
            )
        )
    return found


class _Located:
    """The devices and servers of a table by their paths in the document."""

    def __init__(self, table: RankTable) -> None:
        module = formats.module(table.format)
        self._rows = _by_path(module.device_path(table, row) for row in range(len(table)))
        self._servers: Mapping[Path, int] = {}
        if table.format != "2.0":  # its ranks are one list: a path names a rank, never a server
            self._servers = _by_path(module.server_path(table, index) for index in range(len(table.servers)))

    def row(self, path: Path) -> int | None:
        """Return the device that a path lies in."""
        return _inside(self._rows, path)

    def server(self, path: Path) -> int | None:
        """Return the server that a path lies in."""
        return _inside(self._servers, path)


def _by_path(paths: Iterable[Path]) -> dict[Path, int]:
    return {path: index for index, path in enumerate(paths)}


def _inside(known: Mapping[Path, int], path: Sequence[str | int]) -> int | None:
    found = (known.get(tuple(path[:length])) for length in range(len(path), 0, -1))
    return next((index for index in found if index is not None), None)
