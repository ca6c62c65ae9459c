"""Find the line of a YAML text whose indentation is wrong: the parser stops after it, or far below it."""

from __future__ import annotations

import re

from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

#: A key, the sign of a text on the lines below it, and the value on its line.
_KEY = re.compile(
    r"( *)((?:- +)*)([\"']?)([\w./-]+)\3:(?:[ \t]+([|>][+-]?\d?[+-]?)?[ \t]*(\S.*)?)?$", re.ASCII
)
#: The first signs of a line of JSON, which no line of YAML in a ConfigMap begins with.
_OF_JSON = tuple('{}[]",')
_OTHER = ("#", "---", "...", "%")


class WrongLine(NamedTuple):
    """A line with a wrong indentation: its number from 1, what is wrong as a sentence, and what to do."""

    line: int
    message: str
    hint: str


class _Text(NamedTuple):
    """A text on the lines below a key: the key, its indentation, and that of the text, if that is known."""

    key: str
    key_indent: int
    indent: int | None


def wrong_line(text: str) -> WrongLine | None:
    """Return the first line whose indentation is wrong; None if all are right."""
    inside: _Text | None = None
    levels, opens = [0], False
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        if not plain:
            continue
        if line[indent] == "\t" and (inside is None or inside.indent is None or indent < inside.indent):
            return WrongLine(number, "the line is indented with a tab", "write blanks in place of the tab")
        if inside is not None:
            if inside.indent is None and indent > inside.key_indent:
                inside = inside._replace(indent=indent)
            if inside.indent is not None and indent >= inside.indent:
                continue
            if plain.startswith(_OF_JSON):
                return _outside(inside, number, indent)
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


def _outside(text: _Text, number: int, indent: int) -> WrongLine:
    """Return that a line of JSON is not indented as the text that it belongs to."""
    shown = count(indent, "blank")
    if text.indent is None:
        message = f'the text of "{text.key}" begins with {shown}, no more than its key has'
        return WrongLine(
            number, message, f"indent each line of the text by {text.key_indent + 2} blanks or more"
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
