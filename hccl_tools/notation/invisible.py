"""Characters that no editor shows: zero-width and directional signs, and blanks other than the usual one."""

from __future__ import annotations

import re
import unicodedata

from hccl_tools.records import NamedTuple

_NAMES = {
    "\u00a0": "a no-break space",
    "\u00ad": "a soft hyphen",
    "\u200b": "a zero-width space",
    "\u200c": "a zero-width non-joiner",
    "\u200d": "a zero-width joiner",
    "\u200e": "a left-to-right mark",
    "\u200f": "a right-to-left mark",
    "\u2060": "a word joiner",
    "\ufeff": "a byte order mark",
}
# Patterns as texts: `re` compiles them at their first use, which takes a millisecond.
_SIGNS = "[\u00a0\u00ad\u034f\u061c\u180e\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\ufeff]"
_BLANKS = "[\u00a0\u1680\u2000-\u200a\u202f\u205f]"


class Invisible(NamedTuple):
    """An invisible character: its name with its code point, and where in its text it is, as a phrase."""

    name: str
    where: str


def first(text: str) -> Invisible | None:
    r"""Return the first invisible character of a text.

    >>> first("10.0.0.1\u200b")
    Invisible(name='a zero-width space (U+200B)', where='at its end')
    """
    found = None if text.isascii() else re.search(_SIGNS, text)
    if found is None:
        return None
    at, char = found.start(), found[0]
    where = f'after "{text[max(0, at - 20) : at]}"'
    if not re.sub(_SIGNS, "", text[at:]).strip():
        where = "at its end"
    elif at == 0:
        where = "at its beginning"
    known = _NAMES.get(char) or f"the invisible character {unicodedata.name(char, 'without a name')}"
    return Invisible(f"{known} (U+{ord(char):04X})", where)


def without(text: str) -> str:
    r"""Return a text without its invisible characters; a blank between two words becomes the usual one.

    >>> without("\ufeffnode\u00a0one\u200b")
    'node one'
    """
    return re.sub(_SIGNS, "", re.sub(_BLANKS, " ", text)).strip(" ")
