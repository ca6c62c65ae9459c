"""Characters from input methods and word processors that look like ASCII characters."""

from __future__ import annotations

from hccl_tools.records import NamedTuple

#: The difference between the code points of full-width forms (U+FF01 to U+FF5E) and their ASCII characters.
_FULL_WIDTH_OFFSET = 0xFEE0
_NAMES = {",": "comma", ":": "colon", ";": "semicolon", "-": "hyphen", "{": "brace", "}": "brace",
          "[": "bracket", "]": "bracket", "(": "bracket", ")": "bracket", ".": "dot"}  # fmt: skip
#: CJK punctuation that an input method enters instead of the ASCII character.
_CJK = {
    "\u3001": ",",
    "\u3002": ".",
    "\u3010": "[",
    "\u3011": "]",
    "\u3014": "[",
    "\u3015": "]",
    "\u3000": " ",
}
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")


#: The maximum length of a text in a message.
_LONGEST_SHOWN = 40


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


def mistyped(text: str) -> tuple[str, str] | None:
    """Return which look-alike a text has, and the text to type instead, as message and hint; else None.

    >>> mistyped("0\uff0c1")
    ('full-width comma "\uff0c" in "0\uff0c1"', 'type "0,1"')
    """
    found = first(text)
    if found is None:
        return None
    return f'{found.name} "{found.char}" in "{_clip(text)}"', f'type "{_clip(plain(text))}"'


def mistyped_option(argument: str) -> tuple[LookAlike, str] | None:
    """Return the look-alike of a hyphen among the first signs of an argument, and the name after them.

    A word processor makes one long dash of two hyphens, so the number of signs tells nothing.

    >>> mistyped_option("\u2014strict")[1], mistyped_option("--strict")
    ('strict', None)
    """
    name = plain(argument).lstrip("-")
    signs = argument[: len(argument) - len(name)]
    dash = first(signs)
    return None if dash is None else (dash, name)


def _clip(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
