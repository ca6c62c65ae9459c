"""The strict JSON parser, which reports the position and kind of a fault, and duplicate keys.

It accepts and refuses the same texts as HCCL's library (nlohmann::json 3.11). It reads one value and ignores
the text after it. It uses the last value of a duplicate key, converts integers beyond 64 bits to floats, and
refuses larger numbers. Objects and lists deeper than ``NESTING_LIMIT`` levels are parsed and left empty.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hccl_tools.document.fast_parser import NESTING_LIMIT, number
from hccl_tools.document.syntax_problem import Expected, JsonError, ParserState, cut_off, stray
from hccl_tools.notation.hint import FILES
from hccl_tools.records import NamedTuple

_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN_TEXT = re.compile(r'"([^"\\\x00-\x1f]*)"')
#: A plain string or a short integer with the comma after it: most values in a rank table.
_PLAIN_ITEM = re.compile(r'(?:"([^"\\\x00-\x1f]*)"|(0|-?[1-9][0-9]{0,14}))[ \t\n\r]*,[ \t\n\r]*')
#: The same with the key before it.
_PLAIN_MEMBER = re.compile(r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*' + _PLAIN_ITEM.pattern)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
#: A valid escape, or (as group 1) a character that ends a string or is not allowed in it.
_TEXT_STOP = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(["\\\x00-\x1f])')
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\.", re.DOTALL)
_LITERALS: dict[str, tuple[str, Any]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_DECODER = json.JSONDecoder()
_CLOSER = {"{": "}", "[": "]"}
#: The nesting depth at which parsing stops: HCCL's parser overflows its stack of 8 MiB earlier.
_DEEPEST = 100_000


class DuplicateKey(NamedTuple):
    """A key that an object has more than once; ``first`` and ``last`` are the offsets of its occurrences."""

    path: tuple[str | int, ...]
    first: int
    last: int


class _Open:
    __slots__ = ("key", "opener", "places", "value")

    def __init__(self, opener: str) -> None:
        self.opener = opener
        self.value: Any = {} if opener == "{" else []
        self.key = ""
        #: The offset of each key of an object.
        self.places: dict[str, int] = {}


class Reader:
    """Parses the first JSON value of a text; offsets are in characters.

    Attributes:
        end: The offset after the value, once it is read.
        depth: The greatest nesting depth of objects and lists.
    """

    def __init__(self, text: str, limit: int | None = None) -> None:
        """Prepare to parse a text; at most ``limit`` duplicate keys are kept."""
        self._text = text
        self._limit = float("inf") if limit is None else limit
        self._open: list[_Open] = []
        #: The offsets of duplicate keys, first to last occurrence; and the paths of the keys that are kept.
        self._last: dict[int, int] = {}
        self._paths: dict[int, tuple[str | int, ...]] = {}
        self.end = 0
        self.depth = 0

    @property
    def duplicate_count(self) -> int:
        """The number of keys that an object has more than once."""
        return len(self._last)

    @property
    def duplicates(self) -> list[DuplicateKey]:
        """The kept duplicate keys, in the order of their second occurrences."""
        return [DuplicateKey(path, first, self._last[first]) for first, path in self._paths.items()]

    def read(self) -> Any:
        """Return the value.

        Raises:
            JsonError: The text is not valid; HCCL's parser stops at the same place.
        """
        at = self._skip(0)
        while True:
            char = self._text[at : at + 1]
            if char in {"{", "["}:
                at, value, complete = self._enter(char, at)
                if not complete:
                    continue
            else:
                value, at = self._text_at(at) if char == '"' else self._scalar(at)
            at, done = self._leave(value, at)
            if done is not None:
                self.end = at
                return done[0]

    def _skip(self, at: int) -> int:
        return _BLANKS.match(self._text, at).end()  # type: ignore[union-attr]  # matches the empty text too

    def _fail(self, at: int, expected: Expected) -> JsonError:
        after = len(self._text[:at].rstrip(" \t\n\r"))
        return stray(
            ParserState(self._text, at, after, expected, self._open[-1].opener if self._open else "")
        )

    def _enter(self, opener: str, at: int) -> tuple[int, Any, bool]:
        """Open an object or list; return the offset of its first value, or the offset after an empty one."""
        level = len(self._open) + 1
        if level > self.depth:
            if level > _DEEPEST:
                message = f"nested more than {_DEEPEST:,} levels deep, where HCCL's parser crashes"
                raise JsonError(
                    "nesting", message, "specify a rank table; rank tables have at most 8 levels", at
                )
            self.depth = level
        inside = self._skip(at + 1)
        if self._text.startswith(_CLOSER[opener], inside):
            return inside + 1, {} if opener == "{" else [], True
        self._open.append(_Open(opener))
        return self._next(inside), None, False

    def _leave(self, value: Any, at: int) -> tuple[int, tuple[Any] | None]:
        """Store a complete value and close the objects and lists that end after it.

        Returns:
            The offset of the next value and ``None``; or the offset after the outermost value, and that value
            in a tuple.
        """
        while self._open:
            inner = self._open[-1]
            if inner.opener == "{":
                inner.value[inner.key] = value
            else:
                inner.value.append(value)
            at = self._skip(at)
            char = self._text[at : at + 1]
            if char == ",":
                return self._next(self._skip(at + 1)), None
            if char != _CLOSER[inner.opener]:
                raise self._fail(at, "comma")
            value, at = self._open.pop().value, at + 1
            if len(self._open) >= NESTING_LIMIT:
                value.clear()
        return at, (value,)

    def _next(self, at: int) -> int:
        """Read the short strings and integers that follow; return the offset of the next other value.

        In an object, also read the key of that value.
        """
        inner = self._open[-1]
        if inner.opener == "{":
            return self._key(inner, at)
        while item := _PLAIN_ITEM.match(self._text, at):
            inner.value.append(int(item[2]) if item[1] is None else item[1])
            at = item.end()
        return at

    def _key(self, inner: _Open, at: int) -> int:
        text = self._text
        while member := _PLAIN_MEMBER.match(text, at):
            self._note_key(inner, member[1], at)
            inner.value[member[1]] = int(member[3]) if member[2] is None else member[2]
            at = member.end()
        if not text.startswith('"', at):
            raise self._fail(at, "key")
        inner.key, end = self._text_at(at)
        self._note_key(inner, inner.key, at)
        colon = self._skip(end)
        if not text.startswith(":", colon):
            raise self._fail(colon, "colon")
        return self._skip(colon + 1)

    def _note_key(self, inner: _Open, key: str, at: int) -> None:
        if len(self._open) > NESTING_LIMIT:
            return
        first = inner.places.setdefault(key, at)
        if first != at:
            if first not in self._last and len(self._paths) < self._limit:
                outer = (o.key if o.opener == "{" else len(o.value) for o in self._open[:-1])
                self._paths[first] = (*outer, key)
            self._last[first] = at

    def _text_at(self, at: int) -> tuple[str, int]:
        plain = _PLAIN_TEXT.match(self._text, at)
        if plain:
            return plain[1], plain.end()
        try:
            value, end = _DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError:
            raise _bad_text(self._text, at) from None
        if _SURROGATE.search(value):
            raise _bad_surrogate(self._text, at)
        return value, end

    def _scalar(self, at: int) -> tuple[Any, int]:
        word, value = _LITERALS.get(self._text[at : at + 1], ("", None))
        if word and self._text.startswith(word, at):
            return value, at + len(word)
        found = _NUMBER.match(self._text, at)
        if not found:
            raise self._fail(at, "value")
        following = self._text[found.end() : found.end() + 1]
        # nlohmann's lexer reads a dot or an e after digits as a part of the number in any case.
        if following and not found[2] and following in ("eE" if found[1] else ".eE"):
            raise JsonError("number", f"{_short(found[0] + following)} is not a JSON number",
                            "write the missing digits, or put the value in double quotes", at)  # fmt: skip
        value = number(found[0])
        if value is None:
            raise JsonError("number overflow", f"the number {_short(found[0])} is too large",
                            "write a number that a 64-bit float can store", at)  # fmt: skip
        return value, found.end()


def _short(digits: str) -> str:
    return digits if len(digits) <= 24 else f"{digits[:12]}... ({len(digits):,} characters)"


#: Signs that Markdown writes with a backslash before them, and the command that removes it.
_OF_MARKDOWN = frozenset("_*[]()#-.!`~|<>")
_WITHOUT_BACKSLASHES = r"sed -E 's/\\([][_*()#.!`~|<>-])/\1/g' " + FILES


def _bad_text(text: str, at: int) -> JsonError:
    stop = next((found.start() for found in _TEXT_STOP.finditer(text, at + 1) if found[1]), len(text))
    char = text[stop : stop + 1]
    if not char or (char == "\\" and len(text) - stop < 6 and text[stop + 1 : stop + 2] in {"", "u"}):
        return cut_off(len(text), '"')
    if char in "\r\n":
        if (embedded := _with_line_breaks(text, at)) is not None:
            return embedded
        return JsonError("unclosed text", "a string does not end on its line",
                         'write the closing " directly after the value', at)  # fmt: skip
    if char == "\\" and text[stop + 1] in _OF_MARKDOWN:
        sign = text[stop + 1]
        hint = f"remove this backslash and all others of Markdown: {_WITHOUT_BACKSLASHES}"
        return JsonError("bad escape", f"\\{sign} in a string, as Markdown writes {sign}", hint, stop)
    if char == "\\":
        return JsonError("bad escape", f"unknown escape {text[stop : stop + 2]} in a string",
                         "write a backslash as \\\\", stop)  # fmt: skip
    name = {"\t": "tab", "\0": "zero byte (NUL)"}.get(char, f"control character (U+{ord(char):04X})")
    return JsonError("control character", f"{name} inside a string",
                     f"remove it, or write \\u{ord(char):04x}", stop)  # fmt: skip


_ESCAPED_OR_END = re.compile(r'\\.|"', re.DOTALL)
_KEY_OF_TEXT = re.compile(r'("[^"\\]{1,60}")\s{0,8}:\s{0,8}$')
#: What reads a string with line breaks, and writes them as ``\n``.
_ESCAPE = "import json, sys; json.dump(json.load(sys.stdin, strict=False), sys.stdout, indent=1)"


def _with_line_breaks(text: str, at: int) -> JsonError | None:
    """Return the error on a text of JSON in a string: its quotes are escaped, its line breaks are not."""
    end, quotes = 0, 0
    for found in _ESCAPED_OR_END.finditer(text, at + 1):
        if found[0] == '"':
            end = found.end()
            break
        quotes += found[0] == '\\"'
    if not end or not quotes:
        return None
    key = _KEY_OF_TEXT.search(text, max(0, at - 90), at)
    first, last = (text.count("\n", 0, place) + 1 for place in (at, end))
    of = f" of {key[1]}" if key is not None else ""
    return JsonError(
        "unclosed text",
        f"the text{of} on lines {first} to {last} has line breaks, which are \\n in a string of JSON",
        f"python3 -I -c '{_ESCAPE}' < {FILES} writes them so; or make the ConfigMap again "
        "from the table: kubectl create configmap NAME --from-file=hccl.json=TABLE --dry-run=client -o json",
        at,
    )


def _bad_surrogate(text: str, at: int) -> JsonError:
    high: re.Match[str] | None = None
    for escape in _ESCAPED.finditer(text, at):
        code = int(escape[1], 16) if escape[1] else 0
        low = 0xDC00 <= code <= 0xDFFF
        if low and high and high.end() == escape.start():
            high = None
            continue
        if low or high:
            high = high or escape
            break
        high = escape if 0xD800 <= code <= 0xDBFF else None
    lone = high[0] if high else ""
    return JsonError("lone surrogate", f"the escape {lone} is half of a character (a lone surrogate)",
                     "write the character itself, in UTF-8", high.start() if high else at)  # fmt: skip
