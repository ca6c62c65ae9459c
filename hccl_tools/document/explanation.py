"""Explain why a file is not valid JSON to a person who does not know JSON.

``Document.problem`` says at which sign HCCL's parser stops. This module looks at the whole text: what the
file is if it is not a table at all, and which one edit makes it valid.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hccl_tools.document import (
    foreign_text,
    joined_tables,
    lost_lines,
    missing_value,
    one_edit,
    other_content,
    printed_value,
    rewriting,
    spreadsheet_cells,
    terminal_text,
    text_in_text,
)
from hccl_tools.document.bracket_scan import last_line
from hccl_tools.document.document import Document
from hccl_tools.document.encoding_problem import NOT_A_TABLE
from hccl_tools.document.other_content import OtherContent
from hccl_tools.notation.hint import FILES, with_places
from hccl_tools.notation.phrases import MERGE, and_more, count

if TYPE_CHECKING:
    from hccl_tools.document.one_edit import Edit
    from hccl_tools.document.syntax_problem import JsonProblem

#: The kinds of problems whose cause may be a bracket, comma or quote elsewhere.
_STRUCTURAL = frozenset(
    {
        "cut off", "unclosed text", "missing comma", "missing colon", "missing value", "wrong bracket",
        "unquoted key", "unquoted text", "number", "other", "trailing comma",
    }
)  # fmt: skip
#: The kinds that say already what the file is.
_OF_WHOLE_FILE = frozenset({"empty file", "binary", "utf-16", "nesting", "Kubernetes object"})
#: The kinds whose offset is that after the last value, before the sign at which the parser stopped.
_BEFORE_THE_SIGN = frozenset({"missing comma", "missing colon", "trailing comma"})
#: The bytes of a file that is not UTF-8 that are examined; text has fewer invalid bytes than one in so many.
_HEAD, _FEW = 8192, 4
#: The beginning of a table in a string of another JSON file or of a log, without the quotes around it.
_ESCAPED = re.compile(r'\s*\{\s*(\\n|\\"|\\t)')
_MEANT = {"\\n": "line breaks", '\\"': "double quotes", "\\t": "tabs"}
_UNESCAPE = (
    """python3 -I -c 'import sys; print(sys.stdin.read().replace(r"\\n", "\\n").replace(r"\\t", " ")"""
    """.replace(r"\\\"", chr(34)))'"""
)
_QUOTE_KEYS = (
    "on each line: "
    r"""sed -E 's/(^|[{,])([ \t]*)([A-Za-z_][A-Za-z0-9_]*)([ \t]*:)/\1\2"\3"\4/g' """ + FILES
)
#: The characters at the beginning of a table by which its second beginning is found.
_LEAST_HEAD = 24
#: A command, which reads the whole file: the text around the table must be gone before.
_COMMAND = re.compile("`|" + FILES)
#: The characters at the end of an incomplete file that a message quotes.
_TAIL = 40
#: The problems of one file that a message names: each is that of the text without the ones before it.
_MOST_NAMED = 4
#: The first characters of text after a value that can belong to it: a bracket closed it too early.
_CONTINUES = frozenset(',:}]"')


def explained(document: Document) -> JsonProblem | None:
    """Return the problem of a file with the message and hint for its reader; ``None`` for valid JSON.

    A table with other text in it can have further problems, of which the message names the first ones. Each
    of them takes another run of the parser, and a file can have one on each of its lines.
    """
    lines: list[int] = []
    found: list[JsonProblem] = []
    while len(found) < _MOST_NAMED:
        said, rest = _first_of(document)
        if said is None:
            break
        found.append(said)
        lines.append(document.position(said.offset).line)
        if not rest:
            break
        document = _parsed(rest)
    if not found:
        return None
    said = found.pop()
    while found:
        said = _with_inner(found.pop(), said, lines.pop())
    return said._replace(hint=with_places(said.hint))


def _first_of(document: Document) -> tuple[JsonProblem | None, str]:
    """Return the first problem of a file, and the text without it if that may have another one."""
    problem, text = document.problem, document.text
    if problem is None or problem.kind in _OF_WHOLE_FILE:
        return problem, ""
    if text is None:
        return _not_utf8(problem, document.data), ""
    if (whole := _of_whole_text(document, problem, text)) is not None:
        return whole, ""
    if (around := other_content.around_table(text)) is not None:
        return _around(problem, text, around)
    if (other := other_content.recognise(text)) is not None:
        return problem._replace(kind="other file", message=other.message, hint=other.hint), ""
    stop = _stop(document, problem, text)
    if (foreign := terminal_text.find(text, stop) or foreign_text.find(text, stop)) is not None:
        at = document.byte_at(foreign.at)
        return problem._replace(message=foreign.message, hint=foreign.hint, offset=at), foreign.left
    return _of_table(document, problem, text), ""


def _of_whole_text(document: Document, problem: JsonProblem, text: str) -> JsonProblem | None:
    """Return the problem of a text that was changed as a whole, or is of another kind."""
    if (escaped := _ESCAPED.match(text)) is not None:
        message = f"the text was copied out of a string: it has {escaped[1]} in place of {_MEANT[escaped[1]]}"
        return problem._replace(
            message=message, hint=f"write the signs themselves: {_UNESCAPE} < {FILES}", offset=0
        )
    if (encoded := foreign_text.quoted_printable(text)) is not None:
        at = document.byte_at(encoded.at)
        return problem._replace(kind="other", message=encoded.message, hint=encoded.hint, offset=at)
    if (shortened := _without_end(problem, text)) is not None:
        return shortened
    if (again := _begun_again(document, problem, text)) is not None:
        return again
    if (cells := spreadsheet_cells.recognise(text)) is not None:
        at = document.byte_at(cells.at)
        return problem._replace(kind="other file", message=cells.message, hint=cells.hint, offset=at)
    if (nested := text_in_text.find(text, _stop(document, problem, text))) is not None:
        at = document.byte_at(nested.at)
        return problem._replace(kind="other", message=nested.message, hint=nested.hint, offset=at)
    if (printed := printed_value.recognise(text)) is not None:
        return problem._replace(kind="other file", message=printed.message, hint=printed.hint, offset=0)
    return None


def _of_table(document: Document, problem: JsonProblem, text: str) -> JsonProblem:
    """Return the problem of a table that has no other text in it."""
    if problem.kind == "trailing comma" and (lost := lost_lines.after_commas(text)) is not None:
        return problem._replace(message=f"{problem.message}{lost[0]}", hint=lost[1])
    if (repeated := _repeated(document, problem, text)) is not None:
        return repeated
    if (empty := _without_value(document, problem, text)) is not None:
        return empty
    edit = edit_of(document)
    if edit is not None and not (problem.kind == "cut off" and _is_more_missing(text, edit)):
        if edit.insert == "," and (lost := _between_servers(edit, text)) is not None:
            return problem._replace(message=lost[0], hint=lost[1], offset=document.byte_at(edit.place))
        hint = f"{edit.hint}{joined_tables.ranks_on_after(edit.applied(text))}"
        return problem._replace(message=edit.message, hint=hint, offset=document.byte_at(edit.place))
    return _cut_off(problem, text) if problem.kind == "cut off" else problem


def _between_servers(edit: Edit, text: str) -> tuple[str, str] | None:
    line = text.count("\n", 0, edit.at) + 1
    return lost_lines.between_servers(edit.applied(text), edit.at, line)


def _without_value(document: Document, problem: JsonProblem, text: str) -> JsonProblem | None:
    """Return the problem of a key without a value; no edit of one sign makes such a text a table."""
    if problem.kind not in _STRUCTURAL or problem.kind == "cut off":
        return None
    found = missing_value.find(text, _stop(document, problem, text))
    if found is None:
        return None
    return problem._replace(
        kind="missing value", message=found.message, hint=found.hint, offset=document.byte_at(found.at)
    )


def edit_of(document: Document) -> Edit | None:
    """Return the one edit that makes a file valid JSON, if its problem may be a sign elsewhere."""
    problem, text = document.problem, document.text
    if problem is None or text is None or problem.kind not in _STRUCTURAL:
        return None
    return one_edit.find(text, _stop(document, problem, text))


def _stop(document: Document, problem: JsonProblem, text: str) -> int:
    """Return the offset in characters of the sign at which the parser stopped."""
    stop = len(text) if problem.kind == "cut off" else document.character_at(problem.offset)
    if problem.kind in _BEFORE_THE_SIGN:
        stop += 1 if problem.kind == "trailing comma" else 0
        stop += len(text[stop:]) - len(text[stop:].lstrip(" \t\r\n"))
    return stop


def _around(problem: JsonProblem, text: str, around: other_content.Around) -> tuple[JsonProblem, str]:
    """Return the problem of a table with other text before it, and the table alone."""
    message = f"there is other text before the table, which begins on line {around.line}"
    hint = f"delete {around.delete}"
    # Line breaks in place of the text before the table: its lines keep their numbers.
    alone = "\n" * text.count("\n", 0, around.start) + text[around.start : around.end]
    return problem._replace(kind="other", message=message, hint=hint), alone


def _with_inner(said: JsonProblem, inner: JsonProblem, line: int) -> JsonProblem:
    """Return a problem with that of the rest of the text; the line has the number of the file."""
    hint = said.hint
    if inner.hint and _COMMAND.search(inner.hint):
        hint = f"{said.hint}; then, on line {line} (as the lines are numbered now), {inner.hint}"
    elif inner.hint:  # Lines that are deleted first would give this line another number.
        others = said.hint.replace("these lines", "the lines that are not part of the table", 1)
        if others.startswith("delete it"):
            others = others.replace("it", "the line that is not part of the table", 1)
        hint = f"on line {line}, {inner.hint}; then {others}"
    return said._replace(message=f"{said.message}; in the table, on line {line}: {inner.message}", hint=hint)


def _begun_again(document: Document, problem: JsonProblem, text: str) -> JsonProblem | None:
    """Return the problem of a file in which a part of a table stands before the whole table."""
    head = text[: len(text) - len(text.lstrip()) + _LEAST_HEAD].lstrip()
    start = text.find(head, text.find(head) + 1) if len(head) >= _LEAST_HEAD // 2 else -1
    if start < 0 or not one_edit.is_valid(text[start:]):
        return None
    offset = document.byte_at(start)
    line = document.position(offset).line
    if (closers := joined_tables.first_of_two(text, start)) is not None:
        return problem._replace(
            message=(
                "there are two tables in this file, and the end of the first is missing: the second begins "
                f"on line {line}"
            ),
            hint=(
                f'write what is missing of the first ({closers}, and keys such as "status") before line '
                f"{line}, and save each table in a file of its own; {MERGE.format('A B')}"
            ),
            offset=offset,
        )
    return problem._replace(
        message=(
            f"the table breaks off on line {line}, and begins again there: a part of it stands before the "
            "whole table"
        ),
        hint=f"delete what stands before the whole table: tail -c +{offset + 1} {FILES}",
        offset=offset,
    )


def _parsed(text: str) -> Document:
    return Document.parse(text.encode(errors="surrogatepass"), "")


def _repeated(document: Document, problem: JsonProblem, text: str) -> JsonProblem | None:
    """Return the problem of bare keys, single quotes or full-width signs, with the number of the others."""
    if (more := _others_of(problem, text)) is not None:
        return problem._replace(hint=f"{problem.hint}, and {more}{_fix(document)}")
    if problem.kind not in rewriting.REPEATED:
        return None
    others = rewriting.times(text, problem.kind) - 1
    if others < 1:
        return None
    is_certain = rewriting.is_correctable(document.data)
    if problem.kind == "unquoted key":
        key = one_edit.word_at(text, document.character_at(problem.offset))
        message = f"keys are not in quotes: {key}, and {count(others, 'other')}"
        hint = f'write "{key}", and so on; {"`validate --fix` does" if is_certain else _QUOTE_KEYS}'
        return problem._replace(message=message, hint=hint)
    if not is_certain:
        return None
    return problem._replace(
        message=f"single quotes around {count(others + 1, 'text')}; JSON uses double quotes",
        hint=f"write \" instead of each '; `validate --fix` does; {problem.hint.partition('; ')[2]}",
    )


def _others_of(problem: JsonProblem, text: str) -> str | None:
    """Return what else is to be corrected in the same way, as a phrase; None if nothing is."""
    if problem.kind == "trailing comma":
        lines = [str(text.count("\n", 0, at) + 1) for at in rewriting.trailing_commas(text)[1:]]
        where = f"line{'s' if lines[1:] else ''} {and_more(lines, 8)}"
        return f"{count(len(lines), 'other')} on {where}" if lines else None
    if problem.kind not in {"full-width punctuation", "curly quotes"}:
        return None
    is_one = problem.kind == "full-width punctuation"
    signs = rewriting.full_width_signs(text) - is_one
    noun = "other full-width sign" if is_one else "full-width sign"
    return f"the ASCII sign for {count(signs, noun)} outside strings" if signs > 0 else None


def _fix(document: Document) -> str:
    return ": `validate --fix` does" if rewriting.is_correctable(document.data) else ""


def _not_utf8(problem: JsonProblem, data: bytes) -> JsonProblem:
    """Return the problem of a file that is not UTF-8: it is binary, or text of another kind."""
    text = data[:_HEAD].decode(errors="replace")
    if text.count("\ufffd") > len(text) // _FEW:
        message = f"the file is not text: it begins with the byte 0x{data[0]:02X}"
        return problem._replace(kind="binary", message=message, hint=NOT_A_TABLE, offset=0)
    other = other_content.recognise(text)
    if other is None:
        return problem
    return problem._replace(kind="other file", message=other.message, hint=other.hint, offset=0)


def _cut_off(problem: JsonProblem, text: str) -> JsonProblem:
    """Return the problem of a file whose end is missing: what is open, and where the text ends."""
    closers, names = one_edit.at_end(text, len(text))
    if not names:
        return problem
    line = text[last_line(text) :].strip()
    tail = line if len(line) <= _TAIL else f"...{line[-_TAIL:]}"
    message = f"the end of the file is missing: it ends inside {names[-1]}, with the text {tail}"
    closed = _parsed(text.rstrip().rstrip(",") + closers)
    if type(closed.value) is not dict:
        return problem._replace(message=message)
    if lacking := _lacking(closed.value):
        return problem._replace(message=f"{message}; the table then lacks {and_more(lacking)}")
    hint = (
        f"copy the complete file again, or make the table with `hccl-tools gen`; "
        f"if nothing but brackets is missing, write {closers} at the end"
    )
    return problem._replace(message=message, hint=hint)


def _without_end(problem: JsonProblem, text: str) -> JsonProblem | None:
    """Return the problem of a file whose last line says that the rest was left out."""
    found = foreign_text.without_end(text)
    cut = None if found is None else _parsed(found.left).problem
    if found is None or cut is None:
        return None
    hint = "copy the complete text again, or make the table with `hccl-tools gen`"
    return problem._replace(
        kind="cut off",
        message=f"{_cut_off(cut, found.left).message}; the last line stands for the rest: {found.line}",
        hint=hint,
        offset=cut.offset,
    )


def _is_more_missing(text: str, edit: Edit) -> bool:
    """Return whether a table whose brackets an edit closes at the end of its text lacks more than these."""
    if text[edit.at + edit.remove :].strip():
        return False
    closed = _parsed(edit.applied(text)).value
    return type(closed) is dict and bool(_lacking(closed))


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def _lacking(value: dict[str, Any]) -> list[str]:
    """Return what a table lacks whose end is missing and whose brackets were closed, as phrases."""
    found = list[str]()
    for name, stated in (("server_list", "server_count"), ("rank_list", "rank_count")):
        entries, number = value.get(name), str(value.get(stated))
        if type(entries) is list and number.isdecimal() and len(number) < 9 and int(number) > len(entries):
            found.append(f"{_entries(int(number) - len(entries))} of {name}")
    holder: Any = value
    while type(holder) is dict and holder:
        name, entries = list(holder.items())[-1]
        if type(entries) is not list or not entries or not all(type(one) is dict for one in entries):
            break
        first, holder = entries[0], entries[-1]
        lost = [f'"{key}" in the last entry of {name}' for key in first if key not in holder]
        found += lost if len(entries) > 1 else []
    known = any(name in value for name in ("server_list", "rank_list", "group_list"))
    return [*found, '"status"'] if known and "status" not in value else found


def of_numbered(document: Document) -> OtherContent | None:
    """Return that the lines of a file have numbers before them, of which the first is a JSON value."""
    text = document.text
    return other_content.numbered(text) if text is not None and type(document.value) is int else None


def of_scalar(document: Document) -> OtherContent | None:
    """Return what a file is whose first word is a JSON value, such as the year of a log."""
    text = document.text
    if text is None or document.trailing is None:
        return None
    cells = spreadsheet_cells.recognise(text)
    return OtherContent(cells.message, cells.hint) if cells is not None else other_content.recognise(text)


def is_headless(document: Document) -> bool:
    """Whether a file begins with a key, and one { before it does not make it a table."""
    if document.trailing is None or document.data[document.trailing] != ord(":"):
        return False
    return of_rest(document) is None


def of_rest(document: Document) -> Edit | None:
    """Return the edit that makes the text after a value a part of it: a bracket that closes it too early."""
    text = document.text
    if text is None or document.trailing is None:
        return None
    at = document.character_at(document.trailing)
    return one_edit.find(text, at, whole=True) if text[at] in _CONTINUES else None
