"""Rewrite a file that is not JSON in UTF-8, if it is clear what its author meant; all other bytes stay.

This covers other encodings, full-width signs, curly and single quotes around keys and values, keys without
quotes, numbers with leading zeros or in hexadecimal digits, trailing commas, and comments that say nothing of
the table.
"""

from __future__ import annotations

import codecs
import re
from operator import itemgetter
from typing import TYPE_CHECKING

from hccl_tools.document import foreign_text
from hccl_tools.document.document import Document
from hccl_tools.document.encoding_problem import WIDE, reads_as_chinese
from hccl_tools.notation.look_alikes import look_alike
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

#: The maximum number of faults that are corrected one by one, each of which needs another run of the parser,
#: and of the bytes that the parser reads for them.
_MOST_STEPS, _MOST_BYTES = 1000, 1 << 27
#: ASCII signs that may stand outside strings in JSON.
_OUTSIDE = frozenset('{}[],:"0123456789. ')
_IDEOGRAPHIC_SPACE = "\u3000"
#: Blanks of word processors and pages, which stand for a space outside strings.
_SPACES = "\u00a0\u2002\u2003\u2007\u2009\u202f"
_BYTE_ORDER_MARK = "\ufeff"
_QUOTES = "\u201c\u201d\u201e\u201f\uff02\u2018\u2019\u201a\u201b\u00ab\u00bb\u2039\u203a\u300c\u300d"
#: A text in curly quotes; one of the two quotes may be plain.
_QUOTED = re.compile(rf'([{_QUOTES}])([^{_QUOTES}"\\\n]*)(["{_QUOTES}])')
_LEADING_ZEROS = re.compile(rb"(-?)0{1,32}(0|[1-9][0-9]{0,19})(?![\w.+\-])")
_HEX = re.compile(rb"0[xX]([0-9a-fA-F]{1,8})(?![\w.+\-])")
#: A key without quotes, and a text in single quotes.
_BARE_KEY = r"(?<![\w.+\-$%])[A-Za-z_][\w-]{0,80}(?=[ \t]*:)"
_SINGLE = r"'[^'\"\\\n]*'"
#: A string, which may be open at the end of its line: else each quote in it would begin another one. Outside
#: strings: a sign that may be full-width, a trailing comma, leading zeros of a number.
_TOKEN = re.compile(
    rf'"(?:[^"\\\n]|\\.)*"?|[{_QUOTES}][^{_QUOTES}"\\\n]*["{_QUOTES}]|[^\x00-\x7f]'
    r"|,(?=[ \t\r\n]*[}\]])|(?<![\w.+\-])(?:-?0[0-9]+|0[xX][0-9a-fA-F]{1,8})(?![\w.+\-])"
    rf"|{_SINGLE}|{_BARE_KEY}",
    re.ASCII,
)
_TIMES = {
    "unquoted key": re.compile(rf'"(?:[^"\\\n]|\\.)*"?|(?P<one>{_BARE_KEY})', re.ASCII),
    "single quotes": re.compile(rf'"(?:[^"\\\n]|\\.)*"?|(?P<one>{_SINGLE})', re.ASCII),
}
#: The kinds of problems that a text has everywhere if it has them once.
REPEATED = frozenset(_TIMES)


class Decoded(NamedTuple):
    """The text of a file in UTF-8, without a byte order mark, and the file's own encoding."""

    data: bytes
    encoding: str


def decoded(data: bytes) -> Decoded:
    """Return a file in UTF-8; a file whose encoding is not certain stays as it is.

    A file in UTF-16 or UTF-32 is recognised by its byte order mark or by its zero bytes, and GB18030 by
    Chinese text in a file that has no UTF-8 text.
    """
    if data.startswith(codecs.BOM_UTF8):
        return _converted(data, "UTF-8", "UTF-8 with a byte order mark") or Decoded(data, "UTF-8")
    name = next((name for mark, name in WIDE if data.startswith(mark)), None)
    if name is not None:
        return _converted(data, name, name) or Decoded(data, "UTF-8")
    if data[:1] == b"\0" or data[1:2] == b"\0":
        return _converted(data, "UTF-16-BE" if data[:1] == b"\0" else "UTF-16-LE", "UTF-16") or Decoded(
            data, "UTF-8"
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        is_mixed = any(map(_is_chinese_utf8, data.split(b"\n")))
        if not is_mixed and reads_as_chinese(data, error.start):
            return _converted(data, "GB18030", "GB18030") or Decoded(data, "UTF-8")
    return Decoded(data, "UTF-8")


def _converted(data: bytes, codec: str, name: str) -> Decoded | None:
    try:
        return Decoded(data.decode(codec).lstrip(_BYTE_ORDER_MARK).encode(), name)
    except UnicodeError:
        return None


def _is_chinese_utf8(line: bytes) -> bool:
    try:
        return not line.isascii() and any("\u4e00" <= char <= "\u9fff" for char in line.decode())
    except UnicodeDecodeError:
        return False


def parseable(data: bytes) -> bytes:
    """Return a text in UTF-8 with the faults of its JSON corrected that have exactly one right correction."""
    problem = Document.parse(data, "").problem
    if problem is None or problem.kind not in {*_CORRECTIONS, *REPEATED}:
        return data
    whole = data[: problem.offset] + _replaced(data[problem.offset :])
    if Document.parse(whole, "").problem is None:
        return whole
    for _ in range(min(_MOST_STEPS, _MOST_BYTES // len(data))):
        correct = None if problem is None else _CORRECTIONS.get(problem.kind)
        following = None if problem is None or correct is None else correct(data, problem.offset)
        if following is None:
            return data
        data = following
        problem = Document.parse(data, "").problem
    return data


def is_correctable(data: bytes) -> bool:
    """Whether all faults of a file that is not JSON in UTF-8 have exactly one right correction."""
    return Document.parse(parseable(decoded(data).data), "").problem is None


def times(text: str, kind: str) -> int:
    """Return how often a text has a problem of one of the kinds in ``REPEATED``."""
    return sum(found["one"] is not None for found in _TIMES[kind].finditer(text))


def full_width_signs(text: str) -> int:
    """Return how many full-width signs stand outside strings in a text."""
    return sum(
        not one.isascii() and _plain(one) in _OUTSIDE for one in map(itemgetter(0), _TOKEN.finditer(text))
    )


def trailing_commas(text: str) -> list[int]:
    """Return the offsets of the commas before a closing bracket, outside strings."""
    return [found.start() for found in _TOKEN.finditer(text) if found[0] == ","]


def _replaced(data: bytes) -> bytes:
    """Return a text with all its tokens as JSON has them."""
    text = data.decode(errors="surrogateescape")
    return _TOKEN.sub(lambda found: _plain(found[0]), text).encode(errors="surrogateescape")


def _without_comma(data: bytes, offset: int) -> bytes | None:
    return data[:offset] + data[offset + 1 :]


def _without_zeros(data: bytes, offset: int) -> bytes | None:
    if (hexadecimal := _HEX.match(data, offset)) is not None:
        return data[:offset] + str(int(hexadecimal[1], 16)).encode() + data[hexadecimal.end() :]
    found = _LEADING_ZEROS.match(data, offset)
    return found and data[:offset] + found[1] + found[2] + data[found.end() :]


def _plain_sign(data: bytes, offset: int) -> bytes | None:
    text = data[offset:].decode(errors="surrogateescape")
    first = _TOKEN.match(text)
    if first is None or (right := _plain(first[0])) == first[0]:
        return None
    return data[:offset] + (right + text[first.end() :]).encode(errors="surrogateescape")


def _plain(text: str) -> str:
    if text == _IDEOGRAPHIC_SPACE or (len(text) == 1 and text in _SPACES):
        return " "
    if text == ",":
        return ""
    if text[0] == "'":
        return f'"{text[1:-1]}"'
    if text[0].isascii() and (text[0].isalpha() or text[0] == "_"):
        return f'"{text}"'
    if text[:2] in ("0x", "0X"):
        return str(int(text, 16))
    if text[0] in "-0":
        return f"-{text[1:].lstrip('0') or 0}" if text[0] == "-" else text.lstrip("0") or "0"
    if quoted := _QUOTED.fullmatch(text):
        return f'"{quoted[2]}"'
    found = look_alike(text) if len(text) == 1 else None
    is_sign = found is not None and found.name.startswith("full-width") and found.ascii in _OUTSIDE
    return found.ascii if found is not None and is_sign and text not in _QUOTES else text


def _plain_spaces(data: bytes, offset: int) -> bytes | None:
    """Return a text with the blanks of word processors as spaces; or correct the one sign at the offset."""
    text = data[offset:].decode(errors="surrogateescape")
    if text[:1] not in _SPACES:
        return _plain_sign(data, offset)
    plain = _TOKEN.sub(lambda found: " " if found[0] in _SPACES else found[0], text)
    return data[:offset] + plain.encode(errors="surrogateescape")


def _without_comments(data: bytes, offset: int) -> bytes | None:
    text = data.decode(errors="surrogateescape")
    at = len(data[:offset].decode(errors="surrogateescape"))
    following = foreign_text.without_comments(text, at)
    return None if following is None else following.encode(errors="surrogateescape")


_CORRECTIONS: dict[str, Callable[[bytes, int], bytes | None]] = {
    "trailing comma": _without_comma,
    "comment": _without_comments,
    "number": _without_zeros,
    "full-width punctuation": _plain_sign,
    "invisible character": _plain_spaces,
    "curly quotes": _plain_sign,
}
