"""Recognise what a pager, editor or terminal wrote into a table that was copied from its screen.

Such text often stands on a line of the table, so that the line cannot be deleted, and it is on several lines.
"""

from __future__ import annotations

import re

from hccl_tools.document.foreign_text import stop_of
from hccl_tools.notation.hint import FILES
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import and_more
from hccl_tools.records import NamedTuple

#: The longest text that is examined, the kinds that are tried, and the lines that a message names.
_LONGEST, _MOST_NAMED, _SHOWN = 1 << 24, 12, 40
#: The lines with such text from which on a command is worth its reading.
_MANY = 4
_MORE = r"--More--[ \t]{0,4}(?:\([^()\n]{1,60}\))?"
_LINES = r"lines \d{1,6}-\d{1,6}(?:/\d{1,6})?(?: \(END\)| \d{1,3}%)?|\(END\)|Pattern not found[^\n]{0,40}"
_MODE = r"-- [A-Z]{4,12}(?: [A-Z]{4,12})? --[^\n{}]{0,80}"
_SAVED = r'"[^"\n]{1,200}"(?: \[[\w+ ]{1,20}\])? \d{1,9}(?:L, \d{1,12}[BC]\b| lines?, )[^\n{}]{0,80}'
_RULER = r"\d{1,7},\d{1,5}(?:-\d{1,5})?[ \t]+(?:\d{1,2}%|All|Top|Bot)"
_CONTROL = r"(?:\^(?:\[\[[0-9;?]{0,20}[A-Za-z]|[A-Z])){1,20}"
#: What a table has at the beginning of a line.
_OF_TABLE = r'["{}\[\]]'


class _Kind(NamedTuple):
    """A kind of text, with its pattern, whose last group is removed, and a command that removes all."""

    name: str
    pattern: re.Pattern[str]
    command: str = ""


def _kind(name: str, pattern: str, command: str = "") -> _Kind:
    return _Kind(name, re.compile(pattern, re.MULTILINE), command)


_KINDS = (
    _kind(
        "of a pager",
        rf"^([ \t]{{0,20}}{_MORE}[\b\r]*)|([ \t]{{0,20}}{_MORE})[ \t\b\r]{{0,20}}$",
        r"sed -E 's/--More--(\([^)]*\))?//' " + FILES,
    ),
    _kind("of a pager", rf"^([ \t]*(?:{_LINES}))|([ \t]{{0,20}}\(END\))[ \t\r]{{0,20}}$"),
    _kind("of a pager", rf"^(:)(?=[ \t]*(?:{_OF_TABLE}|\r?$))", "sed 's/^://' " + FILES),
    _kind("of an editor", r"^([ \t]*~)[ \t\r]*$", "sed '/^~$/d' " + FILES),
    _kind("of an editor", rf"^([ \t]*(?:{_MODE}|{_SAVED}|{_RULER}))[ \t\r]*$"),
    _kind(
        "for control characters",
        rf"^([ \t]*{_CONTROL})|({_CONTROL})$",
        r"sed -E 's/\^(\[\[[0-9;?]*[A-Za-z]|[A-Z])//g' " + FILES,
    ),
    _kind("of `cat -A`", r"(?<=[{}\[\],\"\d])(\$)$", r"sed 's/\$$//' " + FILES),
    _kind("of a prompt", rf"^((?:[\w.@:~/\[\]-]{{1,60}}[ \t]?)?[>$%][ \t]+)(?=[ \t]*{_OF_TABLE})"),
)
_NUMBER = re.compile(
    rf"^([ \t]{{0,10}}(\d{{1,7}})[ \t]*[:|)]?)(?=[ \t]*{_OF_TABLE})",
    re.MULTILINE,
)
_NUMBERED = _Kind(
    "of an editor or `cat -n` (line numbers)", _NUMBER, "sed -E 's/^ *[0-9]+ *[:|)]?//' " + FILES
)

#: The same number before each line.
_LABELLED = _Kind("of a program such as `srun --label`", _NUMBER, _NUMBERED.command)


class TerminalText(NamedTuple):
    """What is in a table that a terminal showed beside it: a sentence, what to do, and the offset.

    ``left`` is the text without it, if the table has another fault.
    """

    message: str
    hint: str
    at: int
    left: str = ""


def find(text: str, stop: int) -> TerminalText | None:
    """Return what a terminal showed on the line on which the parser stops; None for other text."""
    if len(text) > _LONGEST:
        return None
    start, end = text.rfind("\n", 0, stop) + 1, text.find("\n", stop)
    end = len(text) if end < 0 else end
    for kind in _KINDS:
        if _group(kind.pattern.search(text, start, end)) is not None:
            spans = [span for one in kind.pattern.finditer(text) if (span := _group(one)) is not None]
            if (found := _without(text, stop, kind, spans)) is not None:
                return found
    number = _NUMBER.match(text, start, end)
    if number is None:
        return None
    counted, equal = _numbers(text, number)
    kind, spans = (_LABELLED, equal) if len(equal) > len(counted) else (_NUMBERED, counted)
    return _without(text, stop, kind, spans)


def _group(found: re.Match[str] | None) -> tuple[int, int] | None:
    """Return the bounds of the group of a match that has text."""
    if found is None or not found.lastindex:
        return None
    return found.span(found.lastindex)


def _numbers(text: str, first: re.Match[str]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the numbers at the beginnings of lines that are counted as that of the stop, and those equal."""
    counted, equal, line, before = list[tuple[int, int]](), list[tuple[int, int]](), 0, 0
    number = int(first[2])
    own = number - text.count("\n", 0, first.start())
    for one in _NUMBER.finditer(text):
        line += text.count("\n", before, one.start())
        before = one.start()
        if int(one[2]) - line == own:
            counted.append(one.span(1))
        if int(one[2]) == number:
            equal.append(one.span(1))
    return counted, equal


def _without(text: str, stop: int, kind: _Kind, spans: list[tuple[int, int]]) -> TerminalText | None:
    """Return what is found if the parser comes farther without it."""
    pieces, done, lines, is_alone = list[str](), 0, list[int](), True
    number, line_of_stop = 1, text.count("\n", 0, stop) + 1
    shown, at = "", 0
    for start, end in spans:
        number += text.count("\n", done, start)
        pieces += [text[done:start], " " * (end - start)]
        done = end
        begin, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        rest = text[end : len(text) if line_end < 0 else line_end]
        is_alone = is_alone and not text[begin:start].strip() and not rest.strip()
        lines.append(number)
        if number == line_of_stop:
            shown, at = text[start:end].strip(), start
    left = "".join([*pieces, text[done:]])
    farther = stop_of(left)
    if farther is not None and left.count("\n", 0, farther) < line_of_stop:
        return None
    found = _told(kind, lines, shown, at, is_alone=is_alone)
    return found if farther is None else found._replace(left=left)


def _told(kind: _Kind, lines: list[int], shown: str, at: int, *, is_alone: bool) -> TerminalText:
    is_one = len(lines) == 1
    which = f"line {lines[0]}" if is_one else f"lines {and_more(fold(lines).split(','), _MOST_NAMED)}"
    shown = "".join(sign for sign in shown if sign.isprintable())[:_SHOWN]
    message = f"{which} {'has' if is_one else 'have'} text {kind.name} that is not part of the table: {shown}"
    these = "the line" if is_one else "these lines"
    hint = f"delete {these}"
    if not is_alone:
        hint = f"delete only {shown}{'' if is_one else ' and the like'}, and keep the rest of {these}"
    if len(lines) >= _MANY and kind.command:
        hint += f": {kind.command}"
    return TerminalText(message, hint, at)
