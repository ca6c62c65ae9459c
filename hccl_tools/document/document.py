"""The bytes of a file, the JSON value that HCCL reads from them, and the positions of its parts.

All offsets are in bytes of the file, including a byte order mark. Lines and columns start at 1; columns are
in characters.
"""

from __future__ import annotations

import codecs
import os
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hccl_tools.document.fast_parser import NESTING_LIMIT, UNCLEAN, parse_clean
from hccl_tools.document.reading import is_stream, read_file, shown_name
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType

    from hccl_tools.document.spans import Span
    from hccl_tools.document.strict_parser import DuplicateKey
    from hccl_tools.document.syntax_problem import JsonProblem

_NOT_BLANK = rb"[^ \t\n\r]"
_CONTINUATION = bytes(range(0x80, 0xC0))
_BLOCK = 4096


class Position(NamedTuple):
    """A line and a column, both from 1; columns are in characters."""

    line: int
    column: int


def _characters(part: bytes) -> int:
    """Return the number of characters that begin in a part of a UTF-8 text."""
    return len(part.translate(None, _CONTINUATION))


def _closer_look() -> ModuleType:
    """Load what reads the files that are not clean; every start of a job waits for its table, which is."""
    from hccl_tools.document import closer_look  # noqa: PLC0415  (3 ms; only where something is wrong)

    return closer_look


class Document:
    """The bytes of a file and the JSON value that HCCL reads from them.

    Attributes:
        name: The file name as the user typed it.
        value: The first JSON value; ``None`` if there is a ``problem``.
        problem: Why the file is not valid JSON.
        is_clean: Whether it is JSON without a duplicate key, and nothing follows it.
        duplicates: Keys that an object has more than once; HCCL uses the last value.
        duplicate_count: The number of such keys, including those that are not in ``duplicates``.
        trailing: The offset of text other than blanks after the value, else ``None``. HCCL ignores it in 1.x
            and group_list tables and refuses it in 2.0 tables, unless it begins with a NUL byte.
        path: The path of the file; ``None`` for a stream and for bytes.
        depth: The nesting depth of objects and lists if it is above ``NESTING_LIMIT``, else 0. In ``value``,
            objects and lists deeper than that limit are empty.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        self.path: str | None = None
        self.value: Any = None
        self.problem: JsonProblem | None = None
        self.is_clean = False
        self.duplicates: list[DuplicateKey] = []
        self.duplicate_count = 0
        self.trailing: int | None = None
        self.depth = 0
        self._last_line = (0, -1)
        self._line_ends = [0]

    @classmethod
    def read(cls, path: str | os.PathLike[str], limit: int | None = None) -> Document:
        """Read and parse a file; see ``parse``, and ``reading.read_file`` for the errors."""
        file = os.fspath(path)
        document = cls.parse(read_file(file), shown_name(file), limit)
        document.path = None if is_stream(file) else file
        return document

    @classmethod
    def parse(cls, data: bytes, name: str, limit: int | None = None) -> Document:
        """Parse JSON as HCCL does; a fault in ``data`` becomes the ``problem`` of the document.

        Args:
            limit: The number of duplicate keys to keep; ``None`` keeps all.
        """
        document = cls(name, data)
        value = parse_clean(data[document._body :] if document._body else data)
        if value is UNCLEAN:
            document._read_slowly(limit)
        else:
            document.value, document.is_clean = value, True
        return document

    @cached_property
    def _body(self) -> int:
        """The offset of the text, after a byte order mark if there is one."""
        return len(codecs.BOM_UTF8) if self.has_mark else 0

    @property
    def has_mark(self) -> bool:
        """Whether the file begins with a byte order mark."""
        return self.data.startswith(codecs.BOM_UTF8)

    @cached_property
    def _decoded(self) -> tuple[str, int | None]:
        """The text up to the first byte that is not UTF-8, and the offset of that byte."""
        try:
            return self.data[self._body :].decode(), None
        except UnicodeDecodeError as error:
            stop = self._body + error.start
            return self.data[self._body : stop].decode(), stop

    @property
    def text(self) -> str | None:
        """The text without a byte order mark; ``None`` if it is not UTF-8."""
        text, bad_byte = self._decoded
        return text if bad_byte is None else None

    def character_at(self, offset: int) -> int:
        """Return the index in ``text`` of a byte of the file."""
        return len(self.data[self._body : offset].decode(errors="replace"))

    def byte_at(self, index: int) -> int:
        """Return the offset in the file of a character of ``text``."""
        return self._byte_offsets([index])[index]

    def _read_slowly(self, limit: int | None) -> None:
        look = _closer_look()
        self.problem = look.encoding_problem.unreadable(self.data, self._body)
        if self.problem:
            return
        text, bad_byte = self._decoded
        reader = look.strict_parser.Reader(text, limit)
        try:
            self.value = reader.read()
        except look.syntax_problem.JsonError as error:
            index = error.problem.offset
            found = error.problem._replace(offset=self._byte_offsets([index])[index])
            if bad_byte is not None and found.kind in {"cut off", "empty file"}:
                found = look.encoding_problem.bad_byte_problem(self.data, bad_byte)
            self.problem = look.encoding_problem.not_text(self.data) or found
            return
        repeats, self.duplicate_count = reader.duplicates, reader.duplicate_count
        self.depth = reader.depth if reader.depth > NESTING_LIMIT else 0
        at = self._byte_offsets([reader.end, *(place for one in repeats for place in (one.first, one.last))])
        self.duplicates = [
            look.strict_parser.DuplicateKey(one.path, at[one.first], at[one.last]) for one in repeats
        ]
        trailing = re.compile(_NOT_BLANK).search(self.data, at[reader.end])
        self.trailing = trailing.start() if trailing else None

    @cached_property
    def _blocks(self) -> list[int] | None:
        """The number of characters before each block of bytes; ``None`` if all characters are ASCII."""
        if self.data.isascii():
            return None
        counts = [0]
        for start in range(0, len(self.data), _BLOCK):
            counts.append(counts[-1] + _characters(self.data[start : start + _BLOCK]))
        return counts

    def _characters_before(self, offset: int) -> int:
        if self._blocks is None:
            return offset
        block = offset // _BLOCK
        return self._blocks[block] + _characters(self.data[block * _BLOCK : offset])

    def _byte_offsets(self, indices: Iterable[int]) -> Mapping[int, int]:
        text = self._decoded[0]
        if text.isascii():
            return {index: self._body + index for index in indices}
        offsets, at, offset = {}, 0, self._body
        for index in sorted(set(indices)):
            offset += len(text[at:index].encode())
            offsets[index] = offset
            at = index
        return offsets

    def _line_ends_before(self, block: int) -> int:
        """Return the number of line ends before a block of bytes; the counts of earlier blocks are kept."""
        counts = self._line_ends
        for start in range((len(counts) - 1) * _BLOCK, block * _BLOCK, _BLOCK):
            counts.append(counts[-1] + self.data.count(b"\n", start, start + _BLOCK))
        return counts[block]

    def position(self, offset: int) -> Position:
        """Return line and column of a byte; the bytes around it may be invalid UTF-8."""
        block = offset // _BLOCK
        line = self._line_ends_before(block) + self.data.count(b"\n", block * _BLOCK, offset) + 1
        start = self._line(offset)[0] or self._body
        return Position(line, max(0, self._characters_before(offset) - self._characters_before(start)) + 1)

    def line_bounds(self, offset: int) -> tuple[int, int]:
        """Return the bounds of the line that contains a byte, without byte order mark and line end."""
        start, end = self._line(offset)
        start = start or self._body
        return start, end - 1 if end > start and self.data[end - 1 : end] == b"\r" else end

    def _line(self, offset: int) -> tuple[int, int]:
        """Return the bounds of the line that contains a byte; a line of megabytes may have many findings."""
        start, end = self._last_line
        if not start <= offset <= end:
            start, end = self.data.rfind(b"\n", 0, offset) + 1, self.data.find(b"\n", offset)
            end = end if end >= 0 else len(self.data)
            self._last_line = start, end
        return start, end

    def spans(self, paths: Iterable[tuple[str | int, ...]], *, whole: bool = True) -> list[Span]:
        """Return the spans of the values at many paths, in the order of ``paths``, in one pass over the text.

        Without ``whole``, the end of a long list or object may be missed; see ``find_spans``.

        A path without a value gets the span of its nearest ancestor. In a file that is not valid JSON, every
        path gets the position of the problem.
        """
        from hccl_tools.document import spans  # noqa: PLC0415  (0.5 ms; only for the place of a finding)

        if self.problem:
            return [spans.Span(self.problem.offset, self.problem.offset) for _ in paths]
        found: list[Span] = spans.find_spans(
            self._decoded[0], paths, unique=not self.duplicate_count, whole=whole
        )
        if not self._body and self._blocks is None:
            return found
        at = self._byte_offsets(index for span in found for index in span if index is not None)
        return [
            spans.Span(
                at[span.start],
                at[span.end],
                None if span.key_start is None else at[span.key_start],
                None if span.key_end is None else at[span.key_end],
            )
            for span in found
        ]
