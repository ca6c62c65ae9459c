"""Recognise the text before each line of a table, such as the > of a mail or the prefix of a log.

The commands that remove it have numbers of bytes, words and lines alone: a text of the file could end the
pattern of a program, and what follows in it would be run.
"""

from __future__ import annotations

import itertools
import re

from hccl_tools.notation.hint import FILES

#: Text before the bracket of the first line, without signs that JSON has.
_PREFIX = re.compile(r"([^\s{}\"'][^{}\"'\n]{0,39})\{\s*$", re.ASCII)
#: The prefix of a log before the first bracket of a table, without quotes, and what differs in each line.
_LOGGED = re.compile(r"([^{}\"'\\\n]{4,160})[{\[]\s*$", re.ASCII)
_DIGITS, _BLANKS = re.compile(r"[0-9]+"), re.compile(" +")


def equal(text: str, lines: list[str]) -> tuple[str, str] | None:
    """Return a message and a hint on a table with the same text before each line; None for another text.

    Args:
        lines: The first lines of the text that are not blank.
    """
    first, found = next(
        ((place, one) for place, line in enumerate(lines[:-2]) if (one := _PREFIX.match(line)) is not None),
        (0, None),
    )
    if found is None or not all(line.startswith(found[1].rstrip()) for line in lines[first:-1]):
        return None
    if "{" in "".join(lines[:first]):
        return None  # The table begins before it.
    message = f'each line begins with "{found[1].rstrip()}", which is not part of the table'
    if not first:
        return message, f"remove it: cut -b{_size(found[1]) + 1}- {FILES}"
    begin = text.count("\n", 0, text.index(lines[first])) + 1
    end = begin + _lines_with(text, begin, found[1].rstrip())
    program = f"{begin},{end}s/^.{{{_size(found[1])}}}//p"
    return (
        f"there is other text before the table, which begins on line {begin}, and there {message}",
        f"keep only these lines, without it: LC_ALL=C sed -nE '{program}' {FILES}",
    )


def _size(prefix: str) -> int:
    """Return the number of bytes of a prefix, as `cut -b` and sed in the C locale count them."""
    return len(prefix.encode(errors="surrogateescape"))


def _lines_with(text: str, begin: int, prefix: str) -> int:
    """Return the number of lines behind line ``begin``, without a gap, that have the prefix or are blank."""
    of_table = itertools.takewhile(
        lambda line: not line.strip() or line.startswith(prefix), text.split("\n")[begin:]
    )
    return sum(1 for _ in of_table)


def of_log(lines: list[str]) -> tuple[str, str] | None:
    """Return a message and a hint on lines whose prefixes differ only in their numbers; None for others."""
    found = _LOGGED.match(lines[0])
    if found is None:
        return None
    shown = found[1].rstrip()
    words = [_DIGITS.split(word) for word in _BLANKS.split(shown)]
    prefix = re.compile(" +".join("[0-9]+".join(map(re.escape, word)) for word in words))
    matches = [prefix.match(line) for line in lines[:-1]]  # The last line may be cut.
    if None in matches:
        return None
    message = f'each line begins with the prefix of a log, such as "{shown}"; without it this is a table'
    return message, f"remove the prefix{_removal([one for one in matches if one is not None], found[1])}"


def _removal(found: list[re.Match[str]], first: str) -> str:
    """Return the command that removes the prefixes of a log, or what to do if numbers do not tell them."""
    sizes = {_size(one[0]) for one in found}
    if len(sizes) == 1:
        return f": cut -b{sizes.pop() + 1}- {FILES}"
    if any(one.string[one.end() : one.end() + 1].strip() for one in found):
        return f" of each line in an editor; it has {min(sizes)} to {max(sizes)} bytes"
    words = len(_BLANKS.split(first.strip(" ")))
    return f": sed -E 's/^ *([^ ]+( +|$)){{{words}}}//' {FILES}"
