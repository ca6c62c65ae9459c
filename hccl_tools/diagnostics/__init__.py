"""The findings on a table and their output formats."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import KEPT
from hccl_tools.diagnostics.placing import ReportOptions
from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Report

#: Output format -> the module of this package that renders it.
FORMATS = {
    "text": "text", "concise": "concise", "json": "json_report", "junit": "junit", "github": "github",
    "sarif": "sarif",
}  # fmt: skip
#: The number of findings per rule and file in the text formats; other formats show ``diagnostic.KEPT``.
SHOWN = 20
_FOR_PROGRAMS = frozenset({"json", "sarif"})


def limit(output_format: str, *, show_all: bool = False) -> int | None:
    """Return how many findings of one rule an output format shows; ``None`` for all."""
    if show_all:
        return None
    return KEPT if output_format in _FOR_PROGRAMS else SHOWN


def kept(output_format: str, *, show_all: bool = False) -> int | None:
    """Return how many findings of one rule an output format needs; ``None`` for all.

    The text format shows equal findings as one, so it needs more than it shows.
    """
    return limit("json" if output_format == "text" else output_format, show_all=show_all)


def render(
    reports: Iterable[Report],
    output_format: str = "text",
    *,
    show_all: bool = False,
    color: bool = False,
    only_hccl: bool = False,
    ascii_only: bool = False,
    strict: bool = False,
    width: int | None = None,
    chinese: Callable[[str], str] | None = None,
) -> Iterator[str]:
    """Yield the text of reports, piece by piece, in one of ``FORMATS``.

    Args:
        reports: Reports, each rendered when the iterator yields it.
        show_all: Show every finding that the reports kept, however many a rule has.
        only_hccl: Omit findings that HCCL itself accepts.
        ascii_only: Escape characters that are not ASCII (text, concise, github; the other formats always do).
        strict: Whether warnings fail their test case (junit).
        width: The columns of the screen on which the text is shown; ``None`` keeps long lines.
        chinese: Returns the Chinese line of a rule by its id, "" if there is none (text).

    Raises:
        UsageError: The format is unknown.
    """
    name = FORMATS.get(output_format)
    if name is None:
        raise UsageError(f'unknown output format "{output_format}"', hint=f"formats: {', '.join(FORMATS)}")
    shown = limit(output_format, show_all=show_all)
    options = ReportOptions(shown, color, only_hccl, ascii_only, strict, width, chinese)
    renderer = import_module(f"hccl_tools.diagnostics.{name}")
    pieces: Iterator[str] = renderer.render(reports, options)
    return pieces
