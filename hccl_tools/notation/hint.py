"""The files that the command of a hint reads and writes: their names are filled in at the end.

The functions that make a hint know the text of a file, and not its name. A search for placeholders in the
finished hint would also find them in a text of the file, perhaps between the quotes of a command.
"""

from __future__ import annotations

import os
from shlex import quote

#: The names of both files in the command of a hint. No text of a file can have it.
FILES = f"\0{os.urandom(8).hex()}\0"
#: The numbers of further files of one name.
_MOST_NUMBERED = 100
#: What a hint has in its place if the names are unknown.
_UNKNOWN = "OLD > NEW"


class Hint(str):
    """A hint with the parts of its text before and after the names of the files."""

    __slots__ = ("parts",)
    parts: list[str]

    def filled_in(self, old: str, new: str) -> str:
        """Return the text with the names of both files, which are words of a command line."""
        return f"{old} > {new}".join(self.parts)


def with_places(text: str) -> str:
    """Return a hint that can be shown, and in which the names of its files can be filled in."""
    parts = text.split(FILES)
    if len(parts) == 1:
        return text
    hint = Hint(_UNKNOWN.join(parts))
    hint.parts = parts
    return hint


def file_here(name: str, usual: str) -> str:
    """Return a name from a file as that of a new file in the current folder, for a command line.

    Args:
        usual: What stands for a name that leads to another folder, or is that of a hidden file.

    >>> file_here("hccl 1.json", "FILE"), file_here("../.bashrc", "FILE")
    ("'hccl 1.json'", 'FILE')
    """
    return quote(unused(name)) if name and name[0] not in ".-" and "/" not in name else unused(usual)


def unused(path: str, *, beside: str = "") -> str:
    """Return a path that a command in a hint may write to: with a number before its ending if it exists.

    A redirection of the shell replaces a file without a word, and also what a link of an archive leads to.

    Args:
        beside: The name of another file that commands of the same hint write.
    """
    stem, ending = os.path.splitext(path)  # noqa: PTH122  (pathlib is not loaded for it)
    numbered = (f"{stem}.{number}{ending}" for number in range(2, _MOST_NUMBERED))
    last = f"{stem}.{os.urandom(4).hex()}{ending}"
    return next((name for name in (path, *numbered) if name != beside and not os.path.lexists(name)), last)
