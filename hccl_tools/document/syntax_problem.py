"""Recognise why a text is not valid JSON.

Rank tables are pasted from guides (comments, ``...``), chats and word processors (curly quotes, full-width
commas), printed by Python (single quotes, ``True``) or copied in part. The strict parser stops at the same
place as HCCL's parser; this module recognises the cause.
"""

from __future__ import annotations

import re
from typing import Literal

from hccl_tools.document import places_in_text
from hccl_tools.notation.hint import FILES, unused
from hccl_tools.notation.look_alikes import look_alike
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

Kind = Literal[
    "empty file", "cut off", "binary", "NUL", "utf-16", "bad utf-8", "comment", "trailing comma",
    "single quotes", "curly quotes", "full-width punctuation", "invisible character", "NaN", "python literal",
    "ellipsis", "merge conflict", "unquoted key", "unquoted text", "missing comma", "missing colon",
    "missing value", "wrong bracket", "number", "number overflow", "unclosed text", "control character",
    "bad escape", "lone surrogate", "nesting", "Kubernetes object", "other file", "other",
]  # fmt: skip
#: What the grammar allows next: a value, a key, the colon after it, or the comma or bracket after a value.
Expected = Literal["value", "key", "colon", "comma"]


class JsonProblem(NamedTuple):
    """Why a text is not valid JSON for HCCL.

    ``message`` and ``hint`` have the same form as in a diagnostic: lower case, no full stop. ``offset`` is
    in characters during parsing and in bytes of the file in ``Document.problem``.
    """

    kind: Kind
    message: str
    hint: str
    offset: int


class JsonError(ValueError):
    """The text is not valid JSON; HCCL's parser stops at the same place."""

    def __init__(self, kind: Kind, message: str, hint: str, offset: int) -> None:
        super().__init__(message)
        self.problem = JsonProblem(kind, message, hint, offset)


class ParserState(NamedTuple):
    """The state in which the parser stopped.

    Attributes:
        text: The whole text.
        at: The offset of the unexpected character.
        after: The offset after the last token.
        expected: What the grammar allows here.
        opener: ``{`` or ``[`` of the innermost container; empty at the outermost level.
    """

    text: str
    at: int
    after: int
    expected: Expected
    opener: str

    @property
    def rest(self) -> str:
        """The next characters, enough to recognise them."""
        return self.text[self.at : self.at + 40]

    @property
    def word(self) -> str:
        """The letters, digits and dots around ``at``: ``192.168.1.2`` if ``192.168`` was read."""
        rest = _WORD.match(self.text, self.at, self.at + 60)
        return self.read + (rest[0] if rest else "")

    @property
    def read(self) -> str:
        """The part of ``word`` before ``at``."""
        before = _WORD_BEFORE.search(self.text, max(0, self.at - 60), self.at)
        return before[0] if before else ""


_WORD = re.compile(r"[\w.+\-]*")
_WORD_BEFORE = re.compile(r"[\w.+\-]{1,60}\Z")
_NAN = re.compile(r"[-+]?(NaN|nan|Infinity|inf)\b")
_PYTHON = re.compile(r"(True|False|None|TRUE|FALSE|NULL|Null|undefined|nil)\b")
_JSON_WORD = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
_KEY_BEFORE = re.compile(r'"([^"\\]*)"\s*:\s*\Z')
_NUMBER_LIKE = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|[0-9]*(?:\.[0-9]*)?([eE][-+]?[0-9]*)?)")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,8}")
_PADDED = re.compile(r"\+?[0-9]{1,20}", re.ASCII)
#: Keys with a number, and a number with the name of what it counts: L0, rank3, npu-1.
_OF_NUMBERS = frozenset({"net_layer", "rank_id", "local_id", "device_id", "rank_count", "server_count"})
_NAMED_NUMBER = re.compile(r"[A-Za-z]{1,10}[_-]?([0-9]{1,9})", re.ASCII)
_OF_2_0 = re.compile(r'"?version"?\s*:\s*"?2\.0')
_EQUALS = re.compile(r'"[ \t]{0,20}=')
_SEMICOLON = re.compile(r";[ \t\r]{0,20}$", re.MULTILINE)
_WANTED = {"value": "a value", "key": "a key in quotes", "colon": "a colon", "comma": "a comma or bracket"}
_INSIDE = {
    "{": "inside an object: a } is missing",
    "[": "inside a list: a ] is missing",
    '"': "inside a string",
}
#: A value with leading zeros and without quotes.
_PADDED_VALUE = re.compile(r":[ \t]*0[0-9]+\b")
_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_CURLY = "\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb\u2039\u203a\uff02\uff07\u300c\u300d"
_KUBERNETES = re.compile(r"\s*(#.*\n\s*)*(---\s+)?(apiVersion|kind):\s")
_FROM_PYTHON = (
    "python3 -I -c 'import ast, json, sys; "
    "json.dump(ast.literal_eval(sys.stdin.read().lstrip(chr(65279))), sys.stdout, indent=4)' < " + FILES
)
#: A word of Python that JSON does not have, as a value.
_PYTHON_WORD = re.compile(r"[:,\[]\s*(?:None|True|False)\b", re.ASCII)
_AGAIN = "copy the complete file again, or make the table with `hccl-tools gen`"


def stray(state: ParserState) -> JsonError:
    """Return the error for the text at which the parser stopped.

    The order matters: the first function that recognises the text decides.
    """
    for recognise in (
        _ending,
        _kubernetes,
        _pasted,
        _punctuation,
        _literal,
        _bracket_or_comma,
        _number_or_word,
        _missing,
    ):
        error = recognise(state)
        if error is not None:
            return error
    if not state.opener:
        message = f'not valid JSON: the text begins with "{_beginning(state.rest)}"'
        return JsonError("other", message, "specify the rank table, a JSON file", state.at)
    message = f'unexpected "{state.rest[0]}" instead of {_WANTED[state.expected]}'
    hint = "remove it, or put the value in double quotes" if state.expected == "value" else "remove it"
    return JsonError("other", message, hint, state.at)


def kubernetes_hint() -> str:
    """Return how to extract the table from a ConfigMap of which nothing is known."""
    command = "kubectl get configmap NAME -o jsonpath='{.data.hccl\\.json}'"
    return f"extract the table: {command} > {unused('hccl.json')}"


def _kubernetes(state: ParserState) -> JsonError | None:
    if state.opener or not _KUBERNETES.match(state.text):
        return None
    message = "this is a Kubernetes object in YAML; the rank table is the value of one of its data keys"
    return JsonError("Kubernetes object", message, kubernetes_hint(), state.at)


def _beginning(rest: str) -> str:
    line = rest.split("\n", 1)[0].rstrip()
    return line if len(line) <= 20 else line[:20] + "..."


def cut_off(at: int, opener: str) -> JsonError:
    """Return the error for a text that ends too early."""
    return JsonError("cut off", f"the file ends {_INSIDE.get(opener, 'too early')}", _AGAIN, at)


#: A command of vim that was typed as text.
_EDITOR_COMMAND = re.compile(r":(?:wqa?|wa?|qa?|xa?)!?[ \t\r]*(?:\n|$)")


def _ending(state: ParserState) -> JsonError | None:
    text, at = state.text, state.at
    if at >= len(text):
        if not state.opener:
            return JsonError("empty file", "the file is empty", _AGAIN, at)
        return cut_off(state.after, state.opener)
    if state.opener and any(word.startswith(text[at : at + 5]) for word in ("true", "false", "null")):
        return cut_off(len(text), state.opener)
    if text[at] == "\0":
        plain = "zero byte (NUL), as in a half-written file", _AGAIN
        return JsonError("NUL", *(places_in_text.wide_part(text, at) or plain), at)
    return None


def _pasted(state: ParserState) -> JsonError | None:
    rest, at = state.rest, state.at
    if rest.startswith(("//", "/*", "#", "<!--")):
        return JsonError("comment", "comments are not allowed in JSON", "remove the comment", at)
    if rest.startswith(("...", "\u2026")):
        return JsonError("ellipsis", "dots in place of omitted entries",
                         places_in_text.left_out(state.text, at), at)  # fmt: skip
    if rest.startswith(_CONFLICT):
        return JsonError("merge conflict", "unresolved merge conflict of git",
                         places_in_text.conflict(state.text, at), at)  # fmt: skip
    if _EDITOR_COMMAND.match(rest) and not state.text[:at].rpartition("\n")[2].strip():
        command = rest.partition("\n")[0].strip()
        return JsonError("other", f"the line is a command of an editor: {command}",
                         "remove the line", at)  # fmt: skip
    return None


def _punctuation(state: ParserState) -> JsonError | None:
    char, at = state.rest[0], state.at
    if char in "'`":
        hint = f"write \" instead of each '; if Python printed this: {_FROM_PYTHON}"
        if _PYTHON_WORD.search(state.text):
            hint = f"Python printed this, with None or True in it: {_FROM_PYTHON}"
        return JsonError("single quotes", "single quote; JSON uses double quotes", hint, at)
    if char in _CURLY:
        return JsonError("curly quotes", f"curly quote {char} instead of a plain quote",
                         'write " instead, also for the other curly quotes', at)  # fmt: skip
    if not char.isprintable() or char.isspace():
        lines = sum(char in line for line in state.text.split("\n"))
        more = f" in {lines} lines" if lines > 1 else ""
        return JsonError("invisible character", f"invisible character (U+{ord(char):04X}){more}",
                         "delete it, or use an ordinary space", at)  # fmt: skip
    if (found := look_alike(char)) is not None:
        message = f"{found.name} {char}"
        return JsonError("full-width punctuation", message, f"use '{found.ascii}'", at)
    return None


def _literal(state: ParserState) -> JsonError | None:
    if state.expected != "value":
        return None
    if found := _NAN.match(state.rest):
        plain = f"{found[0]} is not a JSON number", "write a number, or a string in double quotes"
        return JsonError("NaN", *(_empty(state, found[0]) or plain), state.at)
    if found := _PYTHON.match(state.rest):
        if found[0] not in _JSON_WORD and (said := _empty(state, found[0])) is not None:
            return JsonError("python literal", *said, state.at)
        return JsonError("python literal", f"{found[0]} is not JSON", _instead_of(found[0], state), state.at)
    return None


def _empty(state: ParserState, word: str) -> tuple[str, str] | None:
    """Return message and hint on a word in place of an id or address of a device; None for another key."""
    key = _KEY_BEFORE.search(state.text, max(0, state.at - 80), state.at)
    return None if key is None else places_in_text.empty_cell(state.text, state.at, word, key[1])


def _instead_of(word: str, state: ParserState) -> str:
    """Return a hint for a Python literal: no value that HCCL reads is true, false or null."""
    key = _KEY_BEFORE.search(state.text, max(0, state.at - 80), state.at)
    if key is not None and key[1] == "status":
        return 'write "completed"'
    return f"write {_JSON_WORD.get(word, 'null')}, or a string in double quotes if HCCL reads the value"


def _bracket_or_comma(state: ParserState) -> JsonError | None:
    char, at = state.rest[0], state.at
    if char in "}]":
        comma = state.after - 1
        if state.expected in {"key", "value"} and comma >= 0 and state.text[comma] == ",":
            message = f"trailing comma before {char}"
            return JsonError("trailing comma", message, "remove the comma", comma)
        if state.expected in {"value", "colon"} and state.opener == "{" and char == "}":
            return JsonError("missing value", "a key has no value", "write : and the value after it", at)
        if state.opener:
            closer = "}" if state.opener == "{" else "]"
            return JsonError("wrong bracket", f"unexpected {char}: {state.opener} is still open",
                             f"write {closer} first, or remove the {char}", at)  # fmt: skip
    if char == "," and state.opener and state.expected in {"key", "value"}:
        return JsonError("missing value", "missing value before this comma", "remove the comma", at)
    return None


def _number_or_word(state: ParserState) -> JsonError | None:
    """Recognise numbers that are not valid in JSON, and words and addresses without quotes."""
    word, at = state.word, state.at
    if not word or not (state.opener or word[0] in "+-.0123456789"):
        return None
    start = at - len(state.read)
    if state.expected == "key":
        return JsonError("unquoted key", f"the key {word} is not in quotes", f'write "{word}"', at)
    is_complete = start == at or len(word) == len(state.read)  # A value that ends before this sign.
    if state.expected == "colon" or (state.expected == "comma" and is_complete):
        return None
    if _NUMBER_LIKE.fullmatch(word):
        hint = f'write it without + and leading zeros, or as a string: "{word}"'
        if (number := _whole(word)) is not None:
            hint = f"write {_as_in(state.text, number)}"
        others = len(_PADDED_VALUE.findall(state.text)) - 1 if _PADDED_VALUE.match(f":{word}") else 0
        if others > 0:
            hint += (
                f", and the {others:,} other numbers with leading zeros in the same way: "
                "`hccl-tools validate --fix` shows all"
            )
        return JsonError("number", f"{word} is not a JSON number", hint, start)
    key = _KEY_BEFORE.search(state.text, max(0, start - 80), start)
    if key is not None and key[1] in _OF_NUMBERS:
        named = _NAMED_NUMBER.fullmatch(word)
        hint = f"write {_as_in(state.text, int(named[1]))}" if named else "write the number"
        return JsonError("unquoted text", f"{key[1]} is {word}, not a number", hint, start)
    return JsonError("unquoted text", f"{word} is not in quotes", f'write "{word}"', start)


def _whole(word: str) -> int | None:
    """Return the whole number that is written with a plus sign, leading zeros or hexadecimal digits."""
    if _HEXADECIMAL.fullmatch(word):
        return int(word, 16)
    return int(word) if _PADDED.fullmatch(word) else None


def _as_in(text: str, number: int) -> str:
    """Return a number as the table wants it: in a 2.0 table as a number, else in a string."""
    return str(number) if _OF_2_0.search(text) else f'"{number}"'


def _missing(state: ParserState) -> JsonError | None:
    char = state.rest[0]
    if state.expected == "colon":
        hint = "write a colon between the key and its value"
        if state.rest.startswith("=>"):
            hint = "write : instead of =>, here and in all other places: sed 's/ *=> */: /g' " + FILES
        elif char == "=":
            others = len(_EQUALS.findall(state.text)) - 1
            hint = "write : instead of ="
            if others > 0:
                places = count(others, "other place")
                hint += f", here and in {places}: sed -E 's/\"([ \\t]*)=/\"\\1:/g' {FILES}"
        return JsonError("missing colon", "a key is not followed by a colon", hint, state.after)
    if state.expected == "comma" and (char in '"{[-' or char.isalnum()):
        return JsonError("missing comma", "missing comma after this value", "write a comma", state.after)
    if state.expected == "comma" and char == ";":
        others = len(_SEMICOLON.findall(state.text)) - 1
        where = count(others, "other place")
        places = f", here and in {where}: sed -E 's/;[ \\t]*$/,/' {FILES}" if others > 0 else ""
        return JsonError("other", "; in place of a comma", f"write , instead of ;{places}", state.at)
    if state.expected == "comma" and char == ":":
        hint = "write a comma, or check the quotes before it"
        return JsonError("other", "colon after a value", hint, state.at)
    return None
