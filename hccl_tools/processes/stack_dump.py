"""Get the Python stacks of running processes: by the signal of ``launch --faulthandler``, else by py-spy."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.processes import linux, procfs, run_files, signals, wait_state
from hccl_tools.programs.lookup import find_program
from hccl_tools.records import NamedTuple
from hccl_tools.version import IMPORT_ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.processes.signals import Helper

#: Seconds for faulthandler to write a dump.
SIGNAL_SECONDS = 2.0
#: Seconds without another frame after which a stack is complete, unless its last frame shows it.
_QUIET_SECONDS = 0.1
_OUTERMOST = (" in <module>", " in _run_module_as_main", "  ...")
#: Seconds for py-spy.
SPY_SECONDS = 10.0
#: The maximum number of lines of a stack.
_MOST_LINES = 60
#: Bytes read of a dump.
_LARGEST = 1 << 20
_HEADER = r"^(Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$"
#: A frame of faulthandler; a traceback has a comma before "in".
_FRAME = r'^  File ".*", line (\d+|\?\?\?) in '
_REST_OF_DUMP = frozenset({"", "  ...", "  <no Python frame>"})
#: The number of a thread, which differs between ranks with equal stacks.
_THREAD = r"^Thread (0x)?[0-9A-Fa-f]+"
_NO_SPY = (
    "Python was not started with `launch --faulthandler`, and py-spy is not installed (`pip install py-spy`)"
)
_NO_HANDLER = "it is not Python, or does not handle SIGUSR2, and py-spy is not installed"

_OF_OTHERS = "it runs as another user than the job, for example as a setuid program"

#: ``File "/home/me/train.py", line 11 in step`` and ``step (/home/me/train.py:11)``.
_FAULTHANDLER = r'\s*File "([^"]+)", line (\d+)(?: in (.*))?'
_PY_SPY = r"\s*(\S+) \(([^()]+):(\d+)\)"
#: The folders of Python and of what is installed into it, which is not the user's program.
_NOT_OF_USER = r"/lib(?:64)?/python\d|/(?:site|dist)-packages/|^<|python\d+\.zip/"
#: Characters of a path that is shown whole.
_LONGEST_PATH = 36
_KEPT_FOLDERS = 1

#: Asks a rank for the dump of its flight recorder. The first and last real-time signals have other uses.
RECORDER_SIGNAL = 59
#: Has the number of this signal in the environment of a rank with a flight recorder.
RECORDER_VARIABLE = "HCCL_TOOLS_RECORDER"
FOLDER = os.path.join(IMPORT_ROOT, "hccl_tools", "launch", "rank_site")


class Target(NamedTuple):
    """A process, and the log to which its standard error goes."""

    pid: int
    log: str


class Stack(NamedTuple):
    """The Python stack of a process: lines, where they come from, or why there are none.

    Attributes:
        source: ``faulthandler``, ``py-spy``, or "" without a stack.
        problem: Why there is no stack, "" with one.
    """

    lines: tuple[str, ...] = ()
    source: str = ""
    problem: str = ""


class StackDump:
    """The stacks of some processes, while they are being written."""

    def __init__(self, targets: Sequence[Target], *, wake: bool = False, owner: int | None = None) -> None:
        """Request the stacks.

        Args:
            targets: The processes.
            wake: Whether to continue stopped processes that can write their stack themselves.
            owner: The user as whom the processes must run; those of other users are not asked.
        """
        self._owner = owner
        self.helpers: list[Helper] = []
        self._signalled: dict[Target, int] = {}
        self._spies: dict[Target, tuple[Helper, int]] = {}
        self._problems: dict[Target, str] = {}
        self._growth: dict[Target, tuple[int, float]] = {}
        program = find_program("py-spy", os.environ.get("PATH", os.defpath))
        for target in targets:
            if not self._is_asked(target.pid):
                self._problems[target] = _OF_OTHERS
                continue
            state = wait_state.of(target.pid, owner)
            is_stopped = state is not None and state.is_stopped
            if (wake or not is_stopped) and writes_stacks(target.pid):
                self._signal(target, wake=wake)
            elif program:
                self._start_spy(program, target)
            else:
                self._problems[target] = _why_no_stack(target.pid, is_stopped=is_stopped)

    @property
    def seconds(self) -> float:
        """The maximum time until the stacks are complete."""
        return SPY_SECONDS if self._spies else SIGNAL_SECONDS if self._signalled else 0.0

    @property
    def is_complete(self) -> bool:
        """Whether all stacks have been written."""
        spies_ended = all(helper.ended() for helper, _ in self._spies.values())
        return spies_ended and all(map(self.is_written, self._signalled))

    def is_written(self, target: Target) -> bool:
        """Whether a process has written its stack, or is not one that writes it itself."""
        begin = self._signalled.get(target)
        if begin is None:
            return True
        lines = _main_thread(_since(target.log, begin))
        if not lines or lines[-1].endswith(_OUTERMOST):
            return bool(lines)
        count, since = self._growth.get(target, (0, 0.0))
        if count != len(lines):
            since = time.monotonic()
            self._growth[target] = len(lines), since
        return time.monotonic() > since + _QUIET_SECONDS

    def finish(self) -> dict[Target, Stack]:
        """Return what has been written; later stacks are lost."""
        found = {target: Stack(problem=problem) for target, problem in self._problems.items()}
        for target, begin in self._signalled.items():
            lines = tuple(_main_thread(_since(target.log, begin)))
            problem = "" if lines else "it has not written its stack: it is inside compiled code, or stopped"
            found[target] = Stack(lines[:_MOST_LINES], "faulthandler" if lines else "", problem)
        for target, (helper, output) in self._spies.items():
            is_complete = helper.ended()
            helper.end()
            os.lseek(output, 0, os.SEEK_SET)
            text = os.read(output, _LARGEST).decode(errors="replace")
            os.close(output)
            found[target] = _spy_stack(text, helper.code if is_complete else None)
        self._spies.clear()
        return found

    def _is_asked(self, pid: int) -> bool:
        return self._owner in {None, procfs.user(pid)}

    def _signal(self, target: Target, *, wake: bool) -> None:
        begin = _size(target.log)
        if begin < 0:
            self._problems[target] = "its standard error is not a file"
            return
        self._signalled[target] = begin
        with suppress(ProcessLookupError, PermissionError):
            if self._is_asked(target.pid):
                linux.signal_main_thread(target.pid, signal.SIGUSR2)
            if wake:
                procfs.send(target.pid, signal.SIGCONT, self._is_asked)

    def _start_spy(self, program: str, target: Target) -> None:
        output = os.memfd_create("py-spy")
        argv = [program, "dump", "--nonblocking", "--pid", str(target.pid)]
        try:
            helper = signals.spawn(argv, stdout=output, stderr=output)
        except OSError as error:
            os.close(output)
            self._problems[target] = f"py-spy cannot be started: {error.strerror}"
            return
        self.helpers.append(helper)
        self._spies[target] = (helper, output)


def writes_stacks(pid: int) -> bool:
    """Return whether a process was started with ``--faulthandler`` and handles its signal."""
    return is_used(procfs.environment(pid)) and wait_state.catches(pid, signal.SIGUSR2)


def _why_no_stack(pid: int, *, is_stopped: bool) -> str:
    if is_stopped:
        return "it is stopped, and py-spy is not installed"
    return _NO_HANDLER if is_used(procfs.environment(pid)) else _NO_SPY


def _spy_stack(text: str, code: int | None) -> Stack:
    if code is None:
        return Stack(problem=f"py-spy has not ended within {SPY_SECONDS:g} s")
    lines = text.split("\n")
    if code == 0:
        start = next((at for at, line in enumerate(lines) if line.startswith("Thread ")), 0)
        shown = (re.sub(_THREAD, "Thread", line) for line in lines[start:] if line.strip())
        return Stack(tuple(shown)[:_MOST_LINES], "py-spy")
    said = next((line.strip() for line in lines if line.strip()), f"exit code {code}")
    if "permission" in text.lower():
        return Stack(problem=f"py-spy may not look at it: ptrace is denied here ({said})")
    return Stack(problem=f"py-spy: {said}")


def _size(path: str) -> int:
    """Return the size of a regular file, -1 if there is none."""
    about = run_files.status(path)
    return about.st_size if about else -1


def _since(log: str, begin: int) -> str:
    try:
        with open(run_files.open_read(log), "rb") as file:
            file.seek(begin)
            return file.read(_LARGEST).decode(errors="replace")
    except OSError:
        return ""


def without_dumps(lines: Sequence[str]) -> list[str]:
    """Return the lines of a log without its stack dumps."""
    found: list[str] = []
    is_inside = False
    for line in lines:
        if re.match(_HEADER, line):
            is_inside = True
        elif not (is_inside and (re.match(_FRAME, line) or line in _REST_OF_DUMP)):
            is_inside = False
            found.append(line)
    return found


def _main_thread(text: str) -> list[str]:
    """Return the stack of the thread that has handled the signal, the main thread."""
    found: list[str] = []
    is_inside = False
    for line in text.split("\n"):
        if re.match(_HEADER, line):
            is_inside = line.startswith("Current thread")
            found = [] if is_inside else found
        elif is_inside and line.startswith("  "):
            found.append("".join(character if character.isprintable() else "?" for character in line))
        elif is_inside and line:
            is_inside = False
    return found


def is_of_user(path: str) -> bool:
    """Return whether a file of a stack is the user's, not one of Python or of what is installed into it."""
    return not re.search(_NOT_OF_USER, path)


def users_line(stack: Sequence[str]) -> str:
    """Return the innermost line of the user's code in a stack of Python, which faulthandler or py-spy wrote.

    It is ``/home/me/train.py:11 in step``, and "" without such a line.

    >>> users_line(['  File "/usr/lib/python3.11/threading.py", line 3 in w', '  File "/t.py", line 11 in f'])
    '/t.py:11 in f'
    """
    for line in stack:
        if found := re.match(_FAULTHANDLER, line):
            path, number, function = found[1], found[2], found[3] or "<module>"
        elif found := re.match(_PY_SPY, line):
            function, path, number = found[1], found[2], found[3]
        else:
            continue
        if is_of_user(path):
            return f"{path}:{number} in {function}"
    return ""


def shortened_frame(line: str) -> str:
    """Return a line of a stack with a long path cut at its beginning, so that its number is on the screen.

    >>> shortened_frame('  File "/opt/python/3.11.7/lib/python3.11/threading.py", line 327 in wait')
    '  File ".../python3.11/threading.py", line 327 in wait'
    """
    found = re.match(_FAULTHANDLER, line)
    if found is None or len(found[1]) <= _LONGEST_PATH:
        return line
    end = found[1].split("/")[-1 - _KEPT_FOLDERS :]
    return line.replace(found[1], "/".join(["...", *end]), 1)


def is_used(environment: Mapping[str, str]) -> bool:
    """Return whether a Python with these variables imports the ``sitecustomize`` of the folder."""
    return FOLDER in environment.get("PYTHONPATH", "").split(os.pathsep)


def python_path(own: str) -> str:
    """Return the PYTHONPATH that has the folder before the user's ``own`` folders."""
    others = [folder for folder in own.split(os.pathsep) if folder != FOLDER] if own else []
    return os.pathsep.join([FOLDER, *others])
