"""Read YAML that Kubernetes prints, within bounds of time and memory, with PyYAML (the extra ``yaml``).

The values are built from PyYAML's events: no tag constructs an object, and nothing is repeated, because
aliases are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hccl_tools.document import text_in_text
from hccl_tools.errors import InputError
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.programs.lookup import YAML
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from types import ModuleType

#: The limits: etcd stores objects of up to 1.5 MiB, and a dump of a namespace has many.
SIZE_LIMIT = 8 << 20
_MOST_VALUES, _DEEPEST = 100_000, 64
_TOO_MANY = "the YAML has too many values for a ConfigMap"
_TOO_DEEP = "the YAML is nested too deeply for a ConfigMap"
#: libyaml reads ahead in a list of lists, and some versions then reach a limit of their own first.
_LIBYAML_LIMIT = "exceeded maximum nesting depth"
_AS_JSON = "use JSON instead: kubectl get configmap NAME -o json"
_CORRECT = f"correct the line or the one above it; if the ConfigMap is in the cluster, {_AS_JSON}"
_TAG = "tag:yaml.org,2002:"
#: A value for each type of scalar that is not a string in Kubernetes; only the type matters.
_NOT_TEXT = {f"{_TAG}int": 0, f"{_TAG}float": 0.0, f"{_TAG}bool": False, f"{_TAG}null": None}

#: A key, the sign of a text on the lines below it, and the value on its line.
_KEY = re.compile(
    r"( *)((?:- +)*)([\"']?)([\w./-]+)\3:(?:[ \t]+([|>][+-]?\d?[+-]?)?[ \t]*(\S.*)?)?$", re.ASCII
)
#: The first signs of a line of JSON, which no line of YAML in a ConfigMap begins with.
_OF_JSON = tuple('{}[]",')
_OTHER = ("#", "---", "...", "%")


class Place(NamedTuple):
    """The position of a value: its first line, from 1, and whether each line of its text is a line below."""

    line: int
    is_literal: bool


class Yaml(NamedTuple):
    """A parsed file.

    Attributes:
        value: The document; several documents become the items of a List.
        places: The positions of the values of a ConfigMap, by path.
    """

    value: Any
    places: dict[tuple[str | int, ...], Place]


def read_yaml(data: bytes, shown: str) -> Yaml:
    """Read YAML.

    Raises:
        InputError: The file is too large, not valid YAML, or has aliases; or PyYAML is not installed.
    """
    try:
        import yaml  # noqa: PLC0415  (optional)
    except ImportError:
        if (wrong := wrong_line(data.decode("utf-8-sig", errors="replace"))) is not None and wrong.is_of_text:
            raise InputError(
                f"{shown}:{wrong.line}: not valid YAML: {wrong.message}", hint=wrong.hint
            ) from None
        message = f"{shown} is YAML, which needs PyYAML (the extra [yaml])"
        raise InputError(message, hint=f"{YAML}; or {_AS_JSON}") from None
    if len(data) > SIZE_LIMIT:
        raise InputError(f"{shown} is YAML of more than {SIZE_LIMIT >> 20} MiB", hint=_AS_JSON)
    reader = _Reader(yaml, shown)
    try:
        reader.read(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{shown}:{line}: not UTF-8", hint=_AS_JSON) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        problem = f"not valid YAML: {error.problem or error.context}"
        if _LIBYAML_LIMIT in problem:
            problem = _TOO_DEEP
        elif mark and (nested := _text_in_text(data.decode("utf-8-sig"), mark.line, mark.column)) is not None:
            raise InputError(
                f"{shown}:{nested.line}: not valid YAML: {nested.message}", hint=nested.hint
            ) from None
        elif (wrong := wrong_line(data.decode("utf-8-sig"))) is not None:
            raise InputError(
                f"{shown}:{wrong.line}: not valid YAML: {wrong.message}", hint=wrong.hint
            ) from None
        raise InputError(f"{shown}{at}: {problem}", hint=_CORRECT) from None
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", None) or "it cannot be read"
        raise InputError(f"{shown}: not valid YAML: {reason}", hint=_AS_JSON) from None
    return reader.result()


def _text_in_text(text: str, line: int, column: int) -> WrongLine | None:
    """Return the line of a text of JSON in double quotes whose own quotes end it where the reader stops."""
    stop = sum(len(one) for one in text.splitlines(keepends=True)[:line]) + column
    found = text_in_text.find(text, stop, yaml=True)
    if found is None:
        return None
    return WrongLine(text.count("\n", 0, found.at) + 1, found.message, found.hint, is_of_text=True)


class _Reader:
    """Builds the values of a file from its events."""

    def __init__(self, yaml: ModuleType, shown: str) -> None:
        self._yaml, self._shown = yaml, shown
        self._loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # with libyaml, ten times as fast
        self._resolver = yaml.SafeLoader("")
        self._documents: list[Any] = []
        self._places: dict[tuple[str | int, ...], Place] = {}
        # The open objects and lists with their paths; the paths begin with the index of the document.
        self._open: list[tuple[Any, tuple[str | int, ...]]] = []
        # The key whose value comes next, for each of them; None before a key, and in a list.
        self._keys: list[str | None] = []

    def read(self, text: str) -> None:
        """Read all documents."""
        yaml = self._yaml
        values = 0
        for event in yaml.parse(text, Loader=self._loader):
            if isinstance(event, yaml.AliasEvent):
                raise self._refusal(event, f"the YAML alias *{event.anchor} is not read",
                                    "write the value in place of its alias")  # fmt: skip
            if isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
                self._keys.pop()
            elif isinstance(event, yaml.NodeEvent):
                values += 1
                if values > _MOST_VALUES or len(self._open) >= _DEEPEST:
                    raise self._refusal(event, _TOO_MANY if values > _MOST_VALUES else _TOO_DEEP, _AS_JSON)
                self._add(event)

    def result(self) -> Yaml:
        """Return the only document, or a List of the documents."""
        if len(self._documents) == 1:
            return Yaml(self._documents[0], {path[1:]: place for path, place in self._places.items()})
        places = {("items", *path): place for path, place in self._places.items()}
        return Yaml({"apiVersion": "v1", "kind": "List", "items": self._documents}, places)

    def _add(self, event: Any) -> None:
        is_scalar = isinstance(event, self._yaml.ScalarEvent)
        if self._open and isinstance(self._open[-1][0], dict) and self._keys[-1] is None:
            if not is_scalar:
                raise self._refusal(event, "a key of the YAML is not a string", _AS_JSON)
            self._begin(event)
            return
        inside, above = self._open[-1] if self._open else (self._documents, ())
        key: str | int = len(inside) if isinstance(inside, list) else str(self._keys[-1])
        path = (*above, key)
        if path[-2:-1] in (("data",), ("binaryData",)):
            self._places[path] = Place(event.start_mark.line + 1, is_scalar and event.style == "|")
        if is_scalar:
            value = self._scalar(event)
        else:
            value = {} if isinstance(event, self._yaml.MappingStartEvent) else []
        if isinstance(inside, dict):
            inside[key] = value
            self._keys[-1] = None
        else:
            inside.append(value)
        if not is_scalar:
            self._open.append((value, path))
            self._keys.append(None)

    def _begin(self, event: Any) -> None:
        if event.value in self._open[-1][0]:
            raise self._refusal(event, f'the key "{event.value[:40]}" appears twice', "delete one of the two")
        self._keys[-1] = event.value

    def _scalar(self, event: Any) -> Any:
        tag = event.tag
        if tag in (None, "!"):
            tag = self._resolver.resolve(self._yaml.ScalarNode, event.value, event.implicit)
        return _NOT_TEXT.get(tag, event.value)

    def _refusal(self, event: Any, message: str, hint: str) -> InputError:
        mark = event.start_mark
        return InputError(f"{self._shown}:{mark.line + 1}:{mark.column + 1}: {message}", hint=hint)


class WrongLine(NamedTuple):
    """A line with a wrong indentation.

    Attributes:
        line: Its number, from 1.
        message: What is wrong, as a sentence.
        hint: What to do.
        is_of_text: Whether it is a line of a text below a key, which no valid YAML has at this place.
    """

    line: int
    message: str
    hint: str
    is_of_text: bool = False


class _Text(NamedTuple):
    """A text on the lines below a key: the key, its indentation, and that of the text, if that is known."""

    key: str
    key_indent: int
    indent: int | None


def wrong_line(text: str) -> WrongLine | None:
    """Return the first line whose indentation is wrong; None if all are right."""
    inside: _Text | None = None
    levels, opens = [0], False
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        plain = line.strip()
        indent = _indent(line)
        if not plain:
            continue
        if line[indent] == "\t" and (inside is None or inside.indent is None or indent < inside.indent):
            is_of_text = inside is not None
            return WrongLine(
                number, "the line is indented with a tab", "write blanks in place of the tab", is_of_text
            )
        if inside is not None:
            if inside.indent is None and indent > inside.key_indent:
                inside = inside._replace(indent=indent)
            if inside.indent is not None and indent >= inside.indent:
                continue
            if plain.startswith(_OF_JSON):
                others = [] if _is_key(lines, number) else _also_outside(lines, number, inside)
                return _outside(inside, number, indent, others)._replace(
                    is_of_text=not _is_key(lines, number)
                )
            inside = None
        if plain.startswith(_OTHER):
            continue
        found = _KEY.match(line)
        if found is None:
            opens = False
            continue
        own = indent + len(found[2])
        if (wrong := _level(levels, own, number, opens=opens, is_item=bool(found[2]))) is not None:
            return wrong
        opens = found[5] is None and found[6] is None
        if found[5] is not None:
            inside = _Text(found[4], own, None)
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_key(lines: list[str], number: int) -> bool:
    """Return whether a line can be a key in quotes: no sign of JSON ends it, and no line is below it."""
    line = lines[number - 1]
    if _KEY.match(line) is None or line.rstrip().endswith((",", "{", "[")):
        return False
    following = next((one for one in lines[number:] if one.strip()), "")
    return _indent(following) <= _indent(line) or line.rstrip().endswith(
        (":", "|", "|-", "|+", ">", ">-", ">+")
    )


def _also_outside(lines: list[str], number: int, text: _Text) -> list[int]:
    """Return the lines of JSON after a line that are not indented as the text, up to one of YAML."""
    found = list[int]()
    for other, line in enumerate(lines[number:], number + 1):
        if not line.strip() or text.indent is None or _indent(line) >= text.indent:
            continue
        following = next((one.strip() for one in lines[other:] if one.strip()), "")
        is_inside = following.startswith(("{", "}", "]", "[", '"'))
        if not line.strip().startswith(_OF_JSON) or (_is_key(lines, other) and not is_inside):
            break
        found.append(other)
    return found


def _outside(text: _Text, number: int, indent: int, others: list[int]) -> WrongLine:
    """Return that a line of JSON is not indented as its text, as those in ``others`` are not."""
    shown = count(indent, "blank")
    if text.indent is None:
        message = f'the text of "{text.key}" begins with {shown}, no more than its key has'
        return WrongLine(
            number,
            message,
            f"indent each line of the text by {text.key_indent + 2} blanks or more",
            is_of_text=True,
        )
    if others:
        which = and_more(fold([number, *others]).split(","), 12)
        return WrongLine(
            number,
            f'lines {which} of the text of "{text.key}" are indented by less than the text ({text.indent})',
            f"indent these lines by {text.indent} blanks or more",
        )
    return WrongLine(
        number,
        f'this line of the text of "{text.key}" is indented by {shown}, the text by {text.indent}',
        f"indent the line by {text.indent} blanks or more",
    )


def _level(levels: list[int], own: int, number: int, *, opens: bool, is_item: bool) -> WrongLine | None:
    """Take the indentation of a key into the open levels; return what is wrong with it."""
    if own > levels[-1]:
        if not opens and not is_item:
            message = f"the key is indented by {count(own, 'blank')}, the key above it by {levels[-1]}"
            return WrongLine(number, message, f"indent it by {levels[-1]} blanks, as the key above it")
        levels.append(own)
        return None
    while levels[-1] > own:
        last = levels.pop()
        if levels[-1] < own and not is_item:
            message = (
                f"the key is indented by {count(own, 'blank')}; the keys above it by {levels[-1]} and {last}"
            )
            return WrongLine(
                number, message, f"indent it by {last} or {levels[-1]} blanks, as the keys it belongs to"
            )
    return None
