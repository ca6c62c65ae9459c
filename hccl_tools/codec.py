"""Decode JSON into records by their annotations; ``hccl_tools.records`` encodes them.

A record is a class of ``hccl_tools.records.NamedTuple`` or a dataclass. Its module has ``from __future__
import annotations``: the annotations are text, in one of these forms:

- ``str``, ``int``, ``float``, ``bool``, ``bytes`` (as latin-1 text), a bounded type of ``hccl_tools.records``
- another record, by a name that its module knows at run time
- ``X | None``; ``A | B`` of records, whose objects have the class in lower case as ``"type"``
- ``tuple[X, ...]``, ``tuple[A, B]``, ``list[X]``, ``Sequence[X]``
- ``Mapping[K, X]``, ``dict[K, X]``, with text or numbers as keys
- ``Literal["a", "b"]``, or the name of such a type; the name of a text that contains another form

A strict decoder refuses unknown fields, as between processes of the same version; a lenient one reads files
that another version may have written. A record may have a method ``check``, which returns a sentence about
fields that contradict each other, "" if none do.

Hosts have Python 3.8, in which ``typing.get_type_hints`` fails on ``X | None``.
"""

from __future__ import annotations

import sys
from _json import encode_basestring_ascii

from hccl_tools.errors import HcclToolsError
from hccl_tools.records import alternatives, annotation_texts, field_names, parts, tag

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias, TypeVar

    _T = TypeVar("_T")
    _Reader: TypeAlias = Callable[[Any], Any]
    _Build: TypeAlias = Callable[[str], _Reader]

#: The range of each bounded number.
_RANGES = {
    "int": (-(1 << 63), (1 << 63) - 1),
    "Count": (0, (1 << 31) - 1),
    "Size": (0, (1 << 63) - 1),
    "Index": (-1, (1 << 31) - 1),
    "ExitCode": (0, 255),
    "Signal": (0, 64),
    "Port": (0, 65535),
}
_SEQUENCES = {"tuple": tuple, "list": list, "Sequence": tuple}
_MAPPINGS = ("Mapping", "dict")
_LONGEST_TEXT, _LONGEST_LONG_TEXT, _LONGEST_OS_TEXT = 1 << 16, 1 << 20, 1 << 17
_LONGEST_BYTES = 1 << 28
_LONGEST_SHOWN = 40
#: The maximum number of values in a list or an object.
MOST_VALUES = 1 << 17
#: The maximum number of values in a JSON text: an empty list takes 3 bytes there, and 64 in memory.
_MOST_JSON_VALUES = 1 << 22
_MOST_DIGITS = 20
_TOO_DEEP = "this is nested too deeply"


class DecodeError(HcclToolsError):
    """A value does not fit its record: ``message`` has its path and the reason."""


class _MisfitError(Exception):
    """The reason, while the path is completed from its end."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def __str__(self) -> str:
        path = "".join(reversed(self.path)).lstrip(".")
        return f"{path}: {self.reason}" if path else self.reason


def decode(kind: type[_T], value: Any, *, strict: bool = True) -> _T:
    """Return the record of a JSON object that has been parsed.

    Raises:
        DecodeError: The object does not fit the record.
    """
    record: _T = _read(_record_reader(kind, strict), value)
    return record


def decode_as(annotation: str, module: str, value: Any, *, strict: bool = True) -> Any:
    """Return the value of an annotation: ``decode_as("tuple[Rank, ...]", __name__, value)``.

    ``module`` is the name of the module that knows the names in the annotation.

    Raises:
        DecodeError: The value does not fit the annotation.
    """
    key = (annotation, module, strict)
    if key not in _readers:
        _readers[key] = _reader(annotation, module, strict)
    return _read(_readers[key], value)


def _read(reader: _Reader, value: Any) -> Any:
    try:
        return reader(value)
    except _MisfitError as misfit:
        raise DecodeError(str(misfit)) from None
    except RecursionError:
        raise DecodeError(_TOO_DEEP) from None


def from_json(kind: type[_T], data: bytes | str, *, strict: bool = True) -> _T:
    """Return the record in a JSON text.

    Raises:
        DecodeError: The text is not JSON, or does not fit the record.
    """
    return decode(kind, parse(data), strict=strict)


def parse(data: bytes | str) -> Any:
    """Return the value of a JSON text; the caller bounds its length, this function the number of values.

    Raises:
        DecodeError: The text is not JSON, is nested too deeply, or has too many values.
    """
    import json  # noqa: PLC0415  (its import takes a fifth of a shim's time)

    try:
        text = data if isinstance(data, str) else data.decode()
        _check_size(text)
        return json.loads(text, parse_int=_whole, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise DecodeError("this is not UTF-8") from None
    except RecursionError:
        raise DecodeError(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise DecodeError(f"this is not JSON: {error.msg} ({where})" if text else "this is empty") from None
    except _MisfitError as misfit:
        raise DecodeError(str(misfit)) from None


# The rest builds a reader for each annotation, and for each class once.

_readers: dict[tuple[Any, ...], _Reader] = {}


def _record_reader(kind: type, strict: bool) -> _Reader:
    key = (kind, strict)
    if key not in _readers:
        _readers[key] = _new_record_reader(kind, strict)
    return _readers[key]


def _required(kind: type) -> set[str]:
    if hasattr(kind, "_field_defaults"):
        return set(kind._fields) - set(kind._field_defaults)  # type: ignore[attr-defined]
    # Without a default, both attributes are dataclasses.MISSING.
    fields = kind.__dataclass_fields__.values()  # type: ignore[attr-defined]
    return {field.name for field in fields if field.init and field.default is field.default_factory}


def _fields(kind: type) -> tuple[str, ...]:
    return field_names(kind) or ()


def _new_record_reader(kind: type, strict: bool) -> _Reader:
    required, check = _required(kind), None if "check" in _fields(kind) else getattr(kind, "check", None)
    readers: dict[str, _Reader] = {}

    def read(value: Any) -> Any:
        if not readers:  # Now, and not above: a record may contain records of its own class.
            texts = annotation_texts(kind)
            readers.update({name: _reader(texts[name], kind.__module__, strict) for name in _fields(kind)})
        if not isinstance(value, dict):
            raise _MisfitError(f"{shown(value)} is not an object")
        fields: dict[str, Any] = {}
        for name, item in value.items():
            reader = readers.get(name)
            if reader is not None:
                fields[name] = _read_at(reader, item, f".{name}")
            elif strict:
                raise _MisfitError(f"{shown(name)} is not a known field")
        if len(fields) < len(readers) and (missing := sorted(required - fields.keys())):
            raise _MisfitError(f"{missing[0]} is missing")
        record = kind(**fields)
        if check is not None and (problem := check(record)):
            raise _MisfitError(problem)
        return record

    return read


def _read_at(reader: _Reader, value: Any, where: str) -> Any:
    try:
        return reader(value)
    except _MisfitError as misfit:
        misfit.path.append(where)
        raise


def _reader(annotation: str, module: str, strict: bool) -> _Reader:
    """Return the reader of an annotation, whose names the module knows."""

    def build(text: str) -> _Reader:
        return _reader(text, module, strict)

    text = annotation.strip()
    kinds = alternatives(text)
    if len(parts(text, "|")) > len(kinds):
        return _optional(build(" | ".join(kinds)))
    if len(kinds) > 1:
        return _union([_resolved(name, module) for name in kinds], strict)
    name, bracket, arguments = text.partition("[")
    if bracket:
        return _generic(name, parts(arguments[:-1], ","), build)
    if name in _PLAIN:
        return _PLAIN[name]
    found = _resolved(name, module)
    if isinstance(found, str):
        return build(found)
    if isinstance(found, type) and field_names(found) is not None:
        return _record_reader(found, strict)
    if words := getattr(found, "__args__", ()):  # Literal
        return _choice(words)
    raise TypeError(f"{module}: no value can be decoded as {annotation}")


def _resolved(name: str, module: str) -> Any:
    try:
        return getattr(sys.modules[module], name)
    except AttributeError:
        raise TypeError(f"{module} does not know {name} at run time") from None


def _generic(name: str, arguments: list[str], build: _Build) -> _Reader:
    if name == "Literal":
        return _choice([argument.strip("\"'") for argument in arguments])
    if name in _MAPPINGS:
        return _mapping(build(arguments[0]), build(arguments[1]), has_text=arguments[0] in {"str", "OsText"})
    if name in _SEQUENCES:
        if name == "tuple" and arguments[1:] != ["..."]:
            return _fixed([build(argument) for argument in arguments])
        return _sequence(build(arguments[0]), _SEQUENCES[name])
    raise TypeError(f"no value can be decoded as {name}[...]")


def _optional(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


def _union(kinds: list[type], strict: bool) -> _Reader:
    readers = {tag(kind): _record_reader(kind, strict) for kind in kinds}

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _MisfitError(f"{shown(value)} is not an object")
        fields = dict(value)
        name = fields.pop("type", None)
        if not isinstance(name, str) or name not in readers:
            raise _MisfitError(f"type: {shown(name)} is not known")
        return readers[name](fields)

    return read


def _choice(words: Iterable[str]) -> _Reader:
    known = {word: word for word in words}
    expected = ", ".join(known)

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise _MisfitError(f"{shown(value)} is none of {expected}")
        return known[value]

    return read


def _sequence(reader: _Reader, kind: Callable[[Iterable[Any]], Any]) -> _Reader:
    def read(value: Any) -> Any:
        items: list[Any] = _list(value)
        found: list[Any] = []
        try:
            for item in items:
                found.append(reader(item))  # noqa: PERF401  (the position of an error)
        except _MisfitError as misfit:
            misfit.path.append(f"[{len(found)}]")
            raise
        return kind(found)

    return read


def _fixed(readers: list[_Reader]) -> _Reader:
    def read(value: Any) -> tuple[Any, ...]:
        items = _list(value)
        if len(items) != len(readers):
            raise _MisfitError(f"the list has {len(items)} values, not {len(readers)}")
        return tuple(_read_at(reader, items[at], f"[{at}]") for at, reader in enumerate(readers))

    return read


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _MisfitError(f"{shown(value)} is not a list")
    if len(value) > MOST_VALUES:
        raise _MisfitError(f"the list has {len(value)} values, more than {MOST_VALUES}")
    return value


def _mapping(key: _Reader, item: _Reader, *, has_text: bool) -> _Reader:
    read_key = key if has_text else lambda text: key(_number_key(text))

    def read(value: Any) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise _MisfitError(f"{shown(value)} is not an object")
        if len(value) > MOST_VALUES:
            raise _MisfitError(f"the object has {len(value)} values, more than {MOST_VALUES}")
        found = {}
        for name, inner in value.items():
            where = f"[{shown(name)}]"
            found[_read_at(read_key, name, where)] = _read_at(item, inner, where)
        return found

    return read


def _number_key(text: str) -> int | str:
    """Return a number that is the key of an object; the text itself if it is written in another way."""
    digits = text[1:] if text.startswith("-") else text  # noqa: FURB188  (Python 3.8)
    is_number = len(text) <= _MOST_DIGITS and digits.isascii() and digits.isdecimal()
    return int(text) if is_number and str(int(text)) == text else text


def _number(least: int, most: int) -> _Reader:
    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise _MisfitError(f"{shown(value)} is not a whole number from {least} to {most}")
        return value

    return read


def _decimal(least: float, expected: str) -> _Reader:
    def read(value: Any) -> float:
        # A number of many digits is too large for a float.
        if type(value) not in {int, float} or not max(least, -_LARGEST_FLOAT) <= value <= _LARGEST_FLOAT:
            raise _MisfitError(f"{shown(value)} is not {expected}")
        return float(value)

    return read


_LARGEST_FLOAT = sys.float_info.max


def _string(longest: int, errors: str = "strict") -> _Reader:
    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise _MisfitError(f"{shown(value)} is not text")
        if len(value) > longest:
            raise _MisfitError(f"the text has {len(value)} characters, more than {longest}")
        if not value.isascii():
            try:
                value.encode(errors=errors)
            except UnicodeEncodeError:
                raise _MisfitError(f"{shown(value)} contains half a character") from None
        return value

    return read


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _MisfitError(f"{shown(value)} is neither true nor false")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str) or len(value) > _LONGEST_BYTES:
        raise _MisfitError(f"{shown(value)} is not text for bytes")
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise _MisfitError("a character of the text is not a byte") from None


_PLAIN: dict[str, _Reader] = {
    **{name: _number(least, most) for name, (least, most) in _RANGES.items()},
    "str": _string(_LONGEST_TEXT),
    "LongText": _string(_LONGEST_LONG_TEXT),
    "OsText": _string(_LONGEST_OS_TEXT, "surrogateescape"),
    "float": _decimal(-_LARGEST_FLOAT, "a number"),
    "Seconds": _decimal(0.0, "a number of seconds, 0 or more"),
    "Gigabytes": _decimal(0.0, "a number of gigabytes, 0 or more"),
    "bool": _truth,
    "bytes": _bytes,
}


def shown(value: Any) -> str:
    """Return a value for a message, in ASCII: short, escaped, and without what is inside it."""
    if isinstance(value, str):
        cut = value if len(value) <= _LONGEST_SHOWN else value[: _LONGEST_SHOWN - 3] + "..."
        return encode_basestring_ascii(cut).replace("\x7f", "\\u007f")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        is_short = abs(value) < 10**_MOST_DIGITS
        return repr(value) if is_short else f"a number of more than {_MOST_DIGITS} digits"
    if isinstance(value, float):
        return repr(value)
    return "an object" if isinstance(value, dict) else "a list"


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise _MisfitError(f"a number has {len(digits)} digits")
    return int(digits)


def _refuse_constant(name: str) -> None:
    raise _MisfitError(f"{name} is not a number")


def _check_size(text: str) -> None:
    if sum(map(text.count, ",[{")) <= _MOST_JSON_VALUES:
        return
    import re  # noqa: PLC0415  (few texts are so long)

    # Without the strings, which may contain as many: a rank table is one string.
    bare = re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"?', "", text, flags=re.DOTALL)
    if sum(map(bare.count, ",[{")) > _MOST_JSON_VALUES:
        raise _MisfitError(f"this has more than {_MOST_JSON_VALUES} values")
