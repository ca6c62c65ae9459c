"""Find the one edit that makes a text valid JSON: a bracket, comma or quote that is missing or too many.

The parser's own remedy is right for the sign at which it stops, and often wrong for the file. Here each edit
that a person may have undone by mistake is tried, and only one with which the whole text is valid is named.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from hccl_tools.document.bracket_scan import CLOSER, key_before, last_sign, name_of, scan, strings_before
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.document.bracket_scan import Opened, Scan

#: The longest text that is searched, and the characters that all trials together may parse.
_LONGEST, _MOST_PARSED = 1 << 24, 1 << 26
#: The characters before and after the parser's stop in which a missing quote is searched.
_NEAR = 120
#: Keys of lists, beside those that end in "_list".
_LISTS = frozenset({"device", "devices", "ports", "backup_addr"})
#: The contradictions of the indentation that are tried alone.
_MOST_OF_INDENTATION = 2
#: The characters after the parser's stop that an edit must lead on to, if the text has further faults.
_FARTHER = 40
#: The longest line of which a message names only the number.
_LONG_LINE = 200
_QUOTED = 30
#: A key and its value, or the bracket or number with which its value begins; each quote may be missing.
_MEMBER = re.compile(
    r'(?<![\w"])("?)([\w-]+)("?)(\s*:\s*)'
    r'(?:("?)([\w.:/%-]*)("?)(?=[ \t\r]*(?:[,}\]\n]|\Z))|(?=[\[{]))',
    re.ASCII,
)
#: An entry of a list of strings; each quote may be missing.
_ITEM = re.compile(r'(?<=[\[,\s])("?)([\w.:/%-]+)("?)(?=[ \t\r]*(?:[,\]\n]|\Z))', re.ASCII)
_WORD = re.compile(r"[\w-]{1,80}")
_DOUBLED = re.compile(r'(?<=[\w.])""|""(?=[\w.])')


class Edit(NamedTuple):
    """An edit: the offset, the number of characters to remove there, and the text to insert.

    ``message`` and ``hint`` have the form of those in a diagnostic; ``place`` is the offset that a message
    points to. ``only_whole`` is whether the edit is right only if the whole text is valid with it.
    """

    at: int
    remove: int
    insert: str
    message: str
    hint: str
    place: int
    only_whole: bool = False

    def applied(self, text: str) -> str:
        """Return the text after the edit."""
        return text[: self.at] + self.insert + text[self.at + self.remove :]


def find(text: str, stop: int, *, whole: bool = False) -> Edit | None:
    """Return the most plausible edit that makes a text valid JSON, or else the one that leads on farthest.

    The result is ``None`` if no edit leads on.

    Args:
        stop: The offset at which the parser stopped.
        whole: Whether only an edit counts with which the whole text is valid.
    """
    if len(text) > _LONGEST:
        return None
    trials = _MOST_PARSED // max(1, len(text))
    best, least = None, float("inf")
    farthest, reach = None, stop + _FARTHER
    for edit in islice(_edits(text, stop), trials):
        value, end = _parsed(edit.applied(text))
        if type(value) is dict and value and (found := _irregularity(value)) < least:
            best, least = edit, found
        elif end > reach and not edit.only_whole:
            farthest, reach = edit, end
    return farthest if best is None and not whole else best


def word_at(text: str, at: int) -> str:
    """Return the word that begins at an offset."""
    found = _WORD.match(text, at)
    return "" if found is None else found[0]


def is_valid(text: str) -> bool:
    """Whether a text is a valid JSON object with keys."""
    value = _parsed(text)[0]
    return type(value) is dict and bool(value)


def _parsed(text: str) -> tuple[Any, int]:
    """Return the value of a text, or ``None`` and the offset at which it is not valid."""
    try:
        return json.loads(text), len(text)
    except json.JSONDecodeError as error:
        return None, error.pos
    except (ValueError, RecursionError):
        return None, 0


def _irregularity(value: Any) -> int:
    """Return in how many ways a value differs from a table: a wrong bracket joins unlike entries.

    The entries of a list have the same keys, and what is named a list is one.
    """
    kinds: dict[tuple[str, ...], set[Any]] = {}
    faults = 0
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        path, one = stack.pop()
        if type(one) is list:
            kinds.setdefault(path, set()).update(
                frozenset(inner) if type(inner) is dict else type(inner) for inner in one
            )
            stack += [((*path, ""), inner) for inner in one if type(inner) is dict]
            faults += sum(type(inner) is list for inner in one)
            continue
        for key, inner in one.items():
            faults += type(inner) is not list and (key in _LISTS or key.endswith("_list"))
            if type(inner) in (dict, list):
                stack.append(((*path, key), inner))
    return faults + sum(len(of_list) - 1 for of_list in kinds.values() if of_list)


def _edits(text: str, stop: int) -> Iterator[Edit]:
    found = scan(text, stop)
    pen = _Pen(text)
    yield from _by_indentation(pen, found)
    yield from _quotes(pen, stop)
    yield from _parted_list(pen, stop)
    yield from _comma_inside(pen, stop)
    yield from _at_stop(pen, found, stop)
    yield from _openers(pen, found, stop)
    yield from _earlier_closers(pen, found)
    yield from _swapped_lines(pen, stop)


class _Pen:
    """Makes edits and their sentences."""

    def __init__(self, text: str) -> None:
        self.text = text

    def line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def column(self, at: int) -> int:
        return at - self.text.rfind("\n", 0, at)

    def is_on_short_line(self, at: int) -> bool:
        start, end = self.text.rfind("\n", 0, at), self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        return end - start <= _LONG_LINE and "\n" in self.text.strip()

    def begins(self, at: int) -> str:
        """Return where a bracket is, as a phrase."""
        if self.is_on_short_line(at):
            return f"that begins on line {self.line(at)}"
        return f"that begins with {self.excerpt(at)}"

    def excerpt(self, at: int) -> str:
        shown = self.text[at : at + _QUOTED].split("\n", 1)[0].rstrip()
        return f"{shown}..." if len(shown) == _QUOTED else shown

    def where(self, at: int) -> str:
        """Return where to write, as a phrase: ``at the end of line 3``."""
        rest = self.text[at:].split("\n", 1)[0].rstrip() if self.is_on_short_line(at) else None
        line = f"line {self.line(at)}"
        if not self.text[at:].strip():
            return "at the end of the file"
        if rest == "":
            return f"at the end of {line}"
        if rest == ",":
            return f"before the comma at the end of {line}"
        if rest is not None:
            return f"before {self.excerpt(at).lstrip()} on {line}"
        return f"before {self.excerpt(at)} ({line}, character {self.column(at)})"

    def sign(self, at: int) -> str:
        """Return a sign with its place: ``the } on line 3``."""
        sign = self.text[at]
        if not self.is_on_short_line(at):
            place = f"line {self.line(at)}, character {self.column(at)}"
            return f"the {sign} before {self.excerpt(at + 1) or 'the end'} ({place})"
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        line = self.text[start : len(self.text) if end < 0 else end]
        which = "" if line.count(sign) == 1 else "last " if line.rindex(sign) == at - start else "first "
        if which == "first " and line.index(sign) != at - start:
            return f"the {sign} at column {at - start + 1} of line {self.line(at)}"
        return f"the {which}{sign} on line {self.line(at)}"

    def close(self, opened: Opened, around: Opened | None, before: int) -> Edit:
        """Return the edit that closes an object or list before the sign at an offset."""
        text = self.text
        at, insert = last_sign(text, before), opened.closer
        if at and text[at - 1] == ",":
            at -= 1
            at = last_sign(text, at)
        elif before < len(text) and text[before] in '"{[':
            insert += ","
        what = name_of(text, opened, around)
        message = f"{what} {self.begins(opened.at)} is not closed: a {opened.closer} is missing"
        return Edit(at, 0, insert, message, f"write {insert} {self.where(at)}", at)

    def drop(self, at: int) -> Edit:
        """Return the edit without a sign; a closing bracket goes with its comma if one is before it."""
        text, sign = self.text, self.text[at]
        name, where, end = {",": "comma", '"': "double quote"}.get(sign, sign), self.sign(at), at + 1
        before = last_sign(text, at)
        if sign in "}]" and before and text[before - 1] == ",":
            rest = text[end:].lstrip(" \t\r\n")
            end = len(text) - len(rest) + 1 if rest.startswith(",") else end
        comma = " and its comma" if end > at + 1 else ""
        return Edit(at, end - at, "", f"one {name} too many: {where}", f"remove {where}{comma}", at)

    def replace(self, at: int, sign: str, why: str) -> Edit:
        return Edit(at, 1, sign, why, f"write {sign} instead of {self.sign(at)}", at)


def _by_indentation(pen: _Pen, found: Scan) -> Iterator[Edit]:
    edits = [
        pen.drop(at) if opened is None else pen.close(opened, _around(pen.text, found, opened), at)
        for at, opened in found.suspects
    ]
    yield from edits[:_MOST_OF_INDENTATION]
    for number in range(2, len(edits) + 1):
        yield _joined(pen, edits[:number])


def _joined(pen: _Pen, edits: Sequence[Edit]) -> Edit:
    """Return several edits, in their order, as one."""
    at, done = edits[0].at, edits[0].at
    pieces, hints = list[str](), list[str]()
    for edit in edits:
        if edit.at == done and pieces and edit.insert:
            pieces[-1] = pieces[-1].rstrip(",") + edit.insert
            hints[-1] = f"write {pieces[-1]} {pen.where(edit.at)}"
        else:
            pieces += [pen.text[done : edit.at], edit.insert]
            hints.append(edit.hint)
        done = edit.at + edit.remove
    messages = list(dict.fromkeys(edit.message for edit in edits))
    return Edit(at, done - at, "".join(pieces), "; ".join(messages), "; ".join(hints), at)


def _around(text: str, found: Scan, opened: Opened) -> Opened | None:
    """Return the object or list around an open one, if the parser had it open; else a scan up to it knows."""
    if opened in found.open:
        index = found.open.index(opened)
        return found.open[index - 1] if index else None
    outer = scan(text[: opened.at], opened.at).open
    return outer[-1] if outer else None


def _quotes(pen: _Pen, stop: int) -> Iterator[Edit]:
    text = pen.text
    start, end = max(0, stop - _NEAR), min(len(text), stop + _NEAR)
    start = max(start, text.rfind("\n", 0, stop) + 1)
    line_end = text.find("\n", stop)
    end = end if line_end < 0 else min(end, line_end)
    for member in _MEMBER.finditer(text, start, end):
        yield from _with_quote(member)
    if text[stop : stop + 1] == '"' and line_end >= 0:
        at = last_sign(text, line_end)
        gap = len(text[at:]) - len(text[at:].lstrip(" \t\r\n"))
        where = f"on lines {pen.line(at)} and {pen.line(at + gap)}"
        message = f"a line break is inside the string {text[stop:at]}"
        yield Edit(at, gap, "", message, f"write the string {where} on one line, without blanks between", at)
    for item in _ITEM.finditer(text, start, end):
        right = f'"{item[2]}"'
        if bool(item[1]) != bool(item[3]):
            at = item.start() if item[3] else item.end()
            message = f"a double quote is missing in {item[0]}"
            yield Edit(at, 0, '"', message, f"write {right} instead of {item[0]}", item.start())
    for doubled in _DOUBLED.finditer(text, start, end):
        at = doubled.start()
        yield Edit(at, 1, "", 'one " too many', f'write one " instead of the two {_on(pen, at)}', at)


def _with_quote(member: re.Match[str]) -> Iterator[Edit]:
    """Yield the edit that adds the only quote that a key or its value has too little."""
    shown, right = member[0], f'"{member[2]}"{member[4]}'
    if member[6] is not None and (member[5] or member[7]):
        right += f'"{member[6]}"'
    else:
        right += member[6] or ""
    if len(right) != len(shown) + 1:
        return
    at = next(
        index for index, (one, other) in enumerate(zip(f"{shown}\0", right, strict=True)) if one != other
    )
    place = member.start() + at
    comma = "," if member.string.startswith(",", member.end()) else ""  # The line may be replaced as a whole.
    message, hint = f"a double quote is missing in {shown.rstrip()}", f"write {right.rstrip()}{comma}"
    yield Edit(place, 0, '"', message, hint, member.start())


def _on(pen: _Pen, at: int) -> str:
    return f"on line {pen.line(at)}" if pen.is_on_short_line(at) else f"at {pen.excerpt(max(0, at - 10))}"


def _at_stop(pen: _Pen, found: Scan, stop: int) -> Iterator[Edit]:
    text, after = pen.text, last_sign(pen.text, stop)
    if not found.open:
        return
    top, around = found.open[-1], found.open[-2] if len(found.open) > 1 else None
    sign = text[stop : stop + 1]
    starts = [stop, *(strings_before(text, stop) if sign == ":" else ())]
    for start in starts:
        yield pen.close(top, around, start)
        if around is not None:
            both = [pen.close(top, around, start), pen.close(around, _outer(found, 3), start)]
            yield _joined(pen, both)
    if sign and sign in "}]" and sign != top.closer:
        name = name_of(text, top, around)
        yield pen.replace(
            stop, top.closer, f"{name} {pen.begins(top.at)} is closed by {sign} instead of {top.closer}"
        )
    if sign and sign in '{}[],:"':
        yield pen.drop(stop)
    if after != stop or sign:
        where = pen.where(after)
        yield Edit(after, 0, ",", "a comma is missing between two values", f"write a comma {where}", after)
        key = next((text[start:after] for start in strings_before(text, stop)), "a key")
        yield Edit(after, 0, ":", f"the colon after {key} is missing", f"write : {where}", after)
    if sign and sign in ";.|:=\u3001":
        yield pen.replace(stop, ",", f"{sign} instead of a comma")
    if sign in ("(", ")", "<", ">"):
        for right in ("[", "{") if sign in "(<" else (top.closer,):
            yield pen.replace(stop, right, f"{sign} instead of {right}")


def _parted_list(pen: _Pen, stop: int) -> Iterator[Edit]:
    """Yield the edit that joins two lists of entries: one ends, and the next begins."""
    text, after = pen.text, last_sign(pen.text, stop)
    if after and text[after - 1] == ",":
        after = last_sign(text, after - 1)
    if text[stop : stop + 1] != "[" or not after or text[after - 1] != "]":
        return
    ends, begins = (f"on line {pen.line(at)}" for at in (after - 1, stop))
    message = f"a list ends {ends}, and a second one begins {begins}: its entries are those of one list"
    hint = f"write one comma in place of {pen.sign(after - 1)} and {pen.sign(stop)}"
    yield Edit(after - 1, stop + 2 - after, ",", message, hint, after - 1)


def _comma_inside(pen: _Pen, stop: int) -> Iterator[Edit]:
    """Yield the edit that writes a comma after the quote and not before it, as word processors do."""
    text, after = pen.text, last_sign(pen.text, stop)
    if text[after - 2 : after] == ',"' and text[stop : stop + 1] == '"':
        (start,) = (*strings_before(text, after), after)[:1]
        shown, right = text[start:after], f'{text[start : after - 2]}",'
        message = f"the comma of {shown} is inside the quotes"
        yield Edit(after - 2, 2, '",', message, f"write {right}", after - 2)


def _outer(found: Scan, level: int) -> Opened | None:
    return found.open[-level] if len(found.open) >= level else None


def _openers(pen: _Pen, found: Scan, stop: int) -> Iterator[Edit]:
    """Yield edits of brackets that open something: one is missing, or is of the other kind."""
    text = pen.text
    if found.open:
        top, around = found.open[-1], found.open[-2] if len(found.open) > 1 else None
        other = "[" if top.sign == "{" else "{"
        name, kind = name_of(text, top, around), "a list" if other == "[" else "an object"
        if top.at:
            yield pen.drop(top.at)
        yield pen.replace(top.at, other, f"{name} {pen.begins(top.at)} is {kind}, but begins with {top.sign}")
    if found.closed is not None and (key := key_before(text, found.closed)):
        where = f'before the {text[found.closed]} after "{key}":'
        yield _opening(pen, found.closed, "[", f'the [ of the list "{key}" is missing', where)
    for at in strings_before(text, stop):
        if own := key_before(text, at):
            yield _opening(pen, at, "[", f'the [ of the list "{own}" is missing', f'after "{own}":')
            continue
        key = key_before(text, found.open[-1].at) if found.open else ""
        what = f'the {{ of an entry of "{key}" is missing' if key else "the { at the beginning is missing"
        yield _opening(pen, at, "{", what, f"before {text[at : last_sign(text, stop)]}")


def _opening(pen: _Pen, at: int, sign: str, what: str, where: str) -> Edit:
    place = f" on line {pen.line(at)}" if pen.is_on_short_line(at) else ""
    return Edit(at, 0, sign, what, f"write {sign} {where}{place}", at)


def _earlier_closers(pen: _Pen, found: Scan) -> Iterator[Edit]:
    """Yield edits without a closing bracket that came before the stop: one too many closes too early."""
    for at in found.closers:
        yield pen.drop(at)


def _swapped_lines(pen: _Pen, stop: int) -> Iterator[Edit]:
    """Yield the edits that swap the line of the stop with the one before or after it."""
    text = pen.text
    own = text.rfind("\n", 0, stop) + 1
    for start in (own, text.rfind("\n", 0, max(0, own - 1)) + 1):
        middle = text.find("\n", start) + 1
        end = text.find("\n", middle)
        end = len(text) if end < 0 else end
        if not middle or end - start > _LONG_LINE:
            continue
        line = pen.line(start)
        both = f"{text[middle:end]}\n{text[start : middle - 1]}"
        message = f"lines {line} and {line + 1} are in the wrong order"
        yield Edit(start, end - start, both, message, "swap the two lines", start, only_whole=True)


def at_end(text: str, at: int) -> tuple[str, tuple[str, ...]]:
    """Return the brackets that close what is open at the end of a text, and the names of what is open."""
    opened = scan(text, at).open
    names = [name_of(text, one, opened[index - 1] if index else None) for index, one in enumerate(opened)]
    return "".join(CLOSER[one.sign] for one in reversed(opened)), tuple(names)
