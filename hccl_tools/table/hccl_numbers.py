"""Values as HCCL reads them: numbers in strings and in JSON, ``null``, and the length of a string."""

from __future__ import annotations

import re
from contextlib import suppress
from enum import Enum
from typing import Any

UINT32_MAX = 0xFFFFFFFF
_UINT64 = 1 << 64
#: Numbers of at most this many digits always fit in 32 bits.
_SAFE_DIGITS = 9
#: Values that show whether a column has few different ones.
_MANY = 64
_LEADING_NUMBER = r"(?a)[ \t\n\v\f\r]*([+-]?)([0-9]+)"


class Null(Enum):
    """The type of ``NULL``: a ``null`` in the file, which HCCL distinguishes from an absent key."""

    NULL = "null"


NULL = Null.NULL


def read_uint(text: str) -> int | None:
    """Read a number from a string as HCCL does.

    Leading blanks, a sign, leading zeros and any text after the digits are accepted (``" 3"``, ``"+3"``,
    ``"007"``, ``"3abc"``). A negative number wraps around 2**64.

    Returns:
        0 to 2**32 - 1, or ``None`` if HCCL refuses the text.

    Source:
        hcomm sal.cc:185, SalStrToULong: ``std::stoull`` in base 10, at most 32 bits.
    """
    if text.isdecimal() and text.isascii() and len(text) <= _SAFE_DIGITS:
        return int(text)
    match = re.match(_LEADING_NUMBER, text)
    if match is None:
        return None
    digits = match[2].lstrip("0")
    if len(digits) > 20:
        return None
    value = int(digits or "0")
    if value >= _UINT64:
        return None
    if match[1] == "-":
        value = -value % _UINT64
    return value if value <= UINT32_MAX else None


def read_int(text: str) -> int | None:
    """Read a signed number from a string as HCCL does; the text around it may be as in ``read_uint``.

    Returns:
        -2**31 to 2**31 - 1, or ``None`` if HCCL refuses the text.

    Source:
        hcomm sal.cc:167, SalStrToInt: ``std::stoi`` in base 10.
    """
    if text.isdecimal() and text.isascii() and len(text) <= _SAFE_DIGITS:
        return int(text)
    match = re.match(_LEADING_NUMBER, text)
    digits = match[2].lstrip("0") if match else ""
    if match is None or len(digits) > 10:
        return None
    value = int(f"{match[1]}{digits or 0}")
    return value if -(1 << 31) <= value < 1 << 31 else None


def read_column(column: list[Any]) -> list[int | None]:
    """Return a column as the numbers that HCCL reads: strings by ``read_uint``, JSON numbers as integers."""
    # Raised if a value is not a string, is empty, or has thousands of digits.
    with suppress(TypeError, ValueError):
        if (
            len(column) > _MANY and len(set(column[:_MANY])) * 2 < _MANY
        ):  # Device ids, ranks of many instances.
            different = list(dict.fromkeys(column))
            numbers = dict(zip(different, read_column(different), strict=True))
            return list(map(numbers.__getitem__, column))
        if are_digits("".join(column)):
            found = list(map(int, column))
            if max(found) <= UINT32_MAX:
                return found  # type: ignore[return-value]  # callers do not change it
    return [read_uint(value) if isinstance(value, str) else read_integer(value) for value in column]


def are_digits(text: str) -> bool:
    """Whether a text has only the digits 0 to 9 and line ends; 5 times as fast as ``isdecimal``."""
    return text.isascii() and not text.encode().translate(None, b"0123456789\n")


def read_integer(value: Any) -> int | None:
    """Read a JSON number as HCCL's 2.0 parser does: 1.9 is 1, true is 1.

    Returns:
        The integer, or ``None`` for a value that is not a number or does not fit in 64 bits.

    Source:
        hcomm json_parser.cc, GetJsonPropertyUInt: ``get<s64>()``.
    """
    if isinstance(value, (bool, int)) or (isinstance(value, float) and abs(value) < _UINT64):
        number = int(value)
    else:
        return None
    return number if -(_UINT64 >> 1) <= number < _UINT64 >> 1 else None


def byte_length(text: str) -> int:
    """Return the length of a text in bytes, as HCCL counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
