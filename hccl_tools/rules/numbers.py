"""Numbers that a spreadsheet has rounded, shared by several rules. This module declares no rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.commands import how_super_device

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

#: A number as a spreadsheet writes a long one: 1.90E+06, in some languages with a comma.
_EXPONENT = r"(?a)\s*[+-]?[0-9]{1,20}(?:[.,][0-9]{0,20})?[eE][+-]?[0-9]{1,3}\s*"
#: A number with signs between groups of three digits: 1,048,576.
_GROUPED = r"(?a)\s*([1-9][0-9]{0,2})((?:([.,' ])[0-9]{3})(?:\3[0-9]{3}){0,5})\s*"
#: A number in which letters stand in place of digits; one letter alone is no name either.
_WITH_LETTER = re.compile(r"(?:[0-9]+([OolI])|([OolI])[0-9]*)[0-9OolI]*", re.ASCII)
_HEXADECIMAL = r"(?a)\s*0[xX]([0-9a-fA-F]{1,8})\s*"
_PADDED = r"(?a)\s*\+?0*([0-9]{1,20})\s*"


def is_exponent(text: Any) -> bool:
    """Return whether a text is a number in exponent notation, of which HCCL reads the first digits only."""
    return isinstance(text, str) and re.fullmatch(_EXPONENT, text) is not None


def grouped(text: str) -> str | None:
    """Return the digits of a number that is written in groups of three; None for other texts."""
    found = re.fullmatch(_GROUPED, text)
    return None if found is None else "".join(one for one in found[0] if one.isdigit())


def is_padded(text: str) -> bool:
    """Return whether a text has only blanks, a plus sign or zeros beside its digits."""
    return re.fullmatch(_PADDED, text) is not None


def rounded(key: str, text: str, number: int) -> str:
    """Return the message on a number in exponent notation."""
    return (
        f"{key} {quoted(text)} is in exponent notation: a spreadsheet has rounded the number, "
        f'and HCCL reads "{number}"'
    )


def all_rounded(subject: Subject, key: str, row: int) -> tuple[str, str]:
    """Return message and hint on several such numbers, of which the first is given."""
    message = (
        f"{key}s are in exponent notation: a spreadsheet has rounded the numbers, and HCCL reads only the digits "
        "before the dot"
    )
    return message, f"{how_lost(subject, key, row)}; and so on for each of them"


def how_lost(subject: Subject, key: str, row: int) -> str:
    """Return the hint on a number of which digits are lost."""
    if key == "super_device_id":
        return f"its last digits are lost; {how_super_device(subject, row)}"
    return "its last digits are lost: take the number from the source of the table, in a column of texts"


def hexadecimal(text: str) -> int | None:
    """Return the number of a hexadecimal text, None for other texts."""
    found = re.fullmatch(_HEXADECIMAL, text)
    return None if found is None else int(found[1], 16)


def is_sloppy(text: Any, number: int | None) -> bool:
    """Return whether a text has other signs beside the number that HCCL reads in it."""
    return isinstance(text, str) and number is not None and text != str(number)


def as_read(text: str, number: int | None) -> str:
    """Return a text in quotes, with a letter in place of a digit, and the number that HCCL reads in it if it has other signs."""
    found = _WITH_LETTER.fullmatch(text)
    shown = (
        f'"{text}"'
        if found is None
        else f'"{text}" (with the letter "{found[1] or found[2]}" in place of a digit)'
    )
    return f"{shown}, read as {number}," if is_sloppy(text, number) else shown


def decimal_hint(text: Any) -> str:
    """Return the hint on a hexadecimal number; "" for other values."""
    meant = hexadecimal(text) if isinstance(text, str) else None
    return "" if meant is None else f'write "{meant}", the decimal number; HCCL reads hexadecimal ones as 0'


def kind_of(*texts: Any) -> str:
    """Return how texts are written that HCCL reads as another number than is meant; "" if none of them is."""
    for text in texts:
        if is_exponent(text):
            return "exponent"
        if isinstance(text, str) and grouped(text) is not None:
            return "grouped"
        if isinstance(text, str) and hexadecimal(text) is not None:
            return "hexadecimal"
    return ""


def all_read_wrong(subject: Subject, key: str, kind: str, row: int) -> tuple[str, str]:
    """Return message and hint on several numbers that HCCL reads as others, of which the first is given."""
    text = str(subject.table.columns[key][row])
    if kind == "exponent":
        return all_rounded(subject, key, row)
    if kind == "grouped":
        message = (
            f"{key}s have signs between groups of digits, and HCCL reads only the digits before the first"
        )
        return message, f'write each without them: "{text}" as "{grouped(text) or text}"'
    message = f"{key}s are hexadecimal, and HCCL reads each as 0"
    meant = hexadecimal(text)
    return message, f"write the decimal numbers{'' if meant is None else f': {text} is {meant}'}"
