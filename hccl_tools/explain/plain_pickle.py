"""Read a pickle that has plain values only, in time and memory that its size bounds.

A pickle is a program. This one is not run by Python's own interpreter: of its instructions, those that make
dictionaries, lists, tuples, texts, numbers, truth values and None are carried out here, and each other one is
refused. A key is a text or a small number. Tuples with one hash, or in one another without end, and chosen
large numbers would cost a dictionary time that its size does not bound.

torch writes each stack frame once and refers to it from all operations. 800 bytes of lists that contain the
list before twice would be a value without end, and a text of megabytes can be named a thousand times: what is
named again counts as what it takes.
"""

from __future__ import annotations

import pickletools  # nosec B403  (it reads the names of instructions, and runs none)
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: The instructions of a pickle: a dump of 20,000 calls with their stack frames has some three million.
_MOST_INSTRUCTIONS = 8_000_000
#: Its containers, with the marks before their items, and its numbered values: these take more than an
#: instruction each, and a dump of 20,000 calls has some 400,000.
_MOST_CONTAINERS = 1_000_000
_LARGEST_NUMBER = 1 << 64
#: Keys that are numbers are those of ranks.
_LARGEST_KEY = 1 << 20
#: Values of a pickle, with their repetitions; these characters of a text count as a further one.
_MOST_VALUES, _CHARACTERS = 8_000_000, 16
#: Levels of values in values; a dump has six.
_DEEPEST = 1000
_CONTAINERS = (dict, list, tuple)
_NAMES = frozenset({"GLOBAL", "INST"})


class NotPlainError(Exception):
    """Why a pickle is not loaded."""


def load(data: bytes) -> Any:
    """Return the value of a pickle.

    Raises:
        NotPlainError: It is damaged, or it has more than plain values.
    """
    try:
        value = _Builder().build(data)
    except NotPlainError:
        raise
    except Exception as error:  # noqa: BLE001  (a damaged pickle raises any)
        raise NotPlainError(str(error)) from None
    _check_size(value)
    return value


class _Builder:
    """Carries out the instructions of plain values."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # the stacks under the marks
        self._memo: dict[int, Any] = {}
        self._containers = 0

    def build(self, data: bytes) -> Any:
        """Return the value of a pickle.

        Raises:
            NotPlainError: An instruction is refused.
            Exception: The pickle is damaged.
        """
        for number, (instruction, argument, _) in enumerate(pickletools.genops(data)):
            name = instruction.name
            if name in _CONSTANTS:
                self._stack.append(_CONSTANTS[name])
            elif name in _ARGUMENTS:
                if isinstance(argument, int) and abs(argument) >= _LARGEST_NUMBER:
                    raise NotPlainError("it has a number of more than 64 bits")
                self._stack.append(argument)
            elif name in _GETS and argument is not None:
                self._stack.append(self._memo[argument])
            elif name in _PUTS:
                at = len(self._memo) if argument is None else argument
                # Python counts from 0; numbers may be chosen so that a dictionary compares each with all.
                _check_number(max(at, len(self._memo)), "numbered values")
                self._memo[at] = self._stack[-1]
            elif (action := _ACTIONS.get(name)) is not None:
                action(self)
            elif name not in _IGNORED:
                raise NotPlainError(
                    f"it names {str(argument).replace(' ', '.')}"
                    if name in _NAMES
                    else f"it has the instruction {name}"
                )
            if number > _MOST_INSTRUCTIONS:
                raise NotPlainError(f"it has more than {_MOST_INSTRUCTIONS:,} instructions")
        (value,) = self._stack
        return value

    def mark(self) -> None:
        """Begin the items of a container."""
        self._count()
        self._below.append(self._stack)
        self._stack = []

    def append(self) -> None:
        """Add one item to a list."""
        one = self._stack.pop()
        self._of(list).append(one)

    def appends(self) -> None:
        """Add items to a list."""
        items = self._items()
        self._of(list).extend(items)

    def set_item(self) -> None:
        """Add one item to a dictionary."""
        items = self._stack[-2:]
        del self._stack[-2:]
        _put(self._of(dict), items)

    def set_items(self) -> None:
        """Add items to a dictionary."""
        items = self._items()
        _put(self._of(dict), items)

    def make(self, kind: type) -> None:
        """Make a container that is empty."""
        self._count()
        self._stack.append(kind())

    def make_list(self) -> None:
        """Make a list of items."""
        items = self._items()
        self._stack.append(items)

    def make_dict(self) -> None:
        """Make a dictionary of items."""
        items = self._items()
        self._stack.append(_put({}, items))

    def make_tuple(self, size: int) -> None:
        """Make a tuple of the last values."""
        self._count()
        one = tuple(self._stack[-size:])
        del self._stack[-size:]
        self._stack.append(one)

    def make_marked_tuple(self) -> None:
        """Make a tuple of items."""
        items = self._items()
        self._stack.append(tuple(items))

    def _count(self) -> None:
        self._containers += 1
        _check_number(self._containers, "containers")

    def _items(self) -> list[Any]:
        items, self._stack = self._stack, self._below.pop()
        return items

    def _of(self, kind: type) -> Any:
        """Return the container at the top of the stack."""
        if type(self._stack[-1]) is not kind:
            raise NotPlainError(f"it adds items to what is no {kind.__name__}")
        return self._stack[-1]


def _check_number(number: int, what: str) -> None:
    if number > _MOST_CONTAINERS:
        raise NotPlainError(f"it has more than {_MOST_CONTAINERS:,} {what}")


def _put(found: dict[Any, Any], items: Sequence[Any]) -> dict[Any, Any]:
    for key, value in zip(items[::2], items[1::2], strict=True):
        if (type(key) is int and 0 <= key < _LARGEST_KEY) or type(key) is str:
            found[key] = value
        else:
            raise NotPlainError("it has a key that is neither a text nor a small number")
    return found


_CONSTANTS: Mapping[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
#: Instructions whose argument is the value.
_ARGUMENTS = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    }
)
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_IGNORED = frozenset({"PROTO", "FRAME", "STOP"})
_ACTIONS: Mapping[str, Callable[[_Builder], None]] = {
    "MARK": _Builder.mark,
    "EMPTY_LIST": lambda builder: builder.make(list),
    "LIST": _Builder.make_list,
    "APPEND": _Builder.append,
    "APPENDS": _Builder.appends,
    "EMPTY_DICT": lambda builder: builder.make(dict),
    "DICT": _Builder.make_dict,
    "SETITEM": _Builder.set_item,
    "SETITEMS": _Builder.set_items,
    "TUPLE": _Builder.make_marked_tuple,
    "TUPLE1": lambda builder: builder.make_tuple(1),
    "TUPLE2": lambda builder: builder.make_tuple(2),
    "TUPLE3": lambda builder: builder.make_tuple(3),
}


def _check_size(value: Any) -> None:
    """Refuse a value that contains itself, is too deep, or has too many values if each repetition counts.

    Raises:
        NotPlainError: It is such a value.
    """
    sizes: dict[int, tuple[int, int]] = {}  # the values in a container, and its levels
    above: set[int] = set()
    pending: list[tuple[Any, bool]] = [(value, False)]
    while pending:
        one, is_counted = pending.pop()
        if not is_counted and id(one) in above:
            raise NotPlainError("it contains itself")
        if not is_counted and id(one) in sizes:
            continue
        inside = _inside(one)
        if is_counted:
            above.discard(id(one))
            found = [sizes.get(id(part)) or (_size(part), 0) for part in inside]
            total, levels = 1 + sum(size for size, _ in found), 1 + max(level for _, level in found)
            sizes[id(one)] = total, levels
            if total > _MOST_VALUES:
                raise NotPlainError(f"it has more than {_MOST_VALUES:,} values")
            if levels > _DEEPEST:
                raise NotPlainError(f"it has more than {_DEEPEST:,} levels of values")
        elif inside:
            above.add(id(one))
            pending.append((one, True))
            # A list can name one container a million times: it is examined once.
            inner = {id(part): part for part in inside if isinstance(part, _CONTAINERS)}
            pending += [(part, False) for part in inner.values()]


def _size(value: Any) -> int:
    return 1 + len(value) // _CHARACTERS if isinstance(value, str) else 1


def _inside(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list | tuple) else ()
