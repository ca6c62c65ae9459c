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
