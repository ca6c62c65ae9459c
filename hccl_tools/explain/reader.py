"""Read logs as a stream of blocks of whole lines, in bounded memory, whatever they contain."""

from __future__ import annotations

import os
import sys
import zlib
from collections import deque
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from hccl_tools.processes import run_files, sparse_files
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import IO

#: Bytes that are searched at once: they fit into the processor's cache.
_BLOCK = 1 << 19
#: Bytes that are read at once from the end of a log.
_END = 1 << 16
#: Bytes of a line that are read; what follows up to its end is left out.
LONGEST_LINE = 1 << 16
_GZIP = b"\x1f\x8b"
#: Bytes to which a compressed log is unpacked.
MOST_UNPACKED = 256 << 20
#: Bytes to which all compressed logs are unpacked, and further ones for each of their bytes: logs of text
#: unpack to 10 to 30 times their size.
_MOST_IN_ALL, MOST_PER_BYTE = 1 << 28, 30
_TOO_MUCH = (
    "was not unpacked to its end: the compressed logs unpack to more than {} MiB"
    f" and {MOST_PER_BYTE} times their size"
)
#: Bytes of a compressed log that are unpacked at once; zlib copies what follows a member.
_PACKED = 1 << 16
#: Members of a compressed log that are read: bgzip makes one for each 64 KiB.
_MOST_MEMBERS = 1 << 14
#: zlib's number for "gzip with its header".
_GZIP_WINDOW = 31
STDIN = "-"


class Block(NamedTuple):
    """Whole lines of a log; ``line`` is the number of the first one."""

    data: bytes
    line: int


class Part(NamedTuple):
    """A part of a log: the lines that begin at a byte from ``begin`` to before ``end``."""

    begin: int
    end: int


class Extent(NamedTuple):
    """What was read of a log: its bytes, and the number of its line breaks."""

    size: int
    breaks: int


class LogReader:
    """Reads one log, or a part of it; ``note`` has at most one sentence on what was not read."""

    def __init__(self, path: str, part: Part | None = None) -> None:
        self.path = path
        self.note = ""
        self.size = 0
        self._part = part
        self._is_minor = True

    def blocks(self) -> Iterator[Block]:
        """Yield the log in blocks; a file that grows is read up to its size at the beginning."""
        try:
            yield from self._lines(self._pieces() if self._part is None else self._pieces_of(self._part))
        except OSError as error:
            self._say(f"cannot be read: {run_files.reason(error)}")
        except EOFError as error:
            self._say(f"cannot be read: {error}")
        except zlib.error:
            self._say("is damaged: its compressed data ends or is wrong; what comes before was read")

    def _say(self, what: str, *, is_minor: bool = False) -> None:
        """Note what was not read; where the log was not read to its end, that says more than a minor note."""
        if not self.note or (self._is_minor and not is_minor):
            self.note, self._is_minor = f"{self.path} {what}", is_minor

    def _pieces(self) -> Iterator[bytes]:
        if self.path == STDIN:
            while piece := os.read(sys.stdin.fileno(), _BLOCK):
                self.size += len(piece)
                yield piece
            return
        descriptor = run_files.open_read(self.path)
        with open(descriptor, "rb", buffering=0) as file:
            self.size = left = os.fstat(descriptor).st_size
            packed = file.read(2) == _GZIP
            file.seek(0)
            if packed:
                yield from self._unpacked(_pieces(file, left, _PACKED), MOST_PER_BYTE * _on_disk(descriptor))
            else:
                yield from self._data(file, 0, left)
            if os.fstat(descriptor).st_size > self.size:
                self._say(f"is still growing: its first {self.size:,} bytes were read")

    def _pieces_of(self, part: Part) -> Iterator[bytes]:
        """Yield the lines that begin in a part; the line at its beginning belongs to the part before."""
        self.size = part.end - part.begin
        with open(run_files.open_read(self.path), "rb", buffering=0) as file:
            file.seek(max(0, part.begin - 1))
            is_inside = part.begin == 0
            for piece in self._data(file, max(0, part.begin - 1), part.end):
                if is_inside:
                    yield piece
                elif (end := piece.find(b"\n") + 1) > 0:
                    is_inside = True
                    yield piece[end:]
            if not is_inside:
                return
            file.seek(part.end - 1)
            rest = file.read(1 + LONGEST_LINE)
            if not rest.startswith(b"\n"):
                yield rest[1 : rest.find(b"\n") + 1 or None]

    def _data(self, file: IO[bytes], begin: int, end: int) -> Iterator[bytes]:
        """Yield a part of a file without its holes."""
        for at, hole in sparse_files.extents(file.fileno(), begin, end):
            if (at, hole) != (begin, end):
                self._say("is a sparse file: its holes were left out", is_minor=True)
            file.seek(at)
            yield from _pieces(file, hole - at, _BLOCK)

    def _unpacked(self, pieces: Iterable[bytes], plausible: int) -> Iterator[bytes]:
        """Unpack one or more archives: a small file may hold gigabytes.

        ``plausible`` bytes do not count for the limit of all logs.
        """
        members, left = 1, MOST_UNPACKED
        if not _spend(-plausible):
            self._say(_TOO_MUCH.format(_MOST_IN_ALL >> 20))
            return
        unpack = zlib.decompressobj(_GZIP_WINDOW)
        for packed in pieces:
            rest = packed
            while rest:
                if unpack.eof:
                    members += 1
                    if members > _MOST_MEMBERS:
                        self._say(f"has more than {_MOST_MEMBERS:,} compressed parts: only these were read")
                        return
                    unpack = zlib.decompressobj(_GZIP_WINDOW)
                piece = unpack.decompress(rest, _BLOCK)
                rest = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
                yield piece[:left]
                left -= len(piece)
                if not _spend(len(piece)):
                    self._say(_TOO_MUCH.format(_MOST_IN_ALL >> 20))
                    return
                if left <= 0:
                    self._say(f"unpacks to more than {MOST_UNPACKED >> 20} MiB: only these were read")
                    return
        if not unpack.eof:
            self._say("is damaged: its compressed data ends too early; what comes before was read")

    def _lines(self, pieces: Iterator[bytes]) -> Iterator[Block]:
        """Join pieces to blocks of whole lines; a line that is too long is cut."""
        rest, number, is_cut = b"", 1, False
        for piece in pieces:
            if is_cut:
                end = piece.find(b"\n")
                if end < 0:
                    continue
                piece, is_cut = piece[end:], False  # noqa: PLW2901  (the newline ends the cut line)
            if rest:
                piece = rest + piece  # noqa: PLW2901
            if b"\0" in piece:
                self._say("contains binary data, which was read as text", is_minor=True)
            end = piece.rfind(b"\n") + 1
            if len(piece) - end > LONGEST_LINE:
                self._say(
                    f"has a line of more than {LONGEST_LINE:,} bytes, which was cut there", is_minor=True
                )
                is_cut, piece = True, piece[: end + LONGEST_LINE]  # noqa: PLW2901
                yield Block(piece, number)
                number, rest = number + piece.count(b"\n"), b""
                continue
            if end:
                yield Block(piece[:end], number)
                number += piece.count(b"\n", 0, end)
            rest = piece[end:]
        if rest:
            yield Block(rest, number)


def from_end(path: str, extent: Extent | None, most: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each line from the last one on, of about the last ``most`` bytes.

    A log that cannot be read has none. Without its extent, and if it is compressed, all of it is read.
    """
    if extent is None or is_packed(path):
        for block in reversed(deque(LogReader(path).blocks(), maxlen=-(-most // _BLOCK))):
            lines = block.data.split(b"\n")
            yield from zip(range(block.line + len(lines) - 1, 0, -1), reversed(lines), strict=False)
        return
    try:
        with open(run_files.open_read(path), "rb", buffering=0) as file:
            yield from _lines_from_end(file, extent, most)
    except OSError:
        return


def _lines_from_end(file: IO[bytes], extent: Extent, most: int) -> Iterator[tuple[int, bytes]]:
    number, left, rest = extent.breaks + 1, extent.size, b""
    while left > max(0, extent.size - most):
        begin = max(0, left - _END)
        file.seek(begin)
        *lines, rest = reversed((file.read(left - begin) + rest).split(b"\n"))
        for line in lines:
            yield number, line
            number -= 1
        left, rest = begin, rest[:LONGEST_LINE]  # The line may begin before this piece.
    if left == 0:
        yield number, rest


def _on_disk(descriptor: int) -> int:
    about = os.fstat(descriptor)
    return min(about.st_size, about.st_blocks * 512)


class _Counter:
    """The counter of a process that reads all logs itself; it has what a shared one has."""

    value = _MOST_IN_ALL

    def get_lock(self) -> AbstractContextManager[object]:
        return nullcontext()


#: The bytes that may still be unpacked. The processes that read logs share a number in its place.
_all: Any = _Counter()


def begin_unpacking(shared: Any = None) -> None:
    """Count the bytes of all compressed logs from 0 on, in the ``value`` of ``shared`` if given."""
    global _all  # noqa: PLW0603  (of this process and those that it forks)
    _all = shared or _Counter()
    _all.value = _MOST_IN_ALL


def _spend(count: int) -> bool:
    """Count unpacked bytes, and return whether there are any left."""
    with _all.get_lock():
        _all.value -= count
        return bool(_all.value > 0)


def spend(unpacked: int, descriptor: int) -> bool:
    """Count the unpacked bytes of an open file that is compressed, and return whether there are any left."""
    return _spend(unpacked - MOST_PER_BYTE * _on_disk(descriptor))


def is_packed(path: str) -> bool:
    """Return whether a log is compressed; False if it cannot be read."""
    try:
        with open(run_files.open_read(path), "rb", buffering=0) as file:
            return file.read(2) == _GZIP
    except OSError:
        return False


def _pieces(file: IO[bytes], left: int, size: int) -> Iterator[bytes]:
    """Yield the next ``left`` bytes of a file, or those up to its end, in pieces of ``size`` bytes."""
    while left > 0 and (piece := file.read(min(size, left))):
        left -= len(piece)
        yield piece
