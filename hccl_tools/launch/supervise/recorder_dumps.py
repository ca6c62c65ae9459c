"""Ask the ranks of this host for the dumps of their flight recorders, and find the files that they write.

A thread of the rank's Python writes the dump (``rank_site.hccl_tools_recorder``); of torch_npu soon after
that again with the stack frames of the calls, for which torch needs a second or two. torch_npu's own thread,
which reads a pipe, is asked where that one does not answer: the interpreter may be blocked.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.processes import linux, run_files, stack_dump, wait_state
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.processes.procfs import Status

#: Seconds for which a rank may write its stack before it is asked for the dump.
_STACK_SECONDS = 0.5
#: Seconds after which a rank that has not answered is asked again.
_AGAIN_SECONDS = 0.2
#: Seconds until the pipe of torch_npu is used; its thread looks at it once a second.
_PIPE_AFTER = 0.5
#: Seconds for the thread of a rank that is ending to answer, and for a dump to be written again with frames.
_ANSWER_SECONDS = _FRAMES_SECONDS = 2.0
#: Bytes of a file that may have a reason in place of a dump.
_LARGEST_PROBLEM = 1 << 12
#: The end of the last dump that a rank writes.
_FINAL = b'"is_final": true}'
_NO_HANDLER = "its Python was not started with `launch --flight-recorder`, or has ended"
_NO_ANSWER = "it has not written the dump in time: it is stopped, or inside compiled code"


class RecorderDumps:
    """The dumps of some ranks, while they are being written."""

    def __init__(
        self,
        run_dir: str,
        pids: Mapping[int, int],
        descendants: Callable[[], Sequence[Status]],
        restart: int,
        with_frames: bool,
    ) -> None:
        """Find the ranks that can be asked.

        ``pids`` has the process of each rank that runs, ``restart`` is the number of this start of the job.
        The dumps are complete without frames unless ``with_frames``.
        """
        self._with_frames = with_frames
        self._run_dir, self._began = run_dir, time.monotonic()
        self._names = {rank: names.generation(names.recorder_dump(rank), restart) for rank in pids}
        self._problems: dict[int, str] = {}
        self._before: dict[int, object] = {}
        self._targets: dict[int, int] = {}
        self._asked: dict[int, float] = {}
        self._piped: dict[int, object] = {}
        self._is_pipe_used = False
        processes = descendants() if pids else ()
        for rank, pid in pids.items():
            target = _handler(pid, processes)
            if not target:
                self._problems[rank] = _NO_HANDLER
                continue
            self._before[rank] = self._identity(self._names[rank])
            self._targets[rank] = target

    def ask(self, has_stack: Callable[[int], bool]) -> None:
        """Request the dumps of the ranks that have written their stack, again until they answer.

        faulthandler does nothing for a signal that arrives while it handles another one. A rank whose stack
        is late may not write one; it is asked as well.
        """
        now = time.monotonic()
        is_late = now > self._began + _STACK_SECONDS
        for rank, target in self._targets.items():
            is_due = now > self._asked.get(rank, 0.0) + _AGAIN_SECONDS
            if is_due and not self._has_written(rank) and (is_late or has_stack(rank)):
                self._asked[rank] = now
                with suppress(ProcessLookupError, PermissionError):
                    linux.signal_main_thread(target, stack_dump.RECORDER_SIGNAL)

    @property
    def is_complete(self) -> bool:
        """Whether all dumps have been written, or the last ones will not be."""
        missing = [rank for rank in self._before if not self._is_final(rank)]
        if missing and not self._is_pipe_used and time.monotonic() > self._began + _PIPE_AFTER:
            self._is_pipe_used = True
            for rank in missing:
                self._use_pipe(rank)
        if not missing or self._piped or time.monotonic() < self._began + _ANSWER_SECONDS:
            return not missing
        # On a loaded machine the thread needs longer; it does not answer if its process is ending.
        return not any(_catches(self._targets[rank]) for rank in missing)

    def finish(self) -> dict[int, tuple[str, str]]:
        """Return the name of the file of each rank, "" if it has none, and why."""
        found = {rank: ("", problem) for rank, problem in self._problems.items()}
        for rank in self._before:
            if not self._has_written(rank):
                found[rank] = ("", _NO_ANSWER)
            elif self._identity(self._names[rank]) == self._before[rank]:
                found[rank] = (names.pipe_dump(rank), "")
            else:
                problem = self._problem(self._names[rank])
                found[rank] = ("", problem) if problem else (self._names[rank], "")
        return found

    def _is_final(self, rank: int) -> bool:
        if not self._has_written(rank):
            return False
        if not self._with_frames or time.monotonic() > self._began + _FRAMES_SECONDS:
            return True
        is_of_pipe = self._identity(self._names[rank]) == self._before[rank]
        return is_of_pipe or self._ends(rank)

    def _ends(self, rank: int) -> bool:
        """Return whether a dump has its last key: no other one follows."""
        try:
            with open(run_files.open_read(os.path.join(self._run_dir, self._names[rank])), "rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - len(_FINAL)))
                return file.read() == _FINAL
        except OSError:
            return False

    def _has_written(self, rank: int) -> bool:
        if self._identity(self._names[rank]) != self._before[rank]:
            return True
        return rank in self._piped and self._identity(names.pipe_dump(rank)) != self._piped[rank]

    def _identity(self, name: str) -> object:
        about = run_files.status(os.path.join(self._run_dir, name))
        return about and (about.st_ino, about.st_mtime_ns, about.st_size)

    def _use_pipe(self, rank: int) -> None:
        """Ask torch_npu's own thread, if it has made its pipe."""
        with suppress(OSError):
            with run_files.opened(self._run_dir) as folder:
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
                pipe = os.open(f"{names.pipe_dump(rank)}.pipe", flags, dir_fd=folder.descriptor)
            try:
                before = self._identity(names.pipe_dump(rank))
                os.write(pipe, b"1")
                self._piped[rank] = before
            finally:
                os.close(pipe)

    def _problem(self, name: str) -> str:
        """Return why a rank has no dump, as its thread has written it; "" if it has one."""
        try:
            with run_files.opened(self._run_dir) as folder:
                data = folder.read(name, _LARGEST_PROBLEM + 1)
                if len(data) > _LARGEST_PROBLEM or not data.startswith(b'{"problem"'):
                    return ""
                folder.unlink(name)
            return str(json.loads(data)["problem"])
        except (OSError, ValueError, KeyError):
            return ""


def _handler(pid: int, processes: Sequence[Status]) -> int:
    """Return the process of a rank that handles the signal, its own or the first one below it; 0: none."""
    family = {pid}
    for one in processes:  # Parents come first.
        if one.pid in family or one.parent in family:
            family.add(one.pid)
    ordered = [pid, *(one.pid for one in processes if one.pid in family and one.pid != pid)]
    return next((one for one in ordered if _catches(one)), 0)


def _catches(pid: int) -> bool:
    return wait_state.catches(pid, stack_dump.RECORDER_SIGNAL)
