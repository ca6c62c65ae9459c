"""Draw a table: as an SVG picture, or as a page with what ``doctor`` and ``explain`` have found on it.

The page is one HTML file that needs neither a network nor another file. Names from the table are only in
the JSON of the page, in which ``<`` is escaped, and in the title. The script adds them to the page as text.
The policy in the page's head forbids every script but that of this package.
"""

from __future__ import annotations

import hashlib
import json
import time
from base64 import b64encode
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from hccl_tools.notation.printable import escaped
from hccl_tools.show.picture import imported_findings, svg
from hccl_tools.show.picture.marks import of_findings
from hccl_tools.show.picture.page_data import page_data
from hccl_tools.show.picture.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.show.picture.marks import Mark
    from hccl_tools.table.model import RankTable

#: The modules of the script, in the order in which they need each other.
SCRIPTS = ("data", "search", "symbols", "boxes", "overview", "details", "links", "zoom", "keys", "main")
STYLES = ("colors", "style")


def pieces(subject: Subject, output: str) -> Iterable[str]:
    """Return a picture, ``svg`` or ``html``, piece by piece."""
    return page(subject) if output == "html" else [svg.picture(subject)]


def marks(
    report: Report, table: RankTable, *, findings: bool, doctor: str | None, explain: str | None
) -> list[Mark]:
    """Return what is marked: the findings of ``validate``, and those in the files of two other commands.

    Raises:
        InputError: A file cannot be read.
    """
    found: list[Mark] = []
    if explain is not None:
        found += imported_findings.of_explain(explain, table)
    if doctor is not None:
        found += imported_findings.of_doctor(doctor, table)
    if findings:
        found += of_findings(report)
    return found


def subject(
    report: Report, table: RankTable, servers: Sequence[int], *, marks: Sequence[Mark], unfold: bool
) -> Subject:
    """Return what a picture of some servers shows, with the date of today."""
    return Subject(report, table, servers, marks, date=time.strftime("%Y-%m-%d"), unfold=unfold)


def page(subject: Subject) -> Iterator[str]:
    """Yield the page piece by piece."""
    script = _joined("js", SCRIPTS)
    style = _joined("css", STYLES)
    policy = f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}"
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(escaped(subject.report.file))}: rank table</title>\n"
        f"<style>{style}</style>\n</head>\n"
    )
    yield _read("body.html")
    yield '<script type="application/json" id="data">'
    yield in_script(json.dumps(page_data(subject), separators=(",", ":")))
    yield f"</script>\n<script>{script}</script>\n</body>\n</html>\n"


def in_script(text: str) -> str:
    """Return JSON that is safe inside a ``script`` element: without a character that begins markup."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _joined(suffix: str, names: tuple[str, ...]) -> str:
    return "\n" + "".join(_read(f"{name}.{suffix}") for name in names)


def _read(name: str) -> str:
    return (files("hccl_tools") / "show" / "picture" / "page" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
