"""Load a pickle that has plain values only, in time and memory that its size bounds.

A pickle is a program. Names of classes and functions are refused, and so are references to containers: 800
bytes of lists that contain the list before twice would be a value without end. Numbers of memo entries are
those of the pickle's own instructions, so that 25 bytes cannot reserve gigabytes.
"""

from __future__ import annotations

import io
import pickle  # nosec B403  (see _PlainUnpickler)
import pickletools  # nosec B403
from typing import Any

#: The instructions of a pickle: a dump of 20,000 calls with their stack frames has some three million.
_MOST_INSTRUCTIONS = 8_000_000
_LARGEST_NUMBER = 1 << 64
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_CONTAINERS = frozenset(
    {
        "EMPTY_DICT", "DICT", "EMPTY_LIST", "LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
        "EMPTY_SET", "FROZENSET", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS",
    }
)  # fmt: skip


class NotPlainError(Exception):
    """Why a pickle is not loaded."""


class _PlainUnpickler(pickle.Unpickler):
    """Reads plain values: no class, no function, nothing outside of the file."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse a name."""
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        """Refuse a reference."""
        del pid
        raise pickle.UnpicklingError("it has references")


def load(data: bytes) -> Any:
    """Return the value of a pickle.

    Raises:
        NotPlainError: It is damaged, or it has more than plain values.
    """
    try:
        _check(data)
        return _PlainUnpickler(io.BytesIO(data)).load()
    except NotPlainError:
        raise
    except Exception as error:  # noqa: BLE001  (a damaged pickle raises any)
        raise NotPlainError(str(error)) from None


def _check(data: bytes) -> None:
    """Refuse instructions that would need more time or memory than their number.

    Raises:
        NotPlainError: There are such instructions.
    """
    containers = set[int]()
    before, memoized = "", 0
    for number, (instruction, argument, _) in enumerate(pickletools.genops(data)):
        name = instruction.name
        if name in _PUTS:
            index = int(argument) if argument is not None else memoized
            memoized += 1
            if index > number:
                raise NotPlainError(f"its memo has the number {index:,}")
            if before in _CONTAINERS:
                containers.add(index)
        elif name in _GETS and argument in containers:
            raise NotPlainError("it has references to containers")
        elif name == "DUP":
            raise NotPlainError("it has references")
        elif isinstance(argument, int) and abs(argument) >= _LARGEST_NUMBER:
            raise NotPlainError("it has a number of more than 64 bits")
        if number > _MOST_INSTRUCTIONS:
            raise NotPlainError(f"it has more than {_MOST_INSTRUCTIONS:,} instructions")
        before = name
