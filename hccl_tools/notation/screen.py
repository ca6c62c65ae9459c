"""Text on a screen: its width, the columns that text takes there, breaks between words, and colours."""

from __future__ import annotations

import os
import re

from hccl_tools.notation.whole_number import whole_number

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The width for what has one width everywhere, such as a table that is also read in a file.
STANDARD = 80
#: A narrower screen is treated as one of this width: words would be left alone on their lines.
_NARROWEST = 20
#: A change of colour, which takes no column.
_STYLE = "\x1b\\[[0-9;]*m"
#: A text as shlex.quote writes it.
_BY_SHELL = r"""'[^']*'(?:"'"'[^']*')*"""
#: A command in backquotes, in which names with backquotes are quoted for the shell. A text has one reading:
#: with two, the search would take exponential time.
_IN_BACKQUOTES = r"""(?<![A-Za-z0-9_./'-])`(?:'[^']*'|"'"|"(?!'")|[^`'"])+`(?![A-Za-z0-9_/-])"""
#: What stands for these signs in such a command while its line is broken: it is one word then.
_SIGNS, _MARKS = " '", "\0\1"
#: What stands for a command with a name that has a backquote.
_NAMED = "\2"
#: A longer line is not broken: it has a text of a file that is shown whole.
_LONGEST = 4000
_QUOTED = r"(?<![^\s(=])'[^']+'"
#: A word with the space before it. A command in backquotes, or a value in single quotes, is one word, so that
#: it can be copied.
_WORD = rf"(?<!\s)(\s*)((?:{_QUOTED}|\S)+)"
#: Where a command begins that is not in backquotes: it takes the rest of its line, and is one word as well.
_COMMAND = (
    r"[:;] (?=hccl-tools [a-z]|(?:sudo|kubectl|scancel|srun|hccn_tool|chmod|chown|ssh-copy-id) \S"
    r"|(?:python3|(?:LC_ALL=C )?sed|cut|iconv|base64|git) \S"
    r"|ssh -|export \w+=)"
)
#: A sign of the shell that only a command has: whatever its program is, the command begins after the colon or
#: semicolon before it.
_REDIRECTION = r" [<>|] \S"
#: What is quoted in a line, also by shlex.quote: the beginning of a command is not looked for in it.
_PASSAGE = rf"""{_IN_BACKQUOTES}|(?<![^\s(=]){_BY_SHELL}|"(?:[^"\\]|\\.){{0,300}}\""""
_NEXT = "next: "
#: The same in a sentence with a Chinese full stop, which has no spaces: each character is a word. Signs that
#: close stay with the word before them, those that open with the one behind them. A text: `re` compiles it
#: at its first use, as it takes 2 ms.
_CHINESE_STOP = "。"
_CHINESE_WORD = (
    r"(?<!\s)(\s*)((?:`[^`]+`|" + _QUOTED + "|"
    r"[（《]?[\u4e00-\u9fff]|[（《]?[^\s`（《\u4e00-\u9fff，。；：、？！）》]+|\S)"  # noqa: RUF001
    r"[，。；：、？！）》]*)"  # noqa: RUF001
)
#: The most characters whose columns are kept: only hostile texts have more.
_MOST_KEPT = 50_000
#: Lines that quote something: a log, a source line, a traceback.
_QUOTE = r"\s*(?:[0-9]+\s*)?\| ?"
_STYLES = {
    "error": "1;31", "warning": "1;33", "message": "1", "frame": "1;34", "help": "36", "good": "1;32",
    "quiet": "2", "added": "32", "removed": "31", "note": "1;36",
}  # fmt: skip


def width(descriptor: int = 1) -> int | None:
    """Return the columns of COLUMNS, else of the terminal of a descriptor; ``None`` without either.

    Text that is not for a screen, such as a log or the input of another program, keeps its lines.
    """
    if stated := whole_number(os.environ.get("COLUMNS", "")):
        return max(_NARROWEST, stated)
    try:
        if os.isatty(descriptor):
            return max(_NARROWEST, os.get_terminal_size(descriptor).columns or STANDARD)
    except OSError:
        pass
    return None


def cells(text: str) -> int:
    r"""Return the columns that a text takes on a terminal: two for a Chinese character, none for a colour.

    >>> cells("节点 1"), cells("\x1b[1mbold\x1b[0m")
    (6, 4)
    """
    if "\x1b" in text:
        text = re.sub(_STYLE, "", text)
    return len(text) if text.isascii() else sum(map(_CELLS.__getitem__, text))


class _Cells(dict):  # type: ignore[type-arg]  # (Python 3.8 on other hosts has no dict[str, int])
    """The columns of each character that was asked for: a text of megabytes has few different ones."""

    def __missing__(self, char: str) -> int:
        from unicodedata import combining, east_asian_width  # noqa: PLC0415  (0.2 ms; most text is ASCII)

        size = 0 if combining(char) else 2 if east_asian_width(char) in {"W", "F"} else 1
        if len(self) < _MOST_KEPT:
            self[char] = size
        return size


_CELLS = _Cells()


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Return a text with spaces up to a number of columns; ``right`` puts the spaces before it."""
    space = " " * (columns - cells(text))
    return space + text if right else text + space


def cut(text: str, columns: int | None, mark: str = "...") -> str:
    """Return a text without colours in at most so many columns, with a mark for what is left out.

    >>> cut("train.py --epochs 3", 11), cut("训练脚本.py", 8)
    ('train.py...', '训练...')
    """
    if columns is None or cells(text) <= columns:
        return text
    room = columns - len(mark)
    kept = 0
    for char in text:
        room -= _CELLS[char]
        if room < 0:
            break
        kept += 1
    return text[:kept].rstrip() + mark


def wrapped(line: str, columns: int | None, indent: str | None = None) -> list[str]:
    """Return a line as lines of at most so many columns, broken between words.

    A word or a command that is longer stays whole, so that it can be copied: the terminal continues it on the
    next line, and copies it without a line break. A command is in backquotes, or follows ``next:``, or is a
    program with all behind it after a colon. Lines that quote a log or a file, or name something with a
    backquote, stay as they are, as does every line if ``columns`` is ``None``. A line with a Chinese full
    stop is broken between characters.

    Args:
        indent: What begins the further lines; by default two spaces more than the line.

    >>> wrapped("  help: see `hccl-tools validate t.json`, then start", 30)
    ['  help: see `hccl-tools validate t.json`,', '    then start']
    """
    if columns is None or cells(line) <= columns or len(line) > _LONGEST or re.match(_QUOTE, line):
        return [line]
    body = line.lstrip(" ")
    lead = line[: len(line) - len(body)]
    as_words = re.sub(_IN_BACKQUOTES, _as_word, body)
    # Other backquotes are those of a name: where a command begins and ends is then not known.
    if body.startswith(_NEXT) or _NAMED in as_words or "`" in re.sub("`[^`]*`", "", as_words):
        return [line]
    body, command = _parted(as_words)
    if indent is None:
        indent = lead + "  "
    room = columns - cells(indent)
    lines, current, used = [], lead, len(lead)
    pattern = _CHINESE_WORD if _CHINESE_STOP in body else _WORD
    words = re.findall(pattern, body)
    if command:
        words.append((body[len(body.rstrip()) :], command))
    for number, (space, word) in enumerate(words):
        size = cells(word)
        if number and used + len(space) + size > columns and size <= room:
            lines.append(current)
            current, used = indent + word, columns - room + size
        else:
            current, used = current + space + word, used + len(space) + size
    signs = str.maketrans(_MARKS, _SIGNS)
    return [one.translate(signs) for one in (*lines, current)]


def _as_word(command: re.Match[str]) -> str:
    inside = command[0][1:-1]
    return _NAMED if "`" in inside else "`" + inside.translate(str.maketrans(_SIGNS, _MARKS)) + "`"


def _parted(body: str) -> tuple[str, str]:
    """Return what is before a command that is not in backquotes, and that command, which may be "".

    A command must not be broken: its second line would be a command as well, perhaps the path of a file that
    others have made.
    """
    plain = re.sub(_PASSAGE, lambda passage: "'" * len(passage[0]), body)
    # A single quote in a sentence can hide the beginning: the text itself counts as well.
    start = min(_start(plain), _start(body, body.rfind("`") + 1))
    return body[:start], body[start:]


def _start(text: str, least: int = 0) -> int:
    """Return where the first command begins from a place on; the length of the text without one."""
    starts = [found.end() for found in [re.compile(_COMMAND).search(text, least)] if found]
    if redirection := re.compile(_REDIRECTION).search(text, least):
        before = max(text.rfind(mark, least, redirection.start()) for mark in (": ", "; "))
        starts.append(before + 2 if before >= 0 else least)
    return min(starts, default=len(text))


def fitted(text: str, columns: int | None) -> str:
    """Return a text of several lines with each of them wrapped."""
    if columns is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in wrapped(line, columns))


def each_fitted(lines: Iterable[str], columns: int | None) -> Iterator[str]:
    """Yield lines, each of them wrapped."""
    for line in lines:
        yield from wrapped(line, columns)


def page_fitted(page: str, columns: int | None) -> str:
    r"""Return a page of Markdown for a screen: paragraphs and entries of lists are wrapped, examples are not.

    >>> page_fitted("A long\nsentence.\n\n* an entry of a list\n\n    an example of a line", 16)
    'A long sentence.\n\n* an entry of a\n  list\n\n    an example of a line'
    """
    if columns is None:
        return page
    shown: list[str] = []
    paragraph: list[str] = []
    for line in [*page.split("\n"), ""]:
        is_own_line = not line or line.startswith(("#", "* ", "= ", "    "))
        if not is_own_line:
            paragraph.append(line)
            continue
        if paragraph:
            shown += wrapped(" ".join(paragraph), columns, "")
            paragraph = []
        shown += [line] if line.startswith("    ") else wrapped(line, columns)
    return "\n".join(shown[:-1])


def wants_color(descriptor: int) -> bool:
    """Return whether text on a descriptor is coloured: NO_COLOR, then FORCE_COLOR, then a terminal decide."""
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced != "0"
    return os.environ.get("TERM") != "dumb" and os.isatty(descriptor)


class Pen:
    """Colours text by what it means: ``error``, ``warning``, ``message``, ``help``, ``quiet``, ..."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, style: str, text: str) -> str:
        """Return the text in a style; unchanged without colours."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.color and text else text
