"""A page in Markdown as text for a terminal: without marks of Markdown, as wide as the screen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.notation import screen

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMENT = re.compile(r"^<!-- .* -->\n", re.MULTILINE)
_PICTURE = re.compile(r"^!\[([^\]]*)\]\([^)]*\)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]]{1,300})\]\(([^)\s]{1,300})\)")
_BOLD = re.compile(r"\*\*(.+?)\*\*")
_CELL = re.compile(r"(?<!\\)\|")
_INDENT = "    "
#: The start of a line that is not joined with the one before.
_ENTRY = re.compile(r"(- |\d+\. |#)")


def plain(page: str, columns: int | None) -> str:
    """Return a page for a screen of so many columns; without a number, paragraphs are one line each."""
    text = _COMMENT.sub("", page)
    text = _PICTURE.sub(r"(picture: \1)", text)
    lines: list[str] = []
    for number, part in enumerate(re.split(r"^```(.*\n(?:.*\n)*?)```$", text, flags=re.MULTILINE)):
        if number % 2:
            lines += [_INDENT + line for line in part.splitlines()[1:]]
        else:
            lines += _prose(part.strip("\n"), columns)
        lines.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def links(page: str) -> list[str]:
    """Return the targets of the links of a page to other pages, each once."""
    found = (target.partition("#")[0] for _, target in _LINK.findall(page))
    return list(dict.fromkeys(target for target in found if target.endswith(".md")))


def _prose(text: str, columns: int | None) -> Iterator[str]:
    for paragraph in re.split(r"\n{2,}", text):
        rows = paragraph.split("\n")
        if rows[0].startswith("|"):
            yield from _table(rows, columns)
        else:
            for line in _joined(rows):
                indent = "  " if line.startswith("- ") else ""
                yield from screen.wrapped(_unmarked(line), columns, indent)
        yield ""


def _joined(rows: list[str]) -> list[str]:
    """Return the lines of a paragraph; an entry of a list is one line."""
    joined: list[str] = []
    for row in rows:
        if joined and not _ENTRY.match(row):
            joined[-1] += _blank(joined[-1][-1], row.strip()[0]) + row.strip()
        else:
            joined.append(row)
    return joined


def _blank(before: str, after: str) -> str:
    """Return what stands between two lines that are joined: nothing between Chinese characters."""
    return "" if screen.cells(before) == screen.cells(after) == 2 else " "


def _table(rows: list[str], columns: int | None) -> Iterator[str]:
    """Yield a row as its first cell, and below it the others, each with its title if there are several."""
    head, _, *body = ([_unmarked(cell.strip()) for cell in _CELL.split(row.strip()[1:-1])] for row in rows)
    for first, *others in body:
        yield from screen.wrapped(f"  {first}", columns, _INDENT)
        for title, cell in zip(head[1:], others, strict=False):
            if cell:
                text = f"{title}: {cell}" if title and len(head) > 2 else cell
                yield from screen.wrapped(f"      {text}", columns, "      ")


def _unmarked(text: str) -> str:
    return _BOLD.sub(r"\1", _LINK.sub(r"\1", text)).replace("\\|", "|")
