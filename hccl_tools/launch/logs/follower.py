"""Follow the ranks' logs on the terminal: in whole lines, each exactly once.

The ranks write to their files themselves and never wait for the launcher: the file is the buffer. The
launcher reads on only when the terminal has accepted the previous data, so a slow terminal costs no memory.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Literal

from hccl_tools.processes import run_files, sparse_files
from hccl_tools.processes.limits import FileLimit, file_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.logs.terminal import Stream

Style = Literal["auto", "prefix", "plain"]

_CHUNK = 1 << 17
#: Bytes of a log that are copied at once: other events are handled in between.
_MOST_COPIED = 1 << 24
#: A line longer than this is broken when several ranks share the terminal.
_LONGEST_LINE = 1 << 20
#: Seconds between two reads of a file that does not grow: at first, and after doubling.
_FIRST_PAUSE_SECONDS = 0.01
_LAST_PAUSE_SECONDS = 0.2
#: Seconds between two states of a redrawn line that are shown: on a terminal, elsewhere.
_REDRAWN_SECONDS = (1.0, 10.0)
_COLORS = (36, 33, 32, 35, 34, 31)


class Follower:
    """One log, and the offset up to which it has been shown; ``prefix`` is put before each line."""

    def __init__(
        self,
        path: str,
        prefix: bytes = b"",
        *,
        live: bool = False,
        offset: int = 0,
        hidden: tuple[bytes, ...] = (),
    ) -> None:
        self.path = path
        self.hidden = hidden
        self.prefix = prefix
        self.live = live
        self.redrawn_every = _REDRAWN_SECONDS[0 if live else 1]
        self._descriptor = run_files.open_read(path)
        self._offset = offset
        self._shown_at = time.monotonic()
        #: Whether all processes that write to the log have exited.
        self.finished = False

    def read(self, *, last: bool = False) -> bytes:
        """Return the data that can be shown now, possibly ""; ``last`` includes an incomplete line."""
        data = self._peek(_CHUNK)
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) == _CHUNK:
            data = self._peek(_LONGEST_LINE)
            cut = data.rfind(b"\n") + 1 or (len(data) if len(data) == _LONGEST_LINE or not self.prefix else 0)
        if not cut and (last or (self.live and not self.prefix)):
            cut = len(data)
        if not cut:
            return self._redrawn(data)
        self._offset += cut
        self._shown_at = time.monotonic()
        data = data[:cut]
        if any(beginning in data for beginning in self.hidden):
            data = b"".join(line for line in data.splitlines(True) if not line.startswith(self.hidden))
        return self._prefixed(data) if self.prefix and data else data

    def show(self, stream: Stream) -> int:
        """Show new data, and copy large amounts without reading them; return the number of bytes."""
        size = self._skip_hole() - self._offset
        if self.prefix or self.hidden or size < _CHUNK or not stream.takes_files:
            before = self._offset
            stream.send(self.read(last=self.finished))
            return self._offset - before
        size = min(size, _MOST_COPIED)
        end = os.pread(self._descriptor, _CHUNK, self._offset + size - _CHUNK)
        cut = end.rfind(b"\n") + 1
        done = stream.send_file(self._descriptor, self._offset, size - (_CHUNK - cut if cut else 0))
        if done < 0:
            return self.show(stream)
        self._offset += done
        return done

    def fileno(self) -> int:
        """Return the log's descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Close the log."""
        os.close(self._descriptor)

    def _skip_hole(self) -> int:
        """Go on after the hole of a sparse file, which can be huge; return where the data ends."""
        end = os.fstat(self._descriptor).st_size
        self._offset, end = next(sparse_files.extents(self._descriptor, self._offset, end), (end, end))
        return end

    def _peek(self, size: int) -> bytes:
        data = os.pread(self._descriptor, size, self._offset)
        if data.startswith(b"\0") and not data.strip(b"\0"):
            self._skip_hole()
            data = os.pread(self._descriptor, size, self._offset)
        if not data and os.fstat(self._descriptor).st_size < self._offset:
            self._offset = 0  # The file was emptied (`> rank_0.log`) to make room.
        return data

    def _redrawn(self, data: bytes) -> bytes:
        """Return the last state of a progress bar whose line is incomplete, if it is time to show it."""
        cut = data.rstrip(b"\r").rfind(b"\r") + 1 if self.prefix else 0
        if not cut or time.monotonic() - self._shown_at < self.redrawn_every:
            return b""
        self._offset += cut
        self._shown_at = time.monotonic()
        return self._prefixed(data[:cut])

    def _prefixed(self, data: bytes) -> bytes:
        body = data.removesuffix(b"\n")
        if b"\r" in body:
            # Only the last state of a redrawn line is shown.
            body = b"\n".join(line.rstrip(b"\r").rpartition(b"\r")[2] for line in body.split(b"\n"))
        return self.prefix + body.replace(b"\n", b"\n" + self.prefix) + b"\n"


class Followers:
    """The followed logs of a job and the stream they are shown on."""

    def __init__(
        self,
        stream: Stream,
        *,
        style: Style = "auto",
        several: bool,
        color: bool = False,
        hidden: tuple[bytes, ...] = (),
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """Start without logs; lines that begin with one of ``hidden`` are omitted.

        With the style ``auto`` lines get a prefix if there are several logs. ``notify`` is called with the
        reason if a log cannot be shown.
        """
        self._stream = stream
        self._prefixed = style == "prefix" or (style == "auto" and several)
        self._alone = not several
        self._color = color
        self._hidden, self._notify = hidden, notify
        self._limit = FileLimit()
        self._followers: list[Follower] = []
        self._ranks: set[int] = set()
        self._interval = _FIRST_PAUSE_SECONDS
        self.next_look = float("inf")

    def follow(self, path: str, rank: int) -> None:
        """Start to show an existing log."""
        prefix = b""
        if self._prefixed:
            prefix = f"[rank {rank}] ".encode()
            if self._color:
                prefix = b"\x1b[%dm%s\x1b[0m" % (_COLORS[rank % len(_COLORS)], prefix)
        live = self._stream.is_live and (self._alone or self._prefixed)
        try:
            follower = Follower(path, prefix, live=live, hidden=self._hidden)
        except OSError as error:  # The rank has replaced its log at once.
            if self._notify is not None:
                self._notify(f"rank {rank} is not shown: its log {path}: {run_files.reason(error)}")
            return
        if not self._limit.allows(follower.fileno()):
            follower.close()
            self._notify_of_limit(path)
            return
        self._followers.append(follower)
        self._ranks.add(rank)
        self.next_look = time.monotonic()

    def _notify_of_limit(self, path: str) -> None:
        if self._notify is not None:
            self._notify(
                f"only {len(self._followers)} ranks are shown here, because no more files may be open"
                f" (`ulimit -n` is {file_limit()}); all logs are in {os.path.dirname(path)}"
            )
            self._notify = None

    @property
    def only_rank(self) -> int | None:
        """The rank whose log is the only one that is shown; ``None`` with several."""
        return next(iter(self._ranks)) if len(self._ranks) == 1 else None

    def finish(self) -> None:
        """Mark all logs as complete: incomplete lines are shown as well."""
        for follower in self._followers:
            follower.finished = True

    def show(self) -> bool:
        """Show new data as far as the stream accepts it; return false when nothing is left for now."""
        shown = most = 0
        for follower in [*self._followers]:
            if self._stream.waiting or self._stream.closed:
                break
            size = follower.show(self._stream)
            shown, most = shown + size, max(most, size)
            if follower.finished and not size and not self._stream.waiting:
                self._followers.remove(follower)
                follower.close()
        # Fairness: when the stream accepts no more data, the other logs come first next time.
        self._followers.append(self._followers.pop(0)) if self._followers else None
        self._interval = _FIRST_PAUSE_SECONDS if shown else min(2 * self._interval, _LAST_PAUSE_SECONDS)
        # After a full chunk, more data is available; otherwise a short pause leads to fewer, larger reads.
        self.next_look = time.monotonic() + (0 if most > _CHUNK // 2 else self._interval)
        if self._stream.waiting or not self._followers:
            self.next_look = float("inf")
        return bool(shown or self._stream.waiting) and not self._stream.closed

    def close(self) -> None:
        """Close the logs."""
        for follower in self._followers:
            follower.close()
        self._followers.clear()
        self.next_look = float("inf")
