"""Hints with a command that reads a file and writes another one; the command gets their names at the end.

The functions that make a hint know the text of a file, and not its name. A search for placeholders in the
finished hint would also find them in a text of the file, perhaps between the quotes of a command.
"""

from __future__ import annotations

import os

#: The names of both files in the command of a hint. No text of a file can have it.
FILES = f"\0{os.urandom(8).hex()}\0"
#: What a hint has in its place if the names are unknown.
_UNKNOWN = "OLD > NEW"


class Hint(str):
    """A hint with the parts of its text before and after the names of the files."""

    __slots__ = ("parts",)
    parts: list[str]


def with_places(text: str) -> str:
    """Return a hint that can be shown, and in which the names of its files can be filled in."""
    parts = text.split(FILES)
    if len(parts) == 1:
        return text
    hint = Hint(_UNKNOWN.join(parts))
    hint.parts = parts
    return hint


def filled_in(hint: str, old: str, new: str) -> str:
    """Return a hint with the names of its files, which are words of a command line."""
    return f"{old} > {new}".join(hint.parts) if isinstance(hint, Hint) else hint
