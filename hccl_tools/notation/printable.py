"""Text of others (tables, tools, other hosts, other users) as it may be sent to a terminal."""

from __future__ import annotations


def escaped(text: str, *, keep: str = "", ascii_only: bool = False) -> str:
    r"""Return text that cannot steer a terminal: what does not print stands as ``\u001b``.

    Args:
        text: Any text.
        keep: Characters that stay as they are: a newline, say.
        ascii_only: Escape what is not ASCII as well.

    >>> escaped("\x1b[31mred")
    '\\u001b[31mred'
    """
    if text.isprintable() and (not ascii_only or text.isascii()):
        return text
    return "".join(
        char if char in keep or (char.isprintable() and (not ascii_only or char.isascii())) else _escape(char)
        for char in text
    )


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
