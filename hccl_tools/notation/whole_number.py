"""Whole numbers in texts of variables, options and other hosts."""

from __future__ import annotations

#: Python refuses to convert more than 4300 digits; no number here has as many as these.
_MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """Return the number that a text consists of, up to 10**18; None for another text.

    >>> whole_number("300"), whole_number("-1"), whole_number("\u0663")
    (300, None, None)
    """
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else None
