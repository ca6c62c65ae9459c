"""Characters from input methods and word processors that look like ASCII characters."""

from __future__ import annotations

from hccl_tools.records import NamedTuple

#: The difference between the code points of full-width forms (U+FF01 to U+FF5E) and their ASCII characters.
_FULL_WIDTH_OFFSET = 0xFEE0
_NAMES = {",": "comma", ":": "colon", ";": "semicolon", "-": "hyphen", "{": "brace", "}": "brace",
          "[": "bracket", "]": "bracket", "(": "bracket", ")": "bracket"}  # fmt: skip
#: CJK punctuation that an input method enters instead of the ASCII character.
_CJK = {"\u3001": ",", "\u3010": "[", "\u3011": "]", "\u3014": "[", "\u3015": "]", "\u3000": " "}
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")


class LookAlike(NamedTuple):
    """A character, its name, and the ASCII character to write instead."""

    char: str
    name: str
    ascii: str


def look_alike(char: str) -> LookAlike | None:
    """Return the ASCII character that a character looks like, or None.

    >>> look_alike("\uff0c")
    LookAlike(char='\uff0c', name='full-width comma', ascii=',')
    """
    if char in _DASHES:
        return LookAlike(char, "typographic dash", "-")
    plain = _CJK.get(char)
    if plain is None and 0xFF01 <= ord(char) <= 0xFF5E:
        plain = chr(ord(char) - _FULL_WIDTH_OFFSET)
    if plain is None:
        return None
    kind = "digit" if plain.isdigit() else _NAMES.get(plain, "character")
    return LookAlike(char, f"full-width {kind}", plain)


def first(text: str) -> LookAlike | None:
    """Return the first look-alike in a text."""
    return next((found for char in text if not char.isascii() and (found := look_alike(char))), None)


def plain(text: str) -> str:
    """Return a text with all look-alikes replaced by ASCII characters."""
    return "".join(found.ascii if (found := look_alike(char)) else char for char in text)
