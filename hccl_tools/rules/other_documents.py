"""Findings on a document that is not a rank table, and on what follows a table in its file. No rules are declared here.

Only a document with such a fault needs this module: it imports what explains the text of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.document import explanation, places_in_text, strict_parser, syntax_problem, text_in_text
from hccl_tools.formats.detection import detect
from hccl_tools.formats.kubernetes.tables import explain
from hccl_tools.notation.hint import FILES
from hccl_tools.notation.phrases import MERGE, and_more
from hccl_tools.rules import bare_entries, doubled_keys, flat_lists
from hccl_tools.rules.registry import Finding

__all__ = ["bare_entries", "doubled_keys", "explanation", "finding", "text_after"]

if TYPE_CHECKING:
    from hccl_tools.document.document import Document
    from hccl_tools.formats.detection import Detection
    from hccl_tools.rules.registry import Input
    from hccl_tools.table.products import Product

#: Lists that only tables have, and the number of bytes of the ignored text in which they are searched.
_LISTS, _BEGINNING = (b'"server_list"', b'"rank_list"', b'"group_list"'), 4096


def finding(subject: Input, found: Detection) -> Finding:
    """Return the finding on a document that is not an object: a file of another kind, or tables in a list or string."""
    value, document = subject.value, subject.document
    if isinstance(value, dict) and "apiVersion" in value:
        reason, path, hint = explain(value, is_yaml=document is None)
        return Finding(f"not a rank table: {reason}", path, hint)
    if isinstance(value, dict) and (key := _key_of_table(value)) is not None:
        return Finding(
            f'not a rank table: the table is the value of "{key}"',
            (key,),
            f'remove {{ "{key}": before it, and the last }}',
        )
    if isinstance(value, dict) and value and not any(key.isascii() for key in value):
        hint = "HCCL reads English keys: copy the table from a page that the browser has not translated"
        return Finding(f"not a rank table: its keys are translated; {found.reason}", hint=hint)
    if (bare := bare_entries.of_entries(value, document)) is not None:
        return Finding(f"not a rank table: {bare.message}", hint=bare.hint)
    if (wrapped := bare_entries.of_wrapped(value)) is not None:
        return Finding(f"not a rank table: {wrapped[1].message}", wrapped[0], wrapped[1].hint)
    if isinstance(value, dict) or document is None:
        return Finding(f"not a rank table: {found.reason}", hint=found.hint)
    if isinstance(value, str) and explanation.is_headless(document):
        return Finding(
            "not a rank table: the beginning of the file is missing",
            hint="copy the complete file again, or make the table with `hccl-tools gen`",
        )
    if (counted := explanation.of_numbered(document)) is not None:
        return Finding(counted.message, hint=counted.hint)
    if (edit := explanation.of_rest(document)) is not None:
        return Finding(
            f"not a rank table: {edit.message}", hint=edit.hint, offset=document.byte_at(edit.place)
        )
    if (other := explanation.of_scalar(document)) is not None:
        return Finding(other.message, hint=other.hint)
    if isinstance(value, list) and value and all(detect(one).format for one in value):
        if len(value) == 1:
            return Finding(
                "not a rank table: it is a list with a table in it", hint="remove the outer [ and ]"
            )
        return Finding(
            f"not a rank table: it is a list of {len(value)} tables",
            hint=f"save each table in a file of its own; `hccl-tools merge {_file_names(len(value))}` joins them",
        )
    if isinstance(value, str) and (text := _of_text(value, document)) is not None:
        return text
    return _other_value(value, found)


def _of_text(value: str, document: Document) -> Finding | None:
    """Return the finding on a file that is a table between quotes.

    If those inside it are not escaped, HCCL reads the first brackets alone as a text.
    """
    if document.text is not None and document.trailing is not None:
        nested = text_in_text.find(document.text, document.character_at(document.trailing))
        if nested is not None:
            return Finding(f"not a rank table: {nested.message}", hint=nested.hint)
    if not value.lstrip().startswith("{"):
        return None
    program = "import json, sys; print(json.load(sys.stdin))"
    return Finding(
        "not a rank table: it is a table in a string",
        hint=f"take it out: python3 -I -c '{program}' < {FILES}",
    )


def _other_value(value: Any, found: Detection) -> Finding:
    """Return the finding on a value that has no table in it."""
    if (flat := flat_lists.of_devices(value)) is not None:
        return Finding(flat.message, hint=flat.hint)
    return Finding(f"not a rank table: {found.reason}", hint=found.hint)


def _key_of_table(value: dict[str, Any]) -> str | None:
    """Return the only key of an object, if its value is a table."""
    if len(value) != 1:
        return None
    ((key, inner),) = value.items()
    return key if isinstance(inner, dict) and detect(inner).format is not None else None


def text_after(document: Document, product: Product, offset: int, message: str, hint: str) -> Finding:
    """Return the finding on text after the table: a second table, a part of the first, or other text."""
    if document.data[offset] == 0:
        wide = places_in_text.wide_part(document.data.decode("latin-1"), offset)
        said, remedy = wide or ("there are zero bytes", "delete them: tr -d '\\000' < " + FILES)
        return Finding(f"{message}: {said}", hint=remedy, offset=offset)
    if (counted := explanation.of_numbered(document)) is not None:
        return Finding(counted.message, hint=counted.hint)
    beginning = document.data[offset : offset + _BEGINNING].lstrip(b", \t\r\n")
    if beginning.startswith(b"{") and any(key in beginning for key in _LISTS):
        return _several_tables(document, product, document.data.index(b"{", offset))
    if (edit := explanation.of_rest(document)) is not None:
        at = document.byte_at(edit.place)
        return Finding(f"{message}: {edit.message}", hint=edit.hint, offset=at)
    return Finding(message, hint=hint, offset=offset)


#: The most tables of a file that are searched for, and the names of as many files in a command.
_MOST_TABLES, _FILES = 64, "ABCDEFGH"


def _several_tables(document: Document, product: Product, start: int) -> Finding:
    """Return the finding on a file with tables one after the other; the second begins at an offset."""
    starts = _starts(document, start)
    number = len(starts) + 1
    lines = [document.position(at) for at in starts]
    places = [str(one.line) if one.column == 1 else f"{one.line}, character {one.column}" for one in lines]
    if number == 2:
        are, others, begin = "two", "the second", f"which begins on line {places[0]}"
    else:
        are, others = str(number), "the others"
        begin = f"which begin on lines {and_more(places, 8)}"
    reads = f"starts only the ranks of the first, and ignores {others}"
    if product.loader != "legacy":
        reads = f"refuses {others}"
    files = _file_names(number)
    each = (
        f"save each of the {are} tables in a file of its own"
        if number > 2
        else "save each table in a file of its own"
    )
    return Finding(
        f"there are {are} tables in this file: HCCL {reads}, {begin}",
        hint=f"{each}; {MERGE.format(files)}",
        offset=start,
    )


def _file_names(number: int) -> str:
    """Return as many names of files as a hint shows."""
    return " ".join(_FILES[:number]) + (" ..." if number > len(_FILES) else "")


def _starts(document: Document, start: int) -> list[int]:
    """Return the offsets of the objects that follow each other from one offset on."""
    text = document.text
    if text is None:
        return [start]
    found, at = [start], document.character_at(start)
    rest = text[at:]
    while len(found) < _MOST_TABLES:
        reader = strict_parser.Reader(rest, 0)
        try:
            reader.read()
        except syntax_problem.JsonError:
            break
        after = rest[reader.end :].lstrip(", \t\r\n")
        if not after.startswith("{"):
            break
        at += len(rest) - len(after)
        rest = after
        found.append(document.byte_at(at))
    return found
