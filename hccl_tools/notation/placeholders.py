"""Placeholders of templates: text that a program or a person was to replace, such as ``{{ host }}``."""

from __future__ import annotations

import re
from typing import Any

_LONGEST = 80
#: Jinja and Helm, shell and CMake, words in angle brackets, Python and C formats, and words for people.
_FORMS = (
    r"\{\{[^{}\n]*\}\}", r"\{%[^%\n]*%\}", r"\$\{[^{}\n]*\}", r"\$\([^()\n]*\)", r"\$[A-Za-z_]\w*",
    r"<[A-Za-z_][\w .:/-]*>", r"%\([\w.]+\)[sdr]", r"%[sd](?![\w])", r"@[A-Za-z_]\w*@", r"\{[A-Za-z_]\w*\}",
    r"\{\d?\}", r"\b__[A-Za-z]\w*__\b", r"\b(?:TODO|FIXME|TBD|CHANGE_?ME|REPLACE_?ME)\b",
    r"\b(?i:your)[-_ ]\w+",
)  # fmt: skip
#: As a text: `re` compiles it at its first use, which takes a millisecond.
_PLACEHOLDER = "(?a)" + "|".join(_FORMS)
#: The characters of addresses, of which no placeholder consists.
_OF_ADDRESSES = "0123456789.:"


def find(text: str) -> str | None:
    """Return the first placeholder of a text, None if it has none; long texts are not searched."""
    if len(text) > _LONGEST or not text.strip(_OF_ADDRESSES):
        return None
    found = re.search(_PLACEHOLDER, text)
    return None if found is None else found[0]


def first_in(value: Any) -> str | None:
    """Return the first placeholder in the texts of a parsed document, None if it has none."""
    below = [value]
    while below:
        one = below.pop()
        if isinstance(one, str):
            if (found := find(one)) is not None:
                return found
        elif isinstance(one, dict):
            below.extend(reversed(one.values()))
        elif isinstance(one, list):
            below.extend(reversed(one))
    return None


def at(text: str, start: int) -> str | None:
    """Return the placeholder that begins at an offset of a text, None if none does."""
    found = re.compile(_PLACEHOLDER).match(text, start, start + _LONGEST)
    return None if found is None else found[0]
