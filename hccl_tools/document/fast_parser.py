"""The fast parsers of JSON. All they may say is "clean": no fault and no duplicate key.

Anything else is left to ``json_text.Reader``, which gives the same value for a clean text.
"""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import Any

#: Levels of objects and lists inside each other that a value keeps; no rank table is deeper than 8. HCCL's
#: library has no limit of its own, so deeper ones are read as well, but left empty: all that walks a value
#: stays far below Python's own limit (1000 calls).
NESTING_LIMIT = 254

#: What ``parse_clean`` returns for a text that is left to the slow reader.
UNCLEAN = object()


def parse_clean(data: bytes) -> Any:
    """Return the value of a clean text, or ``UNCLEAN``.

    Args:
        data: UTF-8 without a byte order mark.
    """
    try:
        orjson = import_module("orjson")
    except ImportError:
        return _parse_with_stdlib(data)
    return _parse_with_orjson(orjson, data)


def _parse_with_orjson(orjson: Any, data: bytes) -> Any:
    """Let orjson read the text and write it again.

    Without backslashes every text keeps its two quotes, so a missing quote is a key that was dropped.
    Writing stops behind ``NESTING_LIMIT`` levels.
    """
    if b"\\" in data:
        return UNCLEAN
    try:
        value = orjson.loads(data)
        written = orjson.dumps(value)
    except (ValueError, TypeError, RecursionError):  # its own errors are of the first two kinds
        return UNCLEAN
    return value if written.count(b'"') == data.count(b'"') else UNCLEAN


def _parse_with_stdlib(data: bytes) -> Any:
    r"""Let ``json`` read the text; it takes half characters (``\ud800``), so these are left to the reader."""
    if b"\\ud" in data or b"\\uD" in data:
        return UNCLEAN
    import json  # noqa: PLC0415  (only without orjson)

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
    """Return a JSON number as HCCL's library holds it.

    Returns:
        An int of 64 bits (signed or unsigned), else a float; ``None`` where the number overflows.
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
    """Whether objects and lists are nested at most ``NESTING_LIMIT`` deep."""
    level = [value]
    for _ in range(NESTING_LIMIT + 1):
        outer = (item for item in level if type(item) in (dict, list))
        level = list(chain.from_iterable(item.values() if type(item) is dict else item for item in outer))
        if not level:
            return True
    return False
