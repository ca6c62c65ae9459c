"""The keeper: a small process between the launcher and the ranks, the only one that starts and ends them.

The launcher starts the keeper first. The keeper is the parent of every rank and a subreaper: processes that
the ranks leave behind become its children. It reads a pipe from the launcher: at the end of file,
which every kind of exit causes, it kills every descendant. The kernel kills each rank if the keeper exits.
Between launcher and keeper is the watcher, which kills the processes that a killed keeper leaves. This module
is the launcher's side.
"""

from __future__ import annotations

import marshal
import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.processes import keeper_protocol, linux, procfs, run_files
from hccl_tools.processes.limits import why_not_started
from hccl_tools.processes.reactor import wait_readable
from hccl_tools.version import IMPORT_ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.processes.keeper_protocol import Event, Task

#: Seconds between two checks of a watcher that is about to exit.
_INTERVAL = 0.0002


class Keeper:
    """The launcher's handle on its keeper, the process that starts, signals and reaps the ranks.

    ``watcher`` is the parent of the keeper, which the launcher has started, and ``begun`` its start time in
    /proc. ``pid`` is the keeper's process id once the keeper is ready, the watcher's until then.
    """

    def __init__(self, pid: int, commands: int, events: int) -> None:
        self.pid = self.watcher = pid
        self._commands = commands
        self._reader = keeper_protocol.EventReader(events)
        self.begun = getattr(procfs.status(pid), "start", 0)

    @property
    def has_ended(self) -> bool:
        """Whether the keeper has ended."""
        return self._reader.ended

    @property
    def failure(self) -> str:
        """The traceback of a failed keeper, "" if the keeper was killed or is running."""
        return self._reader.failure

    def fileno(self) -> int:
        """Return a descriptor that is readable when there are events."""
        return self._reader.descriptor

    def events(self) -> list[Event]:
        """Return the events since the last call, in order of time; does not block."""
        events = self._reader.read()
        if events and events[0].kind == keeper_protocol.READY:
            self.pid = events.pop(0).pid
        return events

    def start_tasks(
        self, tasks: Sequence[Task], environment: Mapping[str, str], directory: str, stdin: int = -1
    ) -> None:
        """Start processes in the given order; each gets ``environment`` and the variables of its task.

        ``stdin`` is the index of the task that reads the launcher's stdin; other tasks read /dev/null. The
        keeper opens the directories of the logs that this process holds, and no others in their place.
        """
        folders = {
            os.path.dirname(task.log): None for task in tasks if task.log != os.devnull and not task.pipes
        }
        held = [run_files.identity_of(folder) for folder in folders]
        body = ([tuple(task) for task in tasks], dict(environment), directory, stdin, held)
        self._send(keeper_protocol.START, marshal.dumps(body))

    def signal(self, number: int, to: int = keeper_protocol.EVERYONE) -> None:
        """Send a signal to all processes, to the ranks' own processes, or to one process by index."""
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGCONT)  # A stopped keeper would not read the command.
        self._send(keeper_protocol.SIGNAL, keeper_protocol.SIGNAL_BODY.pack(number, to))

    def descendants(self) -> list[procfs.Status]:
        """Return the living processes of the job."""
        return procfs.descendants(self.pid)

    def close(self, wait: float = 1.0) -> None:
        """End the keeper, which first kills all descendants; wait at most ``wait`` seconds."""
        os.close(self._commands)
        _started.remove(self)
        deadline = time.monotonic() + wait
        self.wait_gone(wait)
        with suppress(ChildProcessError):  # The watcher was reaped with the orphans.
            while not os.waitpid(self.watcher, os.WNOHANG)[0] and time.monotonic() < deadline:
                time.sleep(_INTERVAL)
        os.close(self.fileno())

    def wait_gone(self, wait: float) -> None:
        """Wait until the keeper has exited, at most ``wait`` seconds; discard its last events."""
        deadline = time.monotonic() + wait
        while not self.has_ended and (left := deadline - time.monotonic()) > 0:
            wait_readable(left, self)
            self.events()

    def _send(self, kind: int, body: bytes) -> None:
        try:
            keeper_protocol.send_command(self._commands, kind, body)
        except BrokenPipeError:
            return  # The end of file on the event pipe shows that the keeper has ended.


_started: list[Keeper] = []


def start(*, subreaper: bool = True) -> Keeper:
    """Start the keeper.

    It runs in a new interpreter: starting a rank takes a third less time than with the
    fallback, a fork, which copies the memory of its parent. ``subreaper`` also makes the caller a subreaper,
    to end the job if the keeper is killed; a library call must not change a user's process in this way.

    Raises:
        LaunchError: The keeper process cannot be started.
    """
    if subreaper:
        linux.become_subreaper()
    launcher = os.getpid()
    commands, to_keeper = os.pipe()
    from_keeper, events = os.pipe()
    try:
        pid = _start_interpreter(commands, events, launcher) or _fork(commands, events, launcher)
    except OSError as error:
        os.close(to_keeper)
        os.close(from_keeper)
        raise LaunchError(
            f"the launcher's keeper process cannot be started: {why_not_started(error.errno or 0)}"
        ) from error
    finally:
        os.close(commands)
        os.close(events)
    keeper = Keeper(pid, to_keeper, from_keeper)
    _started.append(keeper)
    return keeper


def current() -> Keeper | None:
    """Return the open keeper of this process, ``None`` if there is none."""
    return _started[-1] if _started else None


def _start_interpreter(commands: int, events: int, launcher: int) -> int:
    """Return the new process's id, 0 if a new interpreter cannot be started."""
    program = (
        f"import sys; sys.path.insert(0, {IMPORT_ROOT!r});"
        " from hccl_tools.processes.keeper_process import serve;"
        f" serve({commands}, {events}, {launcher})"
    )
    os.set_inheritable(commands, True)
    os.set_inheritable(events, True)
    command = [sys.executable, "-I", "-S", "-c", program]
    with suppress(OSError):
        # Ctrl-C goes to all processes of the terminal, and the launcher handles it. Unblocked, it would end
        # the keeper with a traceback until the keeper has its own session.
        return os.posix_spawn(sys.executable, command, os.environ, setsigmask=(signal.SIGINT,))
    return 0


def _fork(commands: int, events: int, launcher: int) -> int:
    if (pid := os.fork()) == 0:
        from hccl_tools.processes.keeper_process import serve  # noqa: PLC0415  (0.6 ms; the launcher itself never needs it)

        serve(commands, events, launcher)
    return pid
