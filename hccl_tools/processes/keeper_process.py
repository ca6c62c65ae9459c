"""The keeper process: starts, signals and reaps the processes of a job.

It has its own interpreter and stays small, because a fork copies the page tables of the parent. It blocks
signals instead of installing handlers: a child starts with the default dispositions and unblocks its signals.
The parent is the watcher, which ends the job if the keeper is killed.
"""

from __future__ import annotations

import errno
import gc
import io
import marshal
import os
import select
import stat
import sys
import time

from hccl_tools.processes import keeper_protocol, linux, procfs, run_files, watcher
from hccl_tools.processes.keeper_protocol import Event, Task
from hccl_tools.processes.limits import FileLimit, leave_callers_files
from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # The keeper does not import typing, 5 of the 26 ms of its start.
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal  # Without the names of the signals, which take 4 ms.

#: Events that are sent together while processes are being started: each write wakes the launcher.
_EVENTS_PER_WRITE = 16


def serve(commands: int, events: int, launcher: int) -> NoReturn:
    """Run the keeper until the launcher has exited and no process of the job is left."""
    code = 70
    try:
        watcher.fork_keeper(launcher)
        _KeeperProcess(commands, events, launcher).run()
        watcher.end_descendants()
        code = 0
    except BaseException:  # noqa: BLE001  (the frames above are the launcher's)
        try:  # noqa: SIM105  (the import of contextlib takes 1 of the 26 ms of the keeper's start)
            keeper_protocol.send_failure(events, _traceback())
        except OSError:  # The launcher may have ended.
            pass
        procfs.signal_all(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(code)


def _traceback() -> str:
    """Return the exception that is being handled as Python prints it; the module traceback takes 3 ms."""
    sys.stderr = text = io.StringIO()
    sys.__excepthook__(*sys.exc_info())
    return text.getvalue()


class _KeeperProcess:
    def __init__(self, commands: int, events: int, launcher: int) -> None:
        os.setsid()
        linux.reset_signals()
        linux.become_subreaper()
        linux.name_process("hccl-keeper")
        self.pid = os.getpid()
        run_files.forget_all()  # A forked keeper closes the launcher's files.
        self.commands, self.events = commands, events
        self.stdin = leave_callers_files({commands, events})
        self.signals = linux.signal_descriptor({signal.SIGCHLD})
        self.reaper = Reaper()
        self.child = linux.ChildSetup()
        self.waiting: list[Task] = []
        self.started = 0
        self.common: dict[str, str] = {}
        self.stdin_for = -1
        self.queued_events: list[Event] = []
        self.busy = False
        self.failed = False
        self.poller = select.poll()
        for descriptor in (commands, self.signals, self.reaper.fileno(), _watch(launcher)):
            if descriptor >= 0:
                self.poller.register(descriptor, select.POLLIN)
        self.queue_event(keeper_protocol.READY, pid=self.pid)
        # A garbage collection would touch, and so copy, every page shared with the launcher.
        gc.disable()
        gc.freeze()

    def run(self) -> None:
        """Start, signal and reap processes until the launcher has ended."""
        own = {self.signals, self.reaper.fileno()}
        while True:
            ready = {descriptor for descriptor, _ in self.poller.poll(0 if self.waiting else None)}
            if ready & own:
                linux.read_signals(self.signals)
                self.reap()
            if self.commands in ready:
                if not self.read_command():
                    return
            elif ready - own:
                return  # The remaining descriptor shows that the launcher has exited.
            if self.waiting:
                self.start(self.waiting.pop())
                self.reap()

    def read_command(self) -> bool:
        """Read and carry out one command; return False at the end of file."""
        head = keeper_protocol.read_exactly(self.commands, keeper_protocol.COMMAND_HEAD.size)
        kind, size = keeper_protocol.COMMAND_HEAD.unpack(head) if head else (0, 0)
        body = keeper_protocol.read_exactly(self.commands, size)
        if not head or body is None:
            return False
        if kind == keeper_protocol.START:
            tasks, self.common, directory, self.stdin_for, folders = marshal.loads(body)  # noqa: S302  (the launcher's own pipe)  # nosec B302
            self.waiting = [Task(*task) for task in reversed(tasks)]
            self.started = 0
            self.busy, self.failed = True, False
            self.hold_folders(folders)
            self.change_directory(directory)
        else:
            self.signal(*keeper_protocol.SIGNAL_BODY.unpack(body))
        return True

    def hold_folders(self, folders: list[tuple[Any, ...]]) -> None:
        """Open the directories of the logs; if this fails, start no process."""
        try:
            for folder in folders:
                run_files.adopt(folder)
        except OSError as error:
            self.waiting.clear()
            self.queue_event(keeper_protocol.CANNOT_RUN, value=error.errno or 0, extra=keeper_protocol.LOG)

    def change_directory(self, directory: str) -> None:
        """Enter the ranks' working directory; if this fails, start no process."""
        try:
            os.chdir(directory)
        except OSError as error:
            self.waiting.clear()
            self.queue_event(
                keeper_protocol.CANNOT_RUN, value=error.errno or 0, extra=keeper_protocol.DIRECTORY
            )
        self.reap()

    def signal(self, number: int, to: int) -> None:
        """Signal all processes, all ranks or one rank; a signal that ends the job prevents further starts."""
        ending = number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
        if ending:
            self.waiting.clear()
            self.send_events()
        if to == keeper_protocol.EVERYONE:
            # A stopped process acts on a signal only when it is continued.
            procfs.signal_all(self.pid, number, *[signal.SIGCONT] * (ending and number != signal.SIGKILL))
        else:
            for pid, index in self.reaper.running():
                if to in (keeper_protocol.RANKS, index):
                    os.kill(pid, number)
        self.reap()

    def reap(self) -> None:
        """Report exited processes in order, and report when no process is left."""
        if not self.busy:
            return
        deaths = self.reaper.reap()
        # All deaths get one time, because the launcher acts on the first failure before it reads the next.
        reaped = time.monotonic_ns()
        for pid, index, status, cpu, peak in deaths:
            if status and not self.failed:
                self.failed = True
                self.report_failing()
            self.queue_event(keeper_protocol.ENDED, index, pid, status, cpu=cpu, extra=peak, when=reaped)
        if self.reaper.all_reaped and not self.waiting:
            self.busy = False
            self.queue_event(keeper_protocol.EMPTY)

    def report_failing(self) -> None:
        """Report processes that are exiting with a failure that began before a completed exit."""
        for pid, index in self.reaper.running():
            if status := procfs.ends_with(pid):
                self.queue_event(keeper_protocol.ENDING, index, pid, status)

    def queue_event(
        self,
        kind: int,
        index: int = 0,
        pid: int = 0,
        value: int = 0,
        *,
        cpu: int = 0,
        extra: int = 0,
        when: int = 0,
    ) -> None:
        """Queue an event for the launcher; failures are sent at once, others together."""
        self.queued_events.append(Event(kind, index, pid, value, when or time.monotonic_ns(), cpu, extra))
        if value or not self.waiting or len(self.queued_events) >= _EVENTS_PER_WRITE:
            self.send_events()

    def send_events(self) -> None:
        """Send the queued events, unless the launcher has ended."""
        events, self.queued_events = self.queued_events, []
        try:  # noqa: SIM105  (as in serve)
            keeper_protocol.send_events(self.events, events)
        except BrokenPipeError:
            pass

    def start(self, task: Task) -> None:
        """Start one process and redirect its output to its log."""
        index, self.started = self.started, self.started + 1
        about = keeper_protocol.LOG
        try:
            opened = _open_pipe if task.pipes else run_files.open_append
            log = opened(task.log)
            errors = log
            try:
                if task.errors:
                    errors = opened(task.errors)
                    if not task.pipes:
                        os.ftruncate(errors, 0)
                about = keeper_protocol.FORK
                task = task._replace(environment={**self.common, **task.environment})
                pid = os.fork()
                if pid == 0:
                    self.exec_child(index, task, log, errors)
            finally:
                os.close(log)
                if errors != log:
                    os.close(errors)
        except OSError as error:
            self.queue_event(keeper_protocol.CANNOT_RUN, index, 0, error.errno or 0, extra=about)
            return
        self.reaper.add(pid, index)
        self.queue_event(keeper_protocol.STARTED, index, pid, 0)

    def exec_child(self, index: int, task: Task, log: int, errors: int) -> NoReturn:
        """Execute the program of a task, in the child process."""
        code = 126
        try:
            stdin = self.stdin if index == self.stdin_for else 0
            self.reaper.limit.restore()

            def execute() -> None:
                os.execve(task.program, task.argv, task.environment)  # noqa: S606  (the user's program)

            self.child.exec(execute, parent=self.pid, stdin=stdin, log=log, errors=errors, cpus=task.cpus)
        except OSError as error:
            number = error.errno or 0
            code = 127 if number == errno.ENOENT and not os.path.exists(task.program) else 126
            self.queued_events.clear()  # The keeper itself sends these events.
            self.queue_event(
                keeper_protocol.CANNOT_RUN, index, os.getpid(), number, extra=keeper_protocol.PROGRAM
            )
        finally:
            os._exit(code)


def _open_pipe(path: str) -> int:
    """Open a pipe of another process of this user, by its path in /proc, to write to it.

    Raises:
        OSError: It cannot be opened, or is not a pipe.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)


def _watch(launcher: int) -> int:
    """Return a descriptor that is readable when the launcher has ended, -1 on kernels before 5.3.

    The pipe shows that too, unless a process forked by the launcher's program still has the pipe open.
    """
    try:
        return os.pidfd_open(launcher)
    except OSError:
        return -1


class Death(NamedTuple):
    """A rank's end: raw wait status, CPU time in nanoseconds, peak memory in KiB."""

    pid: int
    task: int
    status: int
    cpu: int
    peak: int


class Reaper:
    """Reaps the children of this process: ranks in order of death, adopted orphans without a report."""

    def __init__(self) -> None:
        self.limit = FileLimit()
        self.all_reaped = True
        self._order = select.epoll()
        self._indexes: dict[int, int] = {}
        self._descriptors: dict[int, int] = {}
        self._pids: dict[int, int] = {}

    def fileno(self) -> int:
        """Return a descriptor that is readable when a rank has ended, on kernels with process descriptors."""
        return self._order.fileno()

    def add(self, pid: int, index: int) -> None:
        """Add a rank that has been started."""
        self._indexes[pid] = index
        self.all_reaped = False
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return  # On an old kernel, only SIGCHLD reports the exit.
        if not self.limit.allows(descriptor):
            os.close(descriptor)
            return
        self._descriptors[pid] = descriptor
        self._pids[descriptor] = pid
        self._order.register(descriptor, select.EPOLLIN)

    def running(self) -> list[tuple[int, int]]:
        """Return process id and index of the ranks not reaped yet; these ids cannot be reused."""
        return list(self._indexes.items())

    def reap(self) -> list[Death]:
        """Reap ended children; return ranks in order of death, discard adopted orphans."""
        deaths = self._in_order()
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self.all_reaped = True
                return deaths
            self.all_reaped = False
            if ended is None:
                return deaths
            pid = ended.si_pid
            if pid not in self._indexes:
                os.waitpid(pid, 0)
                continue
            # Since the first call of _in_order, another rank may have ended, and before this rank.
            deaths += self._in_order()
            if pid in self._indexes:
                deaths.append(self._reap(pid))

    def _in_order(self) -> list[Death]:
        if not self._pids:
            return []
        ready = self._order.poll(0, len(self._pids))
        return [self._reap(self._pids[descriptor]) for descriptor, _ in ready if descriptor in self._pids]

    def _reap(self, pid: int) -> Death:
        descriptor = self._descriptors.pop(pid, -1)
        if descriptor >= 0:
            del self._pids[descriptor]
            # A child before its exec still holds a copy of the descriptor, and with it the registration.
            self._order.unregister(descriptor)
            os.close(descriptor)
        _, status, usage = os.wait4(pid, 0)
        cpu = round((usage.ru_utime + usage.ru_stime) * 1e9)
        return Death(pid, self._indexes.pop(pid), status, cpu, usage.ru_maxrss)
