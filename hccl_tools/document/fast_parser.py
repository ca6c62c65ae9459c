"""Fast parsers for clean JSON, which has no fault and no duplicate key.

``strict_parser.Reader`` parses all other texts, and returns the same value for a clean text.
"""

from __future__ import annotations

import json
from importlib import import_module
from itertools import chain
from typing import Any

#: The nesting depth to which values are kept; no rank table is deeper than 8. HCCL's library has no limit, so
#: deeper objects and lists are parsed, but left empty. Functions that walk a value stay far below Python's
#: recursion limit (1000 calls).
NESTING_LIMIT = 254

#: Bytes for which orjson saves less than its import takes: 1.2 ms (and 0.4 MB).
_SMALL = 1 << 16

#: Bytes that this process has parsed.
_parsed = 0

#: The result of ``parse_clean`` for a text that needs the strict parser.
UNCLEAN = object()


def parse_clean(data: bytes) -> Any:
    """Return the value of a clean text, or ``UNCLEAN``.

    Args:
        data: UTF-8 without a byte order mark.
    """
    global _parsed  # noqa: PLW0603  (a process that reads thousands of small files saves as much as with a large one)
    _parsed += len(data)
    if _parsed < _SMALL:
        return _parse_with_stdlib(data)
    try:
        orjson = import_module("orjson")
    except ImportError:
        return _parse_with_stdlib(data)
    return _parse_with_orjson(orjson, data)


def _parse_with_orjson(orjson: Any, data: bytes) -> Any:
    """Parse the text with orjson and serialise the value again to find dropped duplicate keys.

    Without backslashes each string has exactly two quotes, so missing quotes mean that a key was dropped.
    Serialising fails for more than ``NESTING_LIMIT`` levels.
    """
    if b"\\" in data:
        return UNCLEAN
    try:
        value = orjson.loads(data)
        written = orjson.dumps(value)
    except (ValueError, TypeError, RecursionError):  # orjson's errors are subclasses of the first two
        return UNCLEAN
    return value if written.count(b'"') == data.count(b'"') else UNCLEAN


def _parse_with_stdlib(data: bytes) -> Any:
    r"""Parse the text with ``json``, which accepts lone surrogates (``\ud800``); they make a text unclean."""
    if b"\\ud" in data or b"\\uD" in data:
        return UNCLEAN
    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_int=_number, parse_float=_number, parse_constant=_refuse
    )
    try:
        value = decoder.decode(data.decode())
    except (ValueError, RecursionError):
        return UNCLEAN
    return value if _is_shallow(value) else UNCLEAN


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError
    return value


def _number(text: str) -> int | float:
    value = number(text)
    if value is None:
        raise ValueError
    return value


def number(text: str) -> int | float | None:
    """Return a JSON number as HCCL's library stores it.

    Returns:
        A 64-bit integer (signed or unsigned), else a float; ``None`` if the number overflows.
    """
    if len(text) <= 20 and not any(char in text for char in ".eE"):
        value = int(text)
        if -(1 << 63) <= value < 1 << 64:
            return value
    as_float = float(text)
    return None if as_float in {float("inf"), float("-inf")} else as_float


def _refuse(_text: str) -> None:
    raise ValueError


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(NESTING_LIMIT + 1):
        outer = (item for item in level if type(item) in (dict, list))
        level = list(chain.from_iterable(item.values() if type(item) is dict else item for item in outer))
        if not level:
            return True
    return False
