"""``show -f svg|html``: options of the pictures of a table, and where a picture is written."""

from __future__ import annotations

import os
import sys
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from hccl_tools import load_part
from hccl_tools.cli.options import together, write
from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import UsageError, WriteError
from hccl_tools.notation.printable import tell
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.table.model import RankTable

FORMATS = ("svg", "html")
_SUFFIXES = {".svg": "svg", ".html": "html", ".htm": "html"}
#: Standard output in place of a file.
_STDOUT = "-"

_options = together(
    click.option(
        "-o",
        "--output",
        "path",
        metavar="FILE|-",
        help="Write a picture to this file; its suffix (.svg, .html) is the format. - is stdout.",
    ),
    click.option("--force", is_flag=True, help="With -o: replace a file that exists."),
    click.option("--findings", is_flag=True, help="Draw the findings of `validate` on the picture."),
    click.option("--doctor", metavar="FILE", help="Draw the findings of `doctor -f json` on the picture."),
    click.option("--explain", metavar="FILE", help="Draw what `explain -f json` has found on the picture."),
)


class PictureOptions(NamedTuple):
    """The options that apply to pictures only."""

    path: str | None
    findings: bool
    doctor: str | None
    explain: str | None
    force: bool = False


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of pictures to a command, which gets them as ``picture``, and the format to use."""

    @wraps(function)
    def run(
        *,
        output: str | None,
        path: str | None,
        findings: bool,
        doctor: str | None,
        explain: str | None,
        force: bool,
        **others: Any,
    ) -> Any:
        picture = PictureOptions(path, findings, doctor, explain, force)
        return function(output=_format(output, picture), picture=picture, **others)

    return _options(run)


def _format(output: str | None, given: PictureOptions) -> str:
    """Return the output format: that of ``-f``, else by the suffix of ``-o``, else text.

    Raises:
        UsageError: The suffix names no format, an option is for pictures only, or a picture would be printed
            on a terminal.
    """
    path = given.path
    if output is None and path not in (None, _STDOUT):
        suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122  (a name, not a file)
        output = _SUFFIXES.get(suffix)
        if output is None:
            raise UsageError(
                f"-o {path}: the suffix names no format of a picture",
                hint="use .svg or .html, or specify -f",
            )
    output = output or "text"
    if output not in FORMATS:
        names = {"-o": path is not None, "--findings": given.findings, "--doctor": given.doctor is not None,
                 "--explain": given.explain is not None, "--force": given.force}  # fmt: skip
        if wrong := [name for name, is_given in names.items() if is_given]:
            raise UsageError(
                f"{wrong[0]} is for pictures only", hint="write a picture: -o FILE.svg or -o FILE.html"
            )
    elif path in (None, _STDOUT) and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError(f"{output} is not printed on a terminal", hint=f"use -o FILE.{output}")
    return output


def draw(
    report: Report,
    table: RankTable,
    servers: Sequence[int],
    output: str,
    given: PictureOptions,
    *,
    unfold: bool,
) -> None:
    """Write the picture of some servers of a table, with what the options mark on it.

    Args:
        report: The report on the table.
        servers: The indices of the servers.
        unfold: Whether equal servers are all drawn.

    Raises:
        InputError: The result of ``doctor`` or ``explain`` cannot be read.
        WriteError: The file exists, or cannot be written.
    """
    path = given.path
    origin = report.origin
    read = (report.file, origin and origin.file, given.doctor, given.explain)
    if path is not None and any(_is_same(path, one) for one in read):
        raise UsageError(f"-o {path} is the file that is read", hint="write to another file")
    drawing = load_part("show.picture.drawing")
    marks = drawing.marks(report, table, findings=given.findings, doctor=given.doctor, explain=given.explain)
    subject = drawing.subject(report, table, servers, marks=marks, unfold=unfold)
    pieces = drawing.pieces(subject, output)
    if path is None or path == _STDOUT:
        write(pieces)
        return
    if os.path.isfile(path) and not given.force:  # noqa: PTH113
        raise WriteError(f"{path} exists", hint="--force replaces it, -o writes elsewhere")

    tell(f"wrote {write_atomically(path, pieces, create=not given.force)}")


def _is_same(path: str, other: str | None) -> bool:
    try:
        return other is not None and os.path.samefile(path, other)  # noqa: PTH121
    except OSError:
        return False
