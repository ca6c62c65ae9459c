"""A connection to a host: the child that leads there (ssh), what is sent to it, and what it prints."""

from __future__ import annotations

import math
import os
import selectors
import subprocess
import time
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from hccl_tools.remote.interruption import postponed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: The line that a program prints at the other end when it runs; output before it is the remote shell's own.
READY = b"hccl-tools: ready"
#: The greatest number of connections that are open, or being established, at a time.
MOST = 64
_CHUNK = 1 << 16


class Connection:
    """One host: the child that leads to it.

    A subclass overrides :meth:`received`. The child is not reaped at the end of its output: a launcher that
    watches its processes sees which have ended.

    Args:
        argv: The command line of the child.
        selector: Calls the ``data`` of its keys when the pipes are ready; see :func:`serve`.
        first: What is sent at once.
        then: What is sent after ``READY``; the standard input then stays open until :meth:`close_input`.
            None closes the standard input after ``first``.
        popen: Further arguments of Popen. If its stderr is a pipe, ``errors`` has the end of its text.
    """

    def __init__(
        self,
        argv: Sequence[str],
        selector: selectors.BaseSelector,
        first: bytes,
        *,
        then: bytes | None = None,
        **popen: Any,
    ) -> None:
        self._selector, self._unsent, self._then = selector, first, then
        self._before_ready = b""
        self.errors = b""
        self.is_ready, self.ended = False, False
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **popen)
        for pipe, mask, act in (
            (self.process.stdin, selectors.EVENT_WRITE, self._write),
            (self.process.stdout, selectors.EVENT_READ, self._read),
            (self.process.stderr, selectors.EVENT_READ, self._read_errors),
        ):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, mask, partial(act, pipe))

    def received(self, data: bytes) -> None:
        """Take output that follows ``READY``; ``data`` is empty at the end of the output."""

    def close_input(self) -> None:
        """Close the child's standard input, which ends the program at the other end."""
        pipe = self.process.stdin
        if pipe is not None and not pipe.closed:
            self._unregister(pipe)
            pipe.close()

    def close_output(self) -> None:
        """Read the rest of the errors, and close the pipes of a child that has ended."""
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is None or pipe.closed:
                continue
            if pipe is self.process.stderr:
                with suppress(BlockingIOError):  # another process may hold the pipe open
                    self._read_errors(pipe)
            self._unregister(pipe)
            pipe.close()

    def _write(self, pipe: IO[bytes]) -> None:
        if pipe.closed:  # by the callback of an earlier event
            return
        try:
            self._unsent = self._unsent[os.write(pipe.fileno(), self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent, self._then = b"", None
        if not self._unsent:
            self._unregister(pipe)
            if self._then is None:
                pipe.close()

    def _read(self, pipe: IO[bytes]) -> None:
        data = os.read(pipe.fileno(), _CHUNK)
        if not data:
            self._unregister(pipe)
            self.ended = True
        if self.is_ready:
            self.received(data)
            return
        _, mark, rest = (self._before_ready + data).partition(READY + b"\n")
        self._before_ready = (self._before_ready + data)[-_CHUNK:]
        if mark:
            self.is_ready = True
            self._send_then()
            if rest:
                self.received(rest)

    def _send_then(self) -> None:
        pipe = self.process.stdin
        if self._then and pipe is not None and not pipe.closed:
            self._unsent, self._then = self._then, b""  # of thousands of connections, few are open at a time
            self._selector.register(pipe, selectors.EVENT_WRITE, partial(self._write, pipe))

    def _read_errors(self, pipe: IO[bytes]) -> None:
        data = os.read(pipe.fileno(), _CHUNK)
        self.errors = (self.errors + data)[-_CHUNK:]
        if not data:
            self._unregister(pipe)

    def _unregister(self, pipe: IO[bytes]) -> None:
        if pipe in self._selector.get_map():
            self._selector.unregister(pipe)


def serve(
    opening: Iterator[Connection],
    opened: list[Connection],
    selector: selectors.BaseSelector,
    *,
    counts: Callable[[Connection], bool],
    until: float = math.inf,
) -> None:
    """Open connections and serve them until all have ended.

    Args:
        opening: Makes the connections.
        opened: Gets every connection that was made.
        selector: That of the connections.
        counts: Whether a connection counts for the limit of ``MOST`` connections. One that no longer counts
            never counts again.
        until: The end, as a time of ``time.monotonic``.
    """
    is_complete = False
    counted: list[Connection] = []
    left: list[Connection] = []  # Without the last ones that have ended.
    while time.monotonic() < until:
        counted = list(filter(counts, counted))
        while not is_complete and len(counted) < MOST:
            with postponed():
                one = next(opening, None)
                if one is None:
                    is_complete = True
                else:
                    opened.append(one)
                    left.append(one)
                    counted += filter(counts, [one])
        while left and left[-1].ended:
            left.pop()
        if is_complete and not left:
            return
        for key, _ in selector.select(None if until == math.inf else max(0.0, until - time.monotonic())):
            key.data()
