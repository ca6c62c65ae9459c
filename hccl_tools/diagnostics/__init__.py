"""What is wrong with a table, as data, and how it is shown."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Report

#: Output format -> the module of this package that renders it.
FORMATS = {"text": "text", "concise": "concise", "json": "json_report", "github": "github", "sarif": "sarif"}


def render(
    reports: Iterable[Report],
    output_format: str = "text",
    *,
    show_all: bool = False,
    color: bool = False,
    only_hccl: bool = False,
    ascii_only: bool = False,
) -> Iterator[str]:
    """Yield reports as text, piece by piece, in one of ``FORMATS``.

    Args:
        reports: May be an iterator: each is rendered as it comes.
        output_format: A name in ``FORMATS``.
        show_all: Show every finding, however many a rule has (text, concise, github; the others always do).
        color: Use ANSI colours (text).
        only_hccl: Leave out all that HCCL itself would let pass.
        ascii_only: Escape what is not ASCII (text, concise, github; the others always do).

    Raises:
        UsageError: There is no such format.
    """
    name = FORMATS.get(output_format)
    if name is None:
        raise UsageError(
            f'there is no output format "{output_format}"', hint=f"formats: {', '.join(FORMATS)}"
        )
    from hccl_tools.diagnostics.placing import View  # noqa: PLC0415  (importing the package stays cheap)

    view = View(show_all=show_all, color=color, only_hccl=only_hccl, ascii_only=ascii_only)
    renderer = import_module(f"hccl_tools.diagnostics.{name}")
    pieces: Iterator[str] = renderer.render(reports, view)
    return pieces
