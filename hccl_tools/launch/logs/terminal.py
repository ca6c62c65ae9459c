"""Write to the terminal, a pipe or a file without ever waiting for its reader.

A terminal under Ctrl-S or a slow reader must not delay the launcher: data that the reader does not accept at
once is queued here, and the launcher reads more of the logs only when the queue is empty.
"""

from __future__ import annotations

import errno
import os
import select
import stat

from hccl_tools.notation.printable import escaped
from hccl_tools.notation.screen import Pen, cut, width, wrapped

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The maximum size of one write() to a descriptor that stays blocking: POSIX's PIPE_BUF on Linux.
_SAFE = 4096
#: Before each line of a log that a message quotes.
_QUOTED = "    | "
_ERASE = b"\r\x1b[K"


class Stream:
    """One of the launcher's standard outputs.

    Attributes:
        is_live: Whether incomplete lines are of use there.
    """

    def __init__(self, descriptor: int) -> None:
        self.is_terminal = self.is_live = os.isatty(descriptor)
        self.closed = False
        self.midline = False
        self._waiting = bytearray()
        self._status = b""
        self._full = False
        self._descriptor, self._may_block = _open_without_waiting(descriptor)
        self.takes_files = not self.is_terminal and not self._may_block
        self._owned = self._descriptor != descriptor

    @property
    def waiting(self) -> bool:
        """Whether data is queued."""
        return self._full or bool(self._waiting)

    def fileno(self) -> int:
        """Return the descriptor, to poll for POLLOUT while ``waiting``."""
        return self._descriptor

    def send(self, data: bytes) -> None:
        """Queue data and write what the reader accepts now."""
        if not data or self.closed:
            return
        if self._status and not self.midline:
            data = _ERASE + data
        self.midline = not data.endswith(b"\n")
        self._waiting += data if self.midline else data + self._status
        self.pump()

    def send_file(self, source: int, offset: int, count: int) -> int:
        """Copy part of a file with sendfile(), as many bytes as the stream accepts now; return their number.

        Return -1 and set ``takes_files`` to false if the kernel does not support sendfile() here.
        """
        try:
            done = os.sendfile(self._descriptor, source, offset, count)
        except BlockingIOError:
            done = 0
        except OSError as error:
            # A file that was opened to append, or a kind of file that sendfile() does not support.
            self.takes_files = False
            self.closed = error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
            return 0 if self.closed else -1
        self._full = done < count
        self.midline = done > 0 and os.pread(source, 1, offset + done - 1) != b"\n"
        return done

    def say(self, text: str) -> None:
        """Write the launcher's own lines, starting on a new line."""
        start = b"\n" if self.midline else b""
        self.send(start + text.encode(errors="surrogateescape") + b"\n")

    def show_status(self, text: str) -> None:
        """Show one line below all other output, "" to remove the line; for terminals only."""
        before, self._status = self._status, text.encode()
        if before != self._status and not self.midline and not self._waiting:
            self._waiting += _ERASE + self._status
            self.pump()

    def pump(self) -> None:
        """Write as much of the queued data as the reader accepts now."""
        self._full = False
        if self.closed:
            self._waiting.clear()
        while self._waiting:
            if self._may_block and not _takes(self._descriptor):
                return
            size = _SAFE if self._may_block else 1 << 18
            try:
                done = os.write(self._descriptor, self._waiting[:size])
            except BlockingIOError:
                return
            except OSError:
                self.closed = True  # The reader has exited (`| head`), or the disk is full.
                self._waiting.clear()
                return
            del self._waiting[:done]

    def close(self) -> None:
        """Close the descriptor; queued data is dropped."""
        if self._owned:
            os.close(self._descriptor)
        self.closed = True


def _open_without_waiting(descriptor: int) -> tuple[int, bool]:
    """Reopen the file of a descriptor as non-blocking; also return whether writing may block.

    O_NONBLOCK on the descriptor itself would affect every process that shares it, such as the user's shell.
    """
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return descriptor, False
    if stat.S_ISREG(mode):
        return descriptor, False
    if os.isatty(descriptor) or stat.S_ISFIFO(mode):
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            return os.open(f"/proc/self/fd/{descriptor}", flags), False
        except OSError:
            return descriptor, True
    return descriptor, stat.S_ISSOCK(mode)


def _takes(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    return bool(poller.poll(0))


class Console:
    """The streams for the ranks' lines (``out``, stdout) and the launcher's (``err``, stderr).

    Both are the same stream if they lead to the same file, so that no line of one splits a line of the other.
    """

    def __init__(
        self,
        *,
        color: bool | None = None,
        progress: bool | None = None,
        out: int = 1,
        err: int = 2,
        instead: Stream | None = None,
    ) -> None:
        """Prepare both streams.

        Args:
            color: Whether to colour; ``None``: in the foreground of a terminal, without NO_COLOR.
            progress: Whether to show a progress line; ``None``: in the foreground of a terminal.
            instead: A stream that replaces both.
        """
        self.out = instead or Stream(out)
        self.err = self.out if instead or _same_place(out, err) else Stream(err)
        plain = os.environ.get("TERM", "dumb") == "dumb"
        front = _in_foreground(out if self.out.is_terminal else err)
        if color is None:
            color = self.out.is_terminal and front and not plain and not os.environ.get("NO_COLOR")
        if progress is None:
            progress = self.err.is_terminal and front and not plain
        self.color, self.progress = color, progress
        #: Colours the launcher's own lines.
        self.pen = Pen(color and self.err.is_terminal)
        self._columns = width(err)

    @property
    def streams(self) -> list[Stream]:
        """Return the streams, each once."""
        return [self.out] if self.err is self.out else [self.out, self.err]

    @property
    def waiting(self) -> bool:
        """Whether data is queued on either stream."""
        return any(stream.waiting for stream in self.streams)

    def say(self, text: str, style: str | None = None) -> None:
        """Write a message of the launcher; its lines after the first are indented.

        Long lines are broken between words on a terminal, and lines of a log are cut there.

        Args:
            style: The style of the first line on a terminal with colours.
        """
        first, *rest = [escaped(line, keep="\t") for line in text.split("\n") if line]
        indent = "" if all(line.startswith("  ") for line in rest) else "  "
        head, *below = wrapped(f"hccl-tools: {first}", self._columns)
        head = "\n".join([head, *below])
        self.err.say("\n".join([self.pen(style, head) if style else head, *self._fitted(rest, indent)]))

    def _fitted(self, lines: Sequence[str], indent: str) -> Iterator[str]:
        """Yield lines below the first; of quoted lines only the last one of several is not cut."""
        for place, line in enumerate(lines):
            is_quoted = line.startswith(_QUOTED)
            if is_quoted and place + 1 < len(lines) and lines[place + 1].startswith(_QUOTED):
                yield cut(indent + line.expandtabs(), self._columns)
            elif is_quoted:
                mark = len(indent + _QUOTED)
                text = wrapped(indent + " " * len(_QUOTED) + line[len(_QUOTED) :], self._columns)
                yield from (f"{indent}{_QUOTED}{part[mark:]}" for part in text)
            else:
                yield from wrapped(indent + line, self._columns)

    def wait(self, interrupt: int, seconds: float | None = None) -> None:
        """Wait until a reader accepts more, ``interrupt`` (-1 for none) is readable or the time is up."""
        poller = select.poll()
        if interrupt >= 0:
            poller.register(interrupt, select.POLLIN)
        for stream in self.streams:
            if stream.waiting:
                poller.register(stream.fileno(), select.POLLOUT)
        ready = {descriptor for descriptor, _ in poller.poll(None if seconds is None else seconds * 1000)}
        for stream in self.streams:
            if stream.fileno() in ready:
                stream.pump()

    def drop(self) -> None:
        """Stop writing to streams with queued data."""
        for stream in self.streams:
            stream.closed = stream.closed or stream.waiting
            stream.pump()

    def abandon(self) -> None:
        """Stop writing to either stream."""
        for stream in self.streams:
            stream.closed = True
            stream.pump()

    def close(self) -> None:
        """Close the descriptors."""
        for stream in self.streams:
            stream.close()


def _same_place(one: int, other: int) -> bool:
    try:
        first, second = os.fstat(one), os.fstat(other)
    except OSError:
        return False
    return (first.st_dev, first.st_ino, first.st_rdev) == (second.st_dev, second.st_ino, second.st_rdev)


def _in_foreground(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
