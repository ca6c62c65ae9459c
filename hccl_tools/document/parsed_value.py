"""Parsed values from a caller, converted to what HCCL would read from a file.

Python values are more general than JSON: keys of any type, integers of any length, lone surrogates, lists
that contain themselves. This module refuses values that a file cannot have, so that rules need not handle
them.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools.document.fast_parser import NESTING_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PLAIN = frozenset({dict, list, str, int, float, bool, type(None)})
#: The range in which HCCL's library keeps integers; other integers become floats.
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


class NotJsonError(ValueError):
    """A value cannot be in a JSON file; ``path`` leads to it or to its container."""

    def __init__(self, message: str, hint: str, path: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.message, self.hint, self.path = message, hint, path


def as_read(value: Any) -> Any:
    """Return a value as it would be parsed from a file: the value itself if possible, else a copy.

    Tuples become lists, integers beyond 64 bits become floats, and objects and lists nested deeper than
    ``NESTING_LIMIT`` are emptied.

    Raises:
        NotJsonError: The value cannot be in a JSON file.
    """
    return value if _is_plain(value) else _Copy().of(value, ())


def _is_plain(value: Any) -> bool:
    """Return whether a value needs no change, checked for a whole level at once."""
    level = [value]
    for _ in range(NESTING_LIMIT + 1):
        kinds = set(map(type, level))
        if not kinds <= _PLAIN:
            return False
        if not all(check(_of_kind(level, kind, kinds)) for kind, check in _CHECKS if kind in kinds):
            return False
        objects, lists = _of_kind(level, dict, kinds), _of_kind(level, list, kinds)
        inner = [*objects, *lists]
        keys = set(chain.from_iterable(objects))
        if len(set(map(id, inner))) < len(inner) or not set(map(type, keys)) <= {str} or not _are_texts(keys):
            return False
        level = list(chain(*map(dict.values, objects), *lists))
        if not level:
            return True
    return False


def _of_kind(level: list[Any], kind: type, kinds: set[type]) -> list[Any]:
    if kind not in kinds:
        return []
    return level if len(kinds) == 1 else [item for item in level if type(item) is kind]


def _are_64_bits(numbers: Iterable[int]) -> bool:
    return min(numbers) >= _LEAST and max(numbers) <= _MOST


def _are_finite(numbers: Iterable[float]) -> bool:
    return all(map(math.isfinite, numbers))


def _are_texts(texts: Iterable[str]) -> bool:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


_CHECKS: tuple[tuple[type, Callable[[Any], bool]], ...] = (
    (int, _are_64_bits),
    (float, _are_finite),
    (str, _are_texts),
)


class _Copy:
    def __init__(self) -> None:
        self._open: set[int] = set()

    def of(self, value: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(value, (dict, list, tuple)):
            return self._container(value, path)
        if isinstance(value, str):
            return _text(value, path)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return _number(value, path)
        raise NotJsonError(f"a value of type {type(value).__name__} is not JSON", _FROM_FILE, path)

    def _container(self, value: Any, path: tuple[str | int, ...]) -> Any:
        if id(value) in self._open:
            raise NotJsonError("an object or list contains itself", _FROM_FILE, path)
        is_object = isinstance(value, dict)
        if len(path) >= NESTING_LIMIT:
            return {} if is_object else []
        self._open.add(id(value))
        copy: Any
        if is_object:
            copy = {_key(key, path): self.of(item, (*path, key)) for key, item in value.items()}
        else:
            copy = [self.of(item, (*path, index)) for index, item in enumerate(value)]
        self._open.remove(id(value))
        return copy


_FROM_FILE = "pass the result of json.load, or the name of the file"


def _key(key: Any, path: tuple[str | int, ...]) -> str:
    if not isinstance(key, str):
        message = f"a key of type {type(key).__name__} is not JSON: all keys are strings"
        raise NotJsonError(message, _FROM_FILE, path)
    return _text(key, path)


def _text(text: str, path: tuple[str | int, ...]) -> str:
    if not _are_texts([text]):
        message = "a string has half of a character (a lone surrogate)"
        raise NotJsonError(message, "write the character itself, in UTF-8", path)
    return str.__str__(text)


def _number(number: float, path: tuple[str | int, ...]) -> float:
    if isinstance(number, int) and _LEAST <= number <= _MOST:
        return int(number)
    try:
        as_float = float(number)
    except OverflowError:
        as_float = math.inf
    if math.isfinite(as_float):
        return as_float
    message = "a number is too large" if isinstance(number, int) else f"{number} is not a JSON number"
    raise NotJsonError(message, "write a number that a 64-bit float can store", path)
