"""Recognise JSON that was put into a string as it is, with quotes that are not escaped.

A ConfigMap, a variable and a plan have a table as text. A script that puts the table between quotes leaves
the quotes inside it as they are: the parser then takes its first key for the sign after a value.
"""

from __future__ import annotations

import re

from hccl_tools.document.strict_parser import Reader
from hccl_tools.document.syntax_problem import JsonError
from hccl_tools.notation.hint import FILES
from hccl_tools.notation.phrases import listed_parts
from hccl_tools.records import NamedTuple

#: The key, if there is one, the quote, and the brackets of the JSON up to its first quote.
_OPENING = re.compile(
    r"""(?:(?:"(?P<key>[^"\\\n]{1,64})"|(?P<bare>[\w./-]{1,64}))\s{0,8}:\s{0,40})?"""
    r"""(?P<quote>["'])\s{0,400}(?P<json>[\[{])[\[{\s]{0,400}\"""",
    re.ASCII,
)
#: The same with quotes that are escaped, and the rest of the text up to the first that is not.
_ESCAPED = re.compile(
    r'"(?P<key>[^"\\\n]{1,64})"\s{0,8}:\s{0,40}(?P<text>"(?:\s|\\n){0,99}[\[{](?:[\[{\s]|\\n){0,99}\\"'
    r'(?:[^"\\]|\\.)*(?P<quote>"))',
    re.DOTALL,
)
#: The characters before the stop in which the text can begin.
_FAR = 1200
#: The end of a text that ends as JSON does.
_ENDS = re.compile(r"[\]}]\s{0,400}([\"'])\s{0,400}(?:[,}\]]|\Z)")
_LISTS = frozenset({"device", "devices"})
_CONFIG_MAP = re.compile(r'"?kind"?\s{0,8}:\s{0,8}"?ConfigMap\b')
_AGAIN = "kubectl get configmap NAME -o json"
#: The signs of a file that a program reads as others, or another number of them.
_UNEVEN = re.compile("[\r\ufeff]")


class TextInText(NamedTuple):
    """JSON in a string whose quotes are not escaped: a sentence, what to do, and the offset of its quote."""

    message: str
    hint: str
    at: int


class _Inner(NamedTuple):
    """The text between the quotes.

    Attributes:
        key: Its key; empty if it has none.
        quote: The quote around it.
        at: The offset of the opening quote.
        end: The offset of the closing quote; None if the JSON is not valid, or the closing quote is missing.
        text: The text as far as it is known.
    """

    key: str
    quote: str
    at: int
    end: int | None
    text: str


def find(text: str, stop: int, *, yaml: bool = False) -> TextInText | None:
    """Return the string around the place where a parser stops that has JSON with bare quotes.

    Args:
        yaml: Whether the text is YAML, in which single quotes around the text are enough.
    """
    if (inner := _inner(text, stop)) is not None:
        return TextInText(_message(text, inner), _yaml_hint() if yaml else _hint(text, inner), inner.at)
    return None if yaml else _one_quote(text, stop)


def _inner(text: str, stop: int) -> _Inner | None:
    for found in _OPENING.finditer(text, max(0, stop - _FAR), stop + _FAR):
        at, after = found.start("quote"), found.end()
        if stop not in (at, after) or not _is_value(text, found):
            continue
        key, quote = found["key"] or found["bare"] or "", found["quote"]
        start = found.start("json")
        reader = Reader(text[start:], 0)
        try:
            reader.read()
        except JsonError:
            last = [one.start() for one in _ENDS.finditer(text, after) if one[1] == quote]
            if not last and not _CONFIG_MAP.search(text):
                return None
            return _Inner(key, quote, at, None, text[start : last[-1] if last else len(text)])
        end = start + reader.end
        close = end + len(text[end:]) - len(text[end:].lstrip())
        if text[close : close + 1] != quote:
            return None  # One quote before the JSON is one too many.
        return _Inner(key, quote, at, close, text[start:end])
    return None


def _is_value(text: str, found: re.Match[str]) -> bool:
    """Return whether a text stands where a value may stand."""
    if found["key"] or found["bare"]:
        return True
    before = text[: found.start()].rstrip()
    return not before or before[-1] in ":,[="


def _message(text: str, inner: _Inner) -> str:
    of = f' of "{inner.key}"' if inner.key else ""
    if _is_list(inner):
        return f'"{inner.key}" is a list in quotes, as if it were text'
    if _is_whole(text, inner):
        return "the whole file is in quotes, as if it were text"
    if _is_doubled(inner):
        return f'the quotes inside the text{of} are doubled, as in CSV; in JSON each is \\"'
    if inner.quote == "'":
        return f'the text{of} is in single quotes; JSON uses double quotes, and \\" for those inside the text'
    return f"the quotes inside the text{of} are not escaped"


def _is_doubled(inner: _Inner) -> bool:
    """Return whether the quotes inside the text are doubled, as in CSV."""
    return inner.text[1:].lstrip("[{ \t\r\n").startswith('""')


def _is_list(inner: _Inner) -> bool:
    """Return whether the value is a list of a table, and not a text."""
    is_of_table = inner.key in _LISTS or inner.key.endswith("_list")
    return is_of_table and inner.text.startswith("[")


def _is_whole(text: str, inner: _Inner) -> bool:
    """Return whether a file has no more than the text in its quotes."""
    return not text[: inner.at].strip() and inner.end is not None and not text[inner.end + 1 :].strip()


def _hint(text: str, inner: _Inner) -> str:
    sign = inner.quote
    if _is_list(inner):
        return f"remove the {sign} before its [ and the {sign} after its ]"
    if _is_whole(text, inner):
        return f"remove the {sign} before the table and the {sign} after it"
    steps = ['\\" for each "" inside it' if _is_doubled(inner) else '\\" for each double quote inside it']
    if inner.quote == "'":
        steps.insert(0, "\" in place of the ' around it")
    if "\n" in inner.text:
        steps.append("\\n for each line break")
    hint = f"write {listed_parts(steps)}"
    if (command := _command(text, inner)) is not None:
        hint = f"{hint}: {command}"
    again = "make the file again with a program that writes JSON, such as jq"
    return f"{hint}; or {f'fetch it again with {_AGAIN}' if _CONFIG_MAP.search(text) else again}"


def _command(text: str, inner: _Inner) -> str | None:
    """Return the command that escapes the text; None if its end or the offsets are not certain."""
    if inner.end is None or _UNEVEN.search(text):
        return None
    program = (
        f"import json, sys; t = sys.stdin.read().lstrip(chr(65279)); a, b = {inner.at}, {inner.end}; "
        'print(t[:a] + json.dumps(t[a + 1:b]) + t[b + 1:], end="")'
    )
    return f"python3 -I -c '{program}' < {FILES}"


def _yaml_hint() -> str:
    return (
        'write \' in place of the " before its first bracket and of the " after its last one; '
        f"or fetch it again with {_AGAIN}"
    )


def _one_quote(text: str, stop: int) -> TextInText | None:
    """Return the first quote that is not escaped in a text whose other quotes are."""
    # Signs of the inner JSON can be read as those around it.
    last = len(text[:stop].rstrip(" \t\r\n,}]")) - 1
    if text[last : last + 1] != '"':
        return None
    for found in _ESCAPED.finditer(text, text.rfind("\n", 0, last) + 1, last + 1):
        if found.start("quote") == last and not _is_complete(text[found.start("text") : last + 1]):
            line = text.count("\n", 0, last) + 1
            return TextInText(
                f'a quote inside the text of "{found["key"]}" is not escaped',
                f'write \\" for this " on line {line}, and for each other " inside the text without a \\ '
                "before it",
                last,
            )
    return None


def _is_complete(literal: str) -> bool:
    """Return whether a string of JSON has a whole value in it."""
    try:
        Reader(Reader(literal, 0).read(), 0).read()
    except JsonError:
        return False
    return True
