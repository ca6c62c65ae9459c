"""A page in Markdown as text for a terminal: without marks of Markdown, as wide as the screen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.guide.topics import topic_name, topics
from hccl_tools.notation import screen

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMENT = re.compile(r"^<!-- .* -->\n", re.MULTILINE)
_PICTURE = re.compile(r"^!\[([^\]]*)\]\([^)]*\)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]]{1,300})\]\(([^)\s]{1,300})\)")
_BOLD = re.compile(r"\*\*(.+?)\*\*")
_CELL = re.compile(r"(?<!\\)\|")
_INDENT = "    "
#: Letters of a word of a topic that says what a link is about.
_LEAST_LETTERS = 4
#: The language of blocks with what a command prints, and the mark before its lines, which are not pasted.
_OUTPUT, _SHOWN = "text", "| "
#: The start of a line that is not joined with the one before.
_ENTRY = re.compile(r"(- |\d+\. |#)")


def plain(page: str, columns: int | None) -> str:
    """Return a page for a screen of so many columns; without a number, paragraphs are one line each."""
    text = _COMMENT.sub("", page)
    text = _PICTURE.sub(r"(picture: \1)", text)
    lines: list[str] = []
    for number, part in enumerate(re.split(r"^```(.*\n(?:.*\n)*?)```$", text, flags=re.MULTILINE)):
        if number % 2:
            language, *code = part.splitlines()
            mark = _INDENT + _SHOWN if language == _OUTPUT else _INDENT
            lines += [(mark + line).rstrip() for line in code]
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
    return _BOLD.sub(r"\1", _LINK.sub(_linked, text)).replace("\\|", "|")


def _linked(link: re.Match[str]) -> str:
    """Return the text of a link; with the topic, if no word of the text says to which page it leads."""
    text, target = link[1], link[2].partition("#")[0]
    if not target.endswith(".md") or not text.isascii():
        return text
    topic = topic_name(target)
    is_clear = any(word in text.lower() for word in topic.split("-") if len(word) >= _LEAST_LETTERS)
    return text if is_clear or topic not in topics("en") else f"{text} (guide {topic})"
