"""The keeper process itself: start, signal and collect the processes of a job.

It has an interpreter of its own and stays small: a child of it has few pages to share, so starting one is
cheap. All signals are blocked in it, so that its children have default dispositions and only unblock. Its
parent is the watcher, which ends the job if the keeper is killed.
"""

from __future__ import annotations

import errno
import gc
import marshal
import os
import select
import signal
import time
from contextlib import suppress
from typing import NoReturn

from hccl_tools.launch.processes import keeper_protocol, linux, procfs, watcher
from hccl_tools.launch.processes.file_limit import leave_callers_files
from hccl_tools.launch.processes.keeper_protocol import Event, Task
from hccl_tools.launch.processes.reaper import Deaths

#: Dispositions that Python, nohup or a shell's ``&`` may have changed; the ranks get the default.
_CHANGED_SIGNALS = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGTERM,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGTTIN,
    signal.SIGTTOU,
)
#: While many are being started, the launcher is woken for so many of their events at a time.
_TOLD_TOGETHER = 16
_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


def serve(commands: int, events: int, launcher: int) -> NoReturn:
    """Be the keeper until the launcher has gone and no process of the job is left; never returns."""
    code = 70
    try:
        watcher.fork_keeper(launcher)
        keeping = _Keeping(commands, events, launcher)
        keeping.obey_until_alone()
        watcher.end_descendants()
        code = 0
    except BaseException:  # noqa: BLE001  (the frames above are the launcher's)
        import traceback  # noqa: PLC0415  (a bug of ours)

        with suppress(OSError):  # Nobody may be there any more to hear it.
            keeper_protocol.send_failure(events, traceback.format_exc())
        procfs.signal_all(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(code)


class _Keeping:
    """What the keeper knows: the tasks that wait, the processes that run."""

    def __init__(self, commands: int, events: int, launcher: int) -> None:
        os.setsid()
        for number in _CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        linux.become_subreaper()
        linux.name_process("hccl-keeper")
        self.me = os.getpid()
        self.commands, self.events = commands, events
        self.stdin = leave_callers_files({commands, events})
        self.signals = linux.signal_descriptor({signal.SIGCHLD})
        self.deaths = Deaths()
        self.child = linux.ChildSetup()
        self.waiting: list[Task] = []
        self.started = 0
        self.common: dict[str, str] = {}
        self.stdin_for = -1
        self.untold: list[Event] = []
        self.busy = False
        self.failed = False
        self.poller = select.poll()
        for descriptor in (commands, self.signals, self.deaths.fileno(), _watch(launcher)):
            if descriptor >= 0:
                self.poller.register(descriptor, select.POLLIN)
        self.tell(keeper_protocol.READY, pid=self.me)
        # A cyclic collection in here would touch, and so copy, every page shared with the launcher.
        gc.disable()
        gc.freeze()

    def obey_until_alone(self) -> None:
        """Start, signal and collect as the launcher says, until it has gone."""
        own = {self.signals, self.deaths.fileno()}
        while True:
            ready = {descriptor for descriptor, _ in self.poller.poll(0 if self.waiting else None)}
            if ready & own:
                linux.read_signals(self.signals)
                self.collect()
            if self.commands in ready:
                if not self.obey():
                    return
            elif ready - own:
                return  # What else is watched is the launcher itself.
            if self.waiting:
                self.start(self.waiting.pop())
                self.collect()

    def obey(self) -> bool:
        """Carry out one command; false at the end of file."""
        head = keeper_protocol.read_exactly(self.commands, keeper_protocol.COMMAND_HEAD.size)
        kind, size = keeper_protocol.COMMAND_HEAD.unpack(head) if head else (0, 0)
        body = keeper_protocol.read_exactly(self.commands, size)
        if not head or body is None:
            return False
        if kind == keeper_protocol.START:
            tasks, self.common, directory, self.stdin_for = marshal.loads(body)  # noqa: S302  (the launcher's own pipe)  # nosec B302
            self.waiting = [Task(*task) for task in reversed(tasks)]
            self.started = 0
            self.busy, self.failed = True, False
            self.enter(directory)
        else:
            self.signal(*keeper_protocol.SIGNAL_BODY.unpack(body))
        return True

    def enter(self, directory: str) -> None:
        """Go to the ranks' working directory; without it nothing is started."""
        try:
            os.chdir(directory)
        except OSError as error:
            self.waiting.clear()
            self.tell(keeper_protocol.CANNOT_RUN, value=error.errno or 0, extra=keeper_protocol.DIRECTORY)
        self.collect()

    def signal(self, number: int, to: int) -> None:
        """Signal everyone, the ranks, or one of them; what was asked to end is not started any more."""
        ending = number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
        if ending:
            self.waiting.clear()
            self.tell_now()
        if to == keeper_protocol.EVERYONE:
            # A stopped process acts on a signal only once it goes on.
            procfs.signal_all(self.me, number, *[signal.SIGCONT] * (ending and number != signal.SIGKILL))
        else:
            for pid, index in self.deaths.running():
                if to in (keeper_protocol.RANKS, index):
                    os.kill(pid, number)
        self.collect()

    def collect(self) -> None:
        """Tell of every process that has ended, in order, and when none is left."""
        if not self.busy:
            return
        deaths = self.deaths.collect()
        # One time for all: the launcher acts on the first failure before it hears of the next.
        collected = time.monotonic_ns()
        for pid, index, status, cpu, peak in deaths:
            if status and not self.failed:
                self.failed = True
                self.tell_who_is_ending()
            self.tell(keeper_protocol.ENDED, index, pid, status, cpu=cpu, extra=peak, when=collected)
        if self.deaths.nobody_left and not self.waiting:
            self.busy = False
            self.tell(keeper_protocol.EMPTY)

    def tell_who_is_ending(self) -> None:
        """The first failure that is complete need not be the first that began."""
        for pid, index in self.deaths.running():
            if status := procfs.ends_with(pid):
                self.tell(keeper_protocol.ENDING, index, pid, status)

    def tell(
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
        """Have an event for the launcher: at once if it matters, else with some others."""
        self.untold.append(Event(kind, index, pid, value, when or time.monotonic_ns(), cpu, extra))
        if value or not self.waiting or len(self.untold) >= _TOLD_TOGETHER:
            self.tell_now()

    def tell_now(self) -> None:
        """Send what there is to tell, if the launcher still listens."""
        events, self.untold = self.untold, []
        with suppress(BrokenPipeError):
            keeper_protocol.send_events(self.events, events)

    def start(self, task: Task) -> None:
        """Start one process, its output going to its own log."""
        index, self.started = self.started, self.started + 1
        about = keeper_protocol.LOG
        try:
            log = os.open(task.log, _LOG_FLAGS, 0o666)
            try:
                about = keeper_protocol.FORK
                task = task._replace(environment={**self.common, **task.environment})
                pid = os.fork()
                if pid == 0:
                    self.become(index, task, log)
            finally:
                os.close(log)
        except OSError as error:
            self.tell(keeper_protocol.CANNOT_RUN, index, 0, error.errno or 0, extra=about)
            return
        self.deaths.watch(pid, index)
        self.tell(keeper_protocol.STARTED, index, pid, 0)

    def become(self, index: int, task: Task, log: int) -> NoReturn:
        """In the child: turn into the task's program."""
        code = 126
        try:
            os.setsid()
            self.child.die_with_parent()
            if os.getppid() == self.me:
                if index == self.stdin_for:
                    os.dup2(self.stdin, 0)
                os.dup2(log, 1)
                os.dup2(log, 2)
                if task.cpus:
                    os.sched_setaffinity(0, task.cpus)
                self.deaths.limit.give_back()
                self.child.unblock_all_signals()
                os.execve(task.program, task.argv, task.environment)  # noqa: S606  (no shell)
        except OSError as error:
            number = error.errno or 0
            code = 127 if number == errno.ENOENT and not os.path.exists(task.program) else 126
            self.untold.clear()  # That is the keeper's to tell.
            self.tell(keeper_protocol.CANNOT_RUN, index, os.getpid(), number, extra=keeper_protocol.PROGRAM)
        finally:
            os._exit(code)


def _watch(launcher: int) -> int:
    """A descriptor that becomes readable when the launcher ends, -1 where the kernel (before 5.3) has none.

    The pipe tells the same, unless a process that the launcher's own program forked still holds its end.
    """
    try:
        return os.pidfd_open(launcher)
    except OSError:
        return -1
