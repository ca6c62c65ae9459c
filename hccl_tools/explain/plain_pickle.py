"""Load a pickle that has plain values only, in time and memory that its size bounds.

A pickle is a program. Names of classes and functions are refused. torch writes each stack frame once and
refers to it from all operations; but 800 bytes of lists that contain the list before twice would be a value
without end, so that the values are counted with their repetitions. References to tuples are refused: those
are keys of dictionaries, whose hash has no such limit. Numbers of memo entries are those of the pickle's own
instructions, so that 25 bytes cannot reserve gigabytes.
"""

from __future__ import annotations

import io
import pickle  # nosec B403  (see _PlainUnpickler)
import pickletools  # nosec B403
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The instructions of a pickle: a dump of 20,000 calls with their stack frames has some three million.
_MOST_INSTRUCTIONS = 8_000_000
_LARGEST_NUMBER = 1 << 64
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_HASHED = frozenset({"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "FROZENSET"})
#: Instructions that no program that writes plain values needs; after POP, a tuple is not seen to be kept.
_STACK = frozenset({"DUP", "POP", "POP_MARK"})
#: Values of a pickle, with their repetitions.
_MOST_VALUES = 8_000_000
_CONTAINERS = (dict, list, tuple, set, frozenset)


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
        _check_instructions(data)
        value = _PlainUnpickler(io.BytesIO(data)).load()
        _check_size(value)
    except NotPlainError:
        raise
    except Exception as error:  # noqa: BLE001  (a damaged pickle raises any)
        raise NotPlainError(str(error)) from None
    return value


def _check_size(value: Any) -> None:
    """Refuse a value that contains itself, or too many values if each repetition counts.

    Raises:
        NotPlainError: It is such a value.
    """
    sizes: dict[int, int] = {}
    above: set[int] = set()
    pending: list[tuple[Any, bool]] = [(value, False)]
    while pending:
        one, is_counted = pending.pop()
        inside = _inside(one)
        if is_counted:
            above.discard(id(one))
            sizes[id(one)] = total = 1 + sum(sizes.get(id(part), 1) for part in inside)
            if total > _MOST_VALUES:
                raise NotPlainError(f"it has more than {_MOST_VALUES:,} values")
        elif id(one) in above:
            raise NotPlainError("it contains itself")
        elif inside and id(one) not in sizes:
            above.add(id(one))
            pending.append((one, True))
            pending += [(part, False) for part in inside if isinstance(part, _CONTAINERS)]


def _inside(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return list(value) if isinstance(value, _CONTAINERS) else ()


def _check_instructions(data: bytes) -> None:
    """Refuse instructions that would need more time or memory than their number.

    Raises:
        NotPlainError: There are such instructions.
    """
    hashed = set[int]()
    before, memoized = "", 0
    for number, (instruction, argument, _) in enumerate(pickletools.genops(data)):
        name = instruction.name
        if name in _PUTS:
            index = int(argument) if argument is not None else memoized
            memoized += 1
            if index > number:
                raise NotPlainError(f"its memo has the number {index:,}")
            if before in _HASHED:
                hashed.add(index)
        elif name in _GETS and argument in hashed:
            raise NotPlainError("it has references to tuples")
        elif name in _STACK:
            raise NotPlainError(f"it has the instruction {name}")
        elif isinstance(argument, int) and abs(argument) >= _LARGEST_NUMBER:
            raise NotPlainError("it has a number of more than 64 bits")
        if number > _MOST_INSTRUCTIONS:
            raise NotPlainError(f"it has more than {_MOST_INSTRUCTIONS:,} instructions")
        before = name
