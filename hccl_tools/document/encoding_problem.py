"""Problems of a whole file: it is empty, is not text, or is not encoded in UTF-8."""

from __future__ import annotations

import codecs
import re

from hccl_tools.document.syntax_problem import JsonProblem
from hccl_tools.notation.hint import FILES

#: Byte order marks of encodings other than UTF-8, with the names of the encodings.
WIDE = (
    (codecs.BOM_UTF32_LE, "UTF-32"), (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"),
)  # fmt: skip
_BINARY = {
    b"\x7fELF": "a program", b"\x1f\x8b": "compressed by gzip", b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "compressed by zstd", b"\xfd7zXZ": "compressed by xz", b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
}  # fmt: skip
#: The number of bytes that are examined to distinguish text from binary files.
_SAMPLE = 1024
#: A sign that sets the colors of a terminal, as `jq -C` and `grep --color` write it into text.
_COLOR = re.compile(rb"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_CONTROL = bytes(range(9)) + bytes(range(14, 32)) + b"\x7f"
#: What to do with a file that is not a table.
NOT_A_TABLE = (
    "specify the rank table, a JSON file that begins with {; "
    "`hccl-tools gen` writes the table of a host with NPUs"
)
_AGAIN = "copy the complete file again, or make the table with `hccl-tools gen`"
_AS_UTF8 = "save the file as UTF-8, for example: iconv -f {} -t UTF-8 " + FILES


def unreadable(data: bytes, body: int) -> JsonProblem | None:
    """Return why a file cannot have a JSON value, or ``None`` if its text has to be parsed.

    Args:
        body: The offset of the text, after the byte order mark.
    """
    if not data[body:].strip(b" \t\n\r"):
        what = "the file contains only blanks" if len(data) > body else "the file is empty"
        return JsonProblem("empty file", what, _AGAIN, body)
    for mark, name in WIDE:
        if data.startswith(mark):
            return _wide(name)
    if not data[:_SAMPLE].strip(b"\0"):
        message = "the file consists of zero bytes, for example after a full disk or a power failure"
        return JsonProblem("binary", message, _AGAIN, 0)
    return None


def not_text(data: bytes) -> JsonProblem | None:
    """Return the kind of a file that the reader refused, or ``None`` if it is text in UTF-8."""
    head = data[:_SAMPLE]
    if head[:1] == b"\0" or head[1:2] == b"\0":
        return _wide("UTF-16")
    for magic, what in _BINARY.items():
        if data.startswith(magic):
            return JsonProblem("binary", f"the file is not text: it is {what}", NOT_A_TABLE, 0)
    head = _COLOR.sub(b"", head)
    if head.lstrip(b" \t\n\r")[:1] not in b"{[" and len(head.translate(None, _CONTROL)) < 0.9 * len(head):
        return JsonProblem("binary", "the file is not text", NOT_A_TABLE, 0)
    return None


def _wide(name: str) -> JsonProblem:
    message = f"the file is {name} text, but HCCL reads only UTF-8"
    return JsonProblem("utf-16", message, _AS_UTF8.format(name), 0)


def bad_byte_problem(data: bytes, offset: int) -> JsonProblem:
    """Return the problem that the byte at ``offset`` is not UTF-8, with the likely encoding of the text."""
    hint = _AS_UTF8.format("GB18030") if reads_as_chinese(data, offset) else "save the file as UTF-8"
    return JsonProblem("bad utf-8", f"the byte 0x{data[offset]:02X} is not UTF-8", hint, offset)


def reads_as_chinese(data: bytes, offset: int) -> bool:
    """Whether the line with the first invalid byte is text in the encoding of Chinese Windows."""
    start = data.rfind(b"\n", 0, offset) + 1
    end = data.find(b"\n", offset)
    line = data[max(start, offset - _SAMPLE) : min(end if end >= 0 else len(data), offset + _SAMPLE)]
    try:
        return any("\u4e00" <= char <= "\u9fff" for char in line.decode("gb18030"))
    except UnicodeDecodeError:
        return False
