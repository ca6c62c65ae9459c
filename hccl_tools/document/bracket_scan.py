"""Scan the brackets of a text that is not valid JSON, and find by its indentation where one is missing.

A missing bracket shifts all that follows: the parser stops many lines later, at a bracket that is right. The
lines between are indented as the author meant them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A string up to its end or the end of its line, a bracket, or the indentation of a line.
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[{}\[\]]|\n[ \t]*')
CLOSER = {"{": "}", "[": "]"}
_OPENER = {"}": "{", "]": "["}
_MOST_SUSPECTS = 4
_KEY_BEFORE = re.compile(r'"([^"\\\n]*)"\s*:\s*\Z')
_LONGEST_KEY = 80


class Opened(NamedTuple):
    """A bracket that opens an object or list: its offset, and the indentation of its line.

    ``is_last`` is whether it is the last sign of its line, so that its entries are on lines of their own.
    """

    at: int
    sign: str
    indent: int
    is_last: bool

    @property
    def closer(self) -> str:
        """The bracket that closes it."""
        return CLOSER[self.sign]


class Suspect(NamedTuple):
    """A place where the brackets contradict the indentation.

    Attributes:
        at: The offset of the first sign of a line: an object or list must be closed before it, or it is one
            closing bracket too many.
        opened: The object or list that is not closed before ``at``; ``None`` for a bracket too many.
    """

    at: int
    opened: Opened | None


class Scan(NamedTuple):
    """What a scan has found.

    Attributes:
        open: The brackets that are open at the given offset, outermost first.
        closed: The opening bracket of the object or list that was closed last before that offset.
        closers: The last closing brackets before that offset, the latest first.
        suspects: The places where indentation and brackets contradict each other.
    """

    open: tuple[Opened, ...]
    closed: int | None
    closers: tuple[int, ...]
    suspects: tuple[Suspect, ...]


def scan(text: str, stop: int) -> Scan:
    """Scan a text in one pass; ``stop`` is where the parser stopped."""
    stack: list[Opened] = []
    at_stop: tuple[Opened, ...] | None = None
    closed, closers = None, list[int]()
    suspects = list[Suspect]()
    indent, first, aligned = _indent_of(text), True, True
    for token in _TOKEN.finditer(text):
        at, sign = token.start(), text[token.start()]
        if at_stop is None and at >= stop:
            at_stop = tuple(stack)
        if sign == "\n":
            indent, first = token.end() - at - 1, True
            continue
        while aligned and first and (suspect := _contradiction(stack, at, sign, indent)) is not None:
            suspects.append(suspect)
            aligned = len(suspects) < _MOST_SUSPECTS
            if suspect.opened is None:
                break
            stack.pop()
        extra, first = bool(suspects) and suspects[-1] == Suspect(at, None), False
        if extra:
            continue
        if sign in CLOSER:
            stack.append(Opened(at, sign, indent, _ends_line(text, at + 1)))
        elif sign in _OPENER and stack:
            last = stack.pop()
            if at_stop is None:
                closed, closers = last.at, [at, *closers[:2]]
        if at_stop is not None and not aligned:
            break
    return Scan(tuple(stack) if at_stop is None else at_stop, closed, tuple(closers), tuple(suspects))


def _indent_of(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))


def _ends_line(text: str, at: int) -> bool:
    while at < len(text) and text[at] in " \t\r":
        at += 1
    return at >= len(text) or text[at] == "\n"


def _contradiction(stack: list[Opened], at: int, sign: str, indent: int) -> Suspect | None:
    """Return the contradiction between the first sign of a line, its indentation, and the open brackets."""
    if not stack or not stack[-1].is_last:
        return None
    top = stack[-1]
    if sign in _OPENER:
        if indent < top.indent:
            return Suspect(at, top)
        return Suspect(at, None) if indent > top.indent else None
    return Suspect(at, top) if indent <= top.indent else None


def name_of(text: str, opened: Opened, around: Opened | None) -> str:
    """Return the name of an object or list in messages: ``the list "device"``, ``an entry of "device"``."""
    kind = "object" if opened.sign == "{" else "list"
    if key := key_before(text, opened.at):
        return f'the {kind} "{key}"'
    if around is None:
        return "the table"
    key = key_before(text, around.at)
    return f'the entry of "{key}"' if key else f"the {kind}"


def key_before(text: str, at: int) -> str:
    """Return the key whose value begins at an offset, "" if there is none."""
    found = _KEY_BEFORE.search(text, max(0, at - _LONGEST_KEY), at)
    return "" if found is None else found[1]


def last_sign(text: str, at: int) -> int:
    """Return the offset after the last sign before an offset that is not a blank."""
    return len(text[:at].rstrip(" \t\r\n"))


def last_line(text: str) -> int:
    """Return the offset of the last line that is not blank."""
    return text.rfind("\n", 0, last_sign(text, len(text))) + 1


def strings_before(text: str, at: int) -> Iterator[int]:
    """Yield the start of the string that ends right before an offset, if there is one."""
    end = last_sign(text, at)
    if end and text[end - 1] == '"':
        start = text.rfind('"', max(0, end - 1 - _LONGEST_KEY), end - 1)
        if start >= 0:
            yield start
