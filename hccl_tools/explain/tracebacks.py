"""The exception that ends a traceback of Python, whatever its class is called."""

from __future__ import annotations

import re

from hccl_tools.explain import screens, sieve

TRACEBACK = b"Traceback (most recent call last)"
#: A traceback has fewer lines; lines of other ranks may stand between them.
_MOST_LINES = 200
_LONGEST_LINE = 4096
#: The class of an exception, and its text.
_RAISED = re.compile(rb"[A-Za-z_][\w.]{0,200}(?::(?: .*)?)?\s*")


#: The text of an exception whose reason is on the next line: ``Error(s) in loading state_dict for Model:``.
_HEAD = re.compile(r":$|\b\d{1,6} validation errors? for \S{1,200}$")
#: Lines after a head in which its reason is looked for: some are empty.
_REASON_WITHIN = 3


def with_reason(text: str, data: bytes, end: int) -> str:
    """Return the text of an exception with its next line, if that has the reason.

    Args:
        data: A block of a log.
        end: Where the line with the exception ends in it.
    """
    if not _HEAD.search(text):
        return text
    for _ in range(_REASON_WITHIN):
        at = data.find(b"\n", end) + 1
        if not 0 < at < len(data):
            return text
        end = sieve.end_of_line(data, at, _LONGEST_LINE)
        line = data[at:end]
        if reason := line[screens.prefix(line).length :].strip():
            return f"{text} {reason.decode(errors='replace')}"
    return text


def raised(data: bytes, begin: int) -> tuple[int, bytes] | None:
    """Return where the line is that ends a traceback, and its text without prefixes; None if it is not there.

    Args:
        data: A block of a log.
        begin: The beginning of the line with ``TRACEBACK``.
    """
    first = data[begin : sieve.end_of_line(data, begin, _LONGEST_LINE)]
    prefix = screens.prefix(first)
    if not first[prefix.length :].startswith(TRACEBACK):
        return None  # It is a word in a sentence, or in a line that names the file and the level.
    writer = prefix[1:]
    at = begin
    for _ in range(_MOST_LINES):
        at = data.find(b"\n", at) + 1
        if not 0 < at < len(data):
            return None
        line = data[at : sieve.end_of_line(data, at, _LONGEST_LINE)]
        prefix = screens.prefix(line)
        text = line[prefix.length :]
        if prefix[1:] != writer or not text.strip() or text[:1] in b" \t":
            continue
        return (at, text) if _RAISED.fullmatch(text) and not text.startswith(TRACEBACK) else None
    return None
