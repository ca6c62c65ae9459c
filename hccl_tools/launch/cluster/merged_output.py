"""The output of an engine that merges the output of all hosts. It is not trusted.

Agents send the output of ranks over their own connections; the launcher shows it unchanged. The source of
what the engine writes is unknown: the engine, the ssh that it starts, the login of a host, or a host that has
never joined. The launcher shows it as lines with the name of the engine, escaped and up to a limit. The
engine writes to pipes, which the launcher always reads at once. Otherwise the engine would block, and would
not notice the end of a host.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import time
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.shown_output import ShownOutput
from hccl_tools.launch.logs.bounded_log import BoundedLog, append
from hccl_tools.notation.named_lines import MOST_SAID, NamedLines
from hccl_tools.processes import run_files

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.processes.reactor import Reactor

_CHUNK = 1 << 16
#: Bytes at the end of what the engine writes that are shown, if something was left out.
_MOST_OF_END = 1 << 13
#: Seconds until new output is shown.
_PAUSE_SECONDS = 0.01
#: The writer of an engine's own lines, beside the numbers of servers.
_ENGINE = -1


class MergedOutput:
    """What one start of a job writes: the engine's log, and its errors if the engine keeps them apart."""

    def __init__(self, attempt: Attempt, plan: Plan) -> None:
        """Prepare the files and pipes, before the engine is started."""
        end = next(end for end in attempt.state.ends if end.process.rank >= 0)
        self._attempt = attempt
        self._log = run_files.open_append(end.log)
        self._ends_line, self._writer = True, _ENGINE
        self._text = _EngineText(end.process.name)
        self._pipes = [_Pipe(attempt.reactor, lambda data: self._write(_ENGINE, self._text.take(data)))]
        self._errors: BoundedLog | None = None
        if end.process.errors:
            path = os.path.join(plan.run_dir, end.process.errors)
            self._errors = BoundedLog(run_files.open_append(path))
            self._pipes.append(_Pipe(attempt.reactor, self._errors.write))
        attempt.pipes[end.process.rank] = (
            self._pipes[0].path,
            self._pipes[1].path if self._errors is not None else "",
        )
        self.shown = ShownOutput(plan, attempt.reactor, self._write)

    def read_all(self) -> None:
        """Read what has arrived."""
        for pipe in self._pipes:
            pipe.read_all()
        self.shown.read_all()

    def finish(self, *, without: Container[int]) -> None:
        """Read the rest, after the engine has ended, but not the output of lost servers."""
        self.shown.wait_for_rest(without)
        self.read_all()
        self._write(_ENGINE, self._text.end())
        self.close()

    def close(self) -> None:
        """Close the files, pipes and connections."""
        self.shown.close()
        for pipe in self._pipes:
            pipe.close()
        if self._log >= 0:
            os.close(self._log)
            if self._errors is not None:
                self._errors.close()
        self._pipes, self._log = [], -1

    def _write(self, writer: int, data: bytes) -> None:
        """Append data to the log; that of another writer begins a line."""
        if not data:
            return
        if not self._ends_line and writer != self._writer:
            data = b"\n" + data
        self._ends_line, self._writer = data.endswith(b"\n"), writer
        try:
            append(self._log, data)
        except OSError:
            return  # The disk is full; the launcher says so.
        followers = self._attempt.followers
        followers.next_look = min(followers.next_look, time.monotonic() + _PAUSE_SECONDS)


class _EngineText:
    """The engine's lines, and the end of those that were left out: it may say why the job has ended."""

    def __init__(self, name: str) -> None:
        self._name, self._lines, self._end = name, NamedLines(name, MOST_SAID - _MOST_OF_END), b""

    def take(self, data: bytes) -> bytes:
        if self._lines.is_cut:
            self._end = (self._end + data)[-_MOST_OF_END // 2 :]
            return b""
        return self._lines.take(data) if data else b""

    def end(self) -> bytes:
        if not self._end:
            return self._lines.take(b"")
        lines = NamedLines(self._name, _MOST_OF_END)
        whole = self._end.partition(b"\n")[2] or self._end
        return lines.take(b"its output ends with:\n" + whole) + lines.take(b"")


class _Pipe:
    """A pipe from the engine; ``take`` is called with what the engine has written."""

    def __init__(self, reactor: Reactor, take: Callable[[bytes], object]) -> None:
        self._reactor, self._take = reactor, take
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)
        self.path = f"/proc/{os.getpid()}/fd/{self._in}"
        reactor.on_readable(self._out, self._serve)

    def read_all(self) -> None:
        """Read what is in the pipe now: a process that is left may go on writing."""
        left = struct.unpack("i", fcntl.ioctl(self._out, termios.FIONREAD, b"\0\0\0\0"))[0]
        while left > 0 and (size := self._read()):
            left -= size

    def close(self) -> None:
        """Close both ends."""
        self._reactor.on_readable(self._out, None)
        os.close(self._out)
        os.close(self._in)

    def _serve(self) -> None:
        self._read()

    def _read(self) -> int:
        try:
            data = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return 0
        self._take(data)
        return len(data)
