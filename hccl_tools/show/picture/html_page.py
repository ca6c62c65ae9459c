"""Write the page of a table: one HTML file that needs neither a network nor another file.

Names from the table are only in the JSON of the page, in which ``<`` is escaped, and in the title. The script
adds them to the page as text. The policy in the page's head forbids every script but that of this package.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from hccl_tools.notation.printable import escaped
from hccl_tools.show.picture.page_data import page_data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.show.picture.subject import Subject

#: The modules of the script, in the order in which they need each other.
SCRIPTS = ("data", "search", "symbols", "boxes", "overview", "details", "links", "zoom", "keys", "main")
STYLES = ("colors", "style")


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
