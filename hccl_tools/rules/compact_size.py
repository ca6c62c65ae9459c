"""The size of a document as HCCL's JSON library serialises it, for its limit of 40 MiB.

Source: nlohmann::json 3.11, ``dump()``: no blanks, only necessary escapes, floats with their shortest digits
(about one float in 150 has more digits, such as 5e22; the size ignores them). This module has no rules.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

#: The maximum number of bytes by which a number grows: ``1e14`` is written as ``100000000000000.0``.
_GROWTH = 13
_SHORTEST_ITEM = len("1e9,")
_CHUNK = 1 << 16
#: Python writes floats in this range as 1000000000000000.0, HCCL's library as 1e+15.
_SCIENTIFIC = (1e15, 1e16)
_EXPONENT = len("e+15")


def may_exceed(data: bytes, limit: int) -> bool:
    """Return whether the serialised document may exceed a limit; a fast check with false positives.

    A document has at most one more number than it has commas. The check stops counting when the rest of the document
    cannot contain enough commas.
    """
    enough = (limit - len(data)) // _GROWTH
    commas = at = 0
    while commas + max(0, len(data) - at) // _SHORTEST_ITEM + 1 > enough:
        if at >= len(data):
            return True
        commas += data.count(b",", at, at + _CHUNK)
        at += _CHUNK
    return False


def of(value: Any) -> int:
    """Return the number of bytes that HCCL's library writes for a parsed document."""
    size = len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
    return size + sum(_written(number) - len(repr(number)) for number in _scientific(value))


def _written(number: float) -> int:
    digits = repr(abs(number)).replace(".", "").rstrip("0")
    return (number < 0) + len(digits) + (len(digits) > 1) + _EXPONENT


def _scientific(value: Any) -> list[float]:
    """Return the floats of a document that HCCL's library, but not Python, writes with an exponent."""
    found: list[float] = []
    level = [value]
    while level:
        found += [
            item for item in level if type(item) is float and _SCIENTIFIC[0] <= abs(item) < _SCIENTIFIC[1]
        ]
        outer = [item for item in level if type(item) in (dict, list)]
        level = list(chain.from_iterable(item.values() if type(item) is dict else item for item in outer))
    return found
