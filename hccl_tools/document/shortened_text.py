"""Recognise a text that a mail program or a chat program has changed: broken into short lines, or shortened.

The parser stops at the first sign of it, which is often in a string; a remedy for this place would make a
table with a part of a value.
"""

from __future__ import annotations

import re

from hccl_tools.document.foreign_text import Foreign, stop_of
from hccl_tools.document.omissions import marks
from hccl_tools.notation.hint import FILES
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

#: The longest text that is examined.
_LONGEST = 1 << 24
_SOFT_BREAK = re.compile(r"=[ \t]{0,9}\r?\n")
_ENCODED = re.compile(r"=([0-9A-F]{2})")
_DECODE = (
    f"decode it, so that the lines are joined without these signs: python3 -m quopri -d < {FILES}; "
    "or send the table as an attachment"
)
#: The last line of a text that a chat program, a terminal or a log has shortened.
_MARKER = re.compile(
    r"\W*(?:message |text |output |content |log )?(?:was |is |has been )?"
    r"(?:truncated|shortened|cut(?: off)?)\b.{0,60}|"
    r"\W*\+?\d{1,9} (?:more )?(?:characters?|chars?|bytes|lines)\b.{0,60}|"
    r"\W*(?:show|see|read|view|load) (?:more|all|full)\b.{0,40}|"
    r"(?:\.{3}|\u2026)|"
    r"\W*(?:\u5df2?\u622a\u65ad|\u622a\u65ad|\u5c55\u5f00\u5168\u6587|\u67e5\u770b\u66f4\u591a|\u663e\u793a\u5168\u90e8).{0,40}",
    re.IGNORECASE,
)


class Shortened(NamedTuple):
    """A text without its end: what is left of it, and the line that says so."""

    left: str
    line: str


def quoted_printable(text: str) -> Foreign | None:
    """Return that a text is quoted-printable, as in mails, if the parser comes farther in it when decoded."""
    breaks = [found.start() for found in _SOFT_BREAK.finditer(text)] if len(text) <= _LONGEST else []
    if not breaks:
        return None
    decoded = _ENCODED.sub(lambda one: chr(int(one[1], 16)), _SOFT_BREAK.sub("", text))
    stop, before = stop_of(decoded), stop_of(text)
    if before is None or (stop is not None and stop <= before):
        return None
    lines = f"{count(len(breaks), 'line')} end{'s' if len(breaks) == 1 else ''} in ="
    return Foreign(f"the text is quoted-printable, as a mail is sent: {lines}", _DECODE, breaks[0])


def without_end(text: str) -> Shortened | None:
    """Return what is left of a table whose last line says that the rest was left out; None for others."""
    rest = text.rstrip()
    left, _, last = rest.rpartition("\n")
    if not left.strip() or len(text) > _LONGEST or not (_MARKER.fullmatch(last.strip()) or marks(last)):
        return None
    left = left.rstrip()
    return Shortened(left, last.strip()) if stop_of(left) == len(left) else None
