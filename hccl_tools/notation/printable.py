"""Escape text from tables, tools, other hosts and other users before it is printed on a terminal."""

from __future__ import annotations

import sys


def escaped(text: str, *, keep: str = "", ascii_only: bool = False) -> str:
    r"""Return a text without control sequences: characters that are not printable become ``\u001b``.

    Args:
        keep: Characters that are not escaped, such as a newline.

    >>> escaped("\x1b[31mred")
    '\\u001b[31mred'
    """
    if text.isprintable() and (not ascii_only or text.isascii()):
        return text
    return "".join(
        char if char in keep or (char.isprintable() and (not ascii_only or char.isascii())) else _escape(char)
        for char in text
    )


def stdout_is_ascii() -> bool:
    """Return whether standard output may accept only ASCII."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("_", "-")
    return encoding not in {"utf-8", "utf8"}


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
