"""Records: a ``NamedTuple`` that is cheap to make, the types of its fields, and records as JSON.

``typing.NamedTuple`` compiles each annotation, ``collections.namedtuple`` each constructor: a record of six
fields takes 0.19 and 0.07 ms, here 0.015. A launch has 125 records. Importing ``typing`` takes 5 of the 25 ms
that a shim may add to the start of its rank, and ``json`` as much. ``hccl_tools.codec`` decodes records.
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]
from _json import encode_basestring_ascii

__all__ = [
    "Count",
    "ExitCode",
    "Gigabytes",
    "Index",
    "LongText",
    "NamedTuple",
    "OsText",
    "Port",
    "Seconds",
    "Signal",
    "Size",
    "alternatives",
    "annotation_texts",
    "field_names",
    "parts",
    "plain",
    "plain_tagged",
    "tag",
    "to_json",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType
    from typing import Any, NamedTuple
else:

    class _Record(tuple):
        """The methods of each record; see ``collections.namedtuple``."""

        __slots__ = ()

        @classmethod
        def _make(cls, values: Iterable[Any]) -> tuple[Any, ...]:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, **values: Any) -> tuple[Any, ...]:
            made = self._make(map(values.pop, self._fields, self))
            if values:
                raise ValueError(f"got unexpected field names: {[*values]!r}")
            return made

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self))  # noqa: B905  (hosts may have Python 3.8)

        def __repr__(self) -> str:
            shown = ", ".join([f"{name}={value!r}" for name, value in self._asdict().items()])
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

    #: The code of a constructor, by its number of fields.
    _CONSTRUCTORS: dict[int, CodeType] = {}

    def _constructor(fields: tuple[str, ...], defaults: tuple[Any, ...]) -> Callable[..., Any]:
        """Return ``__new__`` of a record: compiled once for each number of fields, with the names put in."""
        code = _CONSTRUCTORS.get(len(fields))
        if code is None:
            names = "".join([f"_{index}, " for index in range(len(fields))])
            code = eval(f"lambda _class, {names}: _new(_class, ({names}))").__code__  # noqa: S307  # nosec B307
            _CONSTRUCTORS[len(fields)] = code
        code = code.replace(co_varnames=("_class", *fields), co_name="__new__")
        return type(_constructor)(code, {"_new": tuple.__new__, "__builtins__": {}}, "__new__", defaults)

    class _Maker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body.pop(field) for field in fields if field in body}
            body.update([(field, _tuplegetter(index, None)) for index, field in enumerate(fields)])
            body.update(
                __slots__=(),
                __new__=_constructor(fields, tuple(defaults.values())),
                __match_args__=fields,
                _fields=fields,
                _field_defaults=defaults,
            )
            return type(name, (_Record,), body)

    class NamedTuple(metaclass=_Maker):
        """Works like ``typing.NamedTuple``."""


# The types that ``hccl_tools.codec`` knows by name in annotations, with their ranges.
#: A process id, a size or a number of things.
Count = int
#: A number of bytes or KiB.
Size = int
#: A rank, a server or a device; -1 for none.
Index = int
ExitCode = int
Signal = int
Port = int
Seconds = float
#: Also in GB/s.
Gigabytes = float
#: Text of up to 1 MiB.
LongText = str
#: A path, an argument or a variable: its bytes may not be UTF-8, as Python represents them (surrogateescape).
OsText = str


def plain(value: Any) -> Any:
    """Return a record, or what contains records, ready for JSON."""
    kind = type(value)
    if value is None or kind in {str, int, float, bool}:
        return value
    names = field_names(kind)
    if names is not None:
        tagged = _tagged_fields(kind)
        return {name: (plain_tagged if name in tagged else plain)(getattr(value, name)) for name in names}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (str, int, float)):
        return value
    return {str(key): plain(item) for key, item in value.items()}


def plain_tagged(value: Any) -> Any:
    """Return a record ready for JSON, with its class as ``"type"``; other values as ``plain`` does."""
    if field_names(type(value)) is None:
        return plain(value)
    return {"type": tag(type(value)), **plain(value)}


def tag(kind: type) -> str:
    """Return the name of a record in ``"type"``."""
    return kind.__name__.lower()


def to_json(record: Any, *, tagged: bool = False) -> bytes:
    """Return a record, or what contains records, as JSON; ``tagged`` adds the class as ``"type"``."""
    return _text(plain_tagged(record) if tagged else plain(record)).encode()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, dict):
        return "{" + ", ".join([f"{_text(key)}: {_text(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return repr(value)


def field_names(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a record in order, ``None`` for a class that is not a record."""
    names: tuple[str, ...] | None = getattr(kind, "_fields", None)
    if names is None and hasattr(kind, "__dataclass_fields__"):
        names = tuple(name for name, field in kind.__dataclass_fields__.items() if field.init)
    return names


def annotation_texts(kind: type) -> dict[str, str]:
    """Return the annotations of a record as text."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        found.update(getattr(base, "__annotations__", {}))
    return {name: getattr(text, "__forward_arg__", text) for name, text in found.items()}


_tagged: dict[type, frozenset[str]] = {}


def _tagged_fields(kind: type) -> frozenset[str]:
    """Return the fields that may contain records of several classes."""
    if kind not in _tagged:
        texts = annotation_texts(kind).items()
        _tagged[kind] = frozenset(name for name, text in texts if "|" in text and len(alternatives(text)) > 1)
    return _tagged[kind]


def alternatives(annotation: str) -> list[str]:
    """Return the alternatives of an annotation, without ``None``."""
    return [part for part in parts(annotation, "|") if part != "None"]


def parts(text: str, separator: str) -> list[str]:
    """Return the parts of an annotation between separators that are not inside brackets."""
    found, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == separator and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return [part.strip() for part in found if part.strip()]
