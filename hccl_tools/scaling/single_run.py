"""Start one launch of a series as a child, observe rank 0's log, and return the result."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from hccl_tools import own_python
from hccl_tools.errors import UsageError
from hccl_tools.processes import linux, run_files
from hccl_tools.runs import files, names
from hccl_tools.scaling.measuring import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from hccl_tools.runs.saved import SavedReport
    from hccl_tools.scaling.measuring import Measures

#: Seconds between two reads of rank 0's log; this is the precision of a time between two lines.
_INTERVAL = 0.005
#: The output of ``launch`` in the log directory of a run.
OUTPUT = "launch.log"
#: Bytes that are read of it.
_LARGEST_OUTPUT = 1 << 28
#: It has what the ranks write to the terminal: readable by its user alone, as their logs.
_MODE = 0o600


def launch_command(arguments: Sequence[str]) -> list[str]:
    """Return the command line of a launch by this interpreter."""
    return own_python.command("hccl_tools", "launch", *arguments)


def run(
    arguments: Sequence[str], log_dir: Path, measures: Measures, tick: Callable[[], None]
) -> dict[str, Any]:
    """Run one launch whose ``--log-dir`` is ``log_dir``; return its part of a row of the series.

    ``tick`` is called about every second. The job ends with this process: by its signals, and by SIGTERM if
    this process is killed.

    Raises:
        UsageError: A pattern has never matched, or the log directory cannot be used.
    """
    known = set(_run_dirs(log_dir))
    observer = Observer(measures)
    started = time.monotonic()
    with os.fdopen(_open_output(str(log_dir)), "ab") as output:
        process = subprocess.Popen(
            launch_command(arguments),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=partial(_end_with_parent, os.getpid()),  # noqa: PLW1509  (this process has one thread)
        )
    try:
        run_dir = _observe(process, lambda: _new_run(log_dir, known), observer, tick)
    except BaseException as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        process.send_signal(number)
        process.wait()
        raise
    wall = time.monotonic() - started
    return _row(process.returncode, run_dir or _new_run(log_dir, known), log_dir, observer, wall)


def not_usable(path: str, why: str) -> UsageError:
    """Return the error for a log directory, or a file in it, that cannot be made or opened."""
    return UsageError(
        f"the logs of the series cannot be written: {path}: {why}",
        hint="choose another directory with --log-dir, behind `--`",
    )


def _open_output(log_dir: str) -> int:
    """Return a descriptor of the output of the launches in a log directory.

    Raises:
        UsageError: It cannot be opened: another user may have made the name first.
    """
    try:
        with run_files.opened(log_dir) as folder:
            folder.file_mode = _MODE  # From the first moment: a reader keeps what it has opened.
            descriptor = folder.open_append(OUTPUT)
            if stat.S_IMODE(os.fstat(descriptor).st_mode) != _MODE:  # Another version has made it.
                os.close(descriptor)
                folder.unlink(OUTPUT)
                descriptor = folder.open_append(OUTPUT)
    except OSError as error:
        raise not_usable(f"{log_dir}/{OUTPUT}", run_files.reason(error)) from error
    return descriptor


class Stopped(BaseException):
    """A signal has asked the series to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end_with_parent(parent: int) -> None:
    linux.die_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # It was killed before.
        os.kill(os.getpid(), signal.SIGTERM)


def _run_dirs(log_dir: Path) -> list[Path]:
    return [path for path in log_dir.iterdir() if path.is_dir() and not path.is_symlink()]


def _new_run(log_dir: Path, known: set[Path]) -> Path | None:
    return next((path for path in _run_dirs(log_dir) if path not in known), None)


def _observe(
    process: subprocess.Popen[bytes],
    find: Callable[[], Path | None],
    observer: Observer,
    tick: Callable[[], None],
) -> Path | None:
    """Read rank 0's log until the launch has exited; return the run directory if it has been found."""
    run_dir: Path | None = None
    reader: _Lines | None = None
    next_tick = time.monotonic()
    while True:
        ended = process.poll() is not None
        run_dir = run_dir or find()
        if reader is None and run_dir is not None and (run_dir / names.rank_log(0)).exists():
            reader = _Lines(run_dir / names.rank_log(0))
        if reader is not None:
            now = time.monotonic()
            for line in reader.read(last=ended):
                observer.line(line, now)
        if ended:
            return run_dir
        if time.monotonic() >= next_tick:
            tick()
            next_tick = time.monotonic() + 1.0
        time.sleep(_INTERVAL)


class _Lines:
    """The new complete lines of a growing file."""

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(run_files.open_read(str(path)), "rb")
        self._rest: list[bytes] = []

    def read(self, *, last: bool) -> list[str]:
        """Return the lines since the last call; the ``last`` call also returns a line without its end."""
        data = self._file.read()
        if data:
            self._rest.append(data)
        lines: list[bytes] = []
        if b"\n" in data:  # A bar of progress may write megabytes without one.
            *lines, rest = b"".join(self._rest).split(b"\n")
            self._rest = [rest]
        if last:
            lines.append(b"".join(self._rest))
            self._file.close()
        return [line.decode(errors="replace").rstrip("\r") for line in lines]


def _row(code: int, run_dir: Path | None, log_dir: Path, observer: Observer, wall: float) -> dict[str, Any]:
    row: dict[str, Any] = {"run": str(run_dir or log_dir), "exit_code": code}
    if code != 0:
        return {**row, "failed": _reason(run_dir, log_dir, code)}
    report = _report(run_dir)
    whole = round(wall, 3) if report is None or report.duration is None else report.duration
    log = (run_dir or log_dir) / names.rank_log(0)
    if observer.is_needed and not log.exists():
        raise UsageError("rank 0 runs on another host, whose log cannot be measured here: " + str(log),
                         hint="start the series on the host of rank 0")  # fmt: skip
    measured = observer.result(str(log))
    if not measured.keys() & {"time", "throughput"}:
        measured["time"] = whole
    return {**row, "whole_time": whole, **measured}


def _report(run_dir: Path | None) -> SavedReport | None:
    try:
        return None if run_dir is None else files.report(str(run_dir))
    except files.MalformedRunError:
        return None


def _reason(run_dir: Path | None, log_dir: Path, code: int) -> str:
    """Return in a line why a launch has failed."""
    report = _report(run_dir)
    if report is not None and report.first_failure is not None:
        return f"{report.first_failure.name}: {report.first_failure.how}"
    if report is not None and report.detail:
        return report.detail
    with run_files.opened(str(log_dir)) as folder:
        text = folder.read(OUTPUT, _LARGEST_OUTPUT).decode(errors="replace")
    errors = [line.removeprefix("error: ") for line in text.splitlines() if line.startswith("error: ")]
    return errors[-1] if errors else f"exit code {code}"


def check(arguments: Sequence[str], table: str | None) -> tuple[str, str | None] | None:
    """Return the message and hint with which ``launch`` would refuse to start; ``None`` if it would not.

    ``table`` is the text of the rank table, for a launch that reads it from its standard input.
    """
    command = launch_command(["--dry-run=json", *arguments])
    done = subprocess.run(command, capture_output=True, text=True, check=False, input=table or "")
    if done.returncode == 0:
        return None
    return _said(done.stderr, "error: ") or done.stderr, _said(done.stderr, "  help: ")


def _said(text: str, mark: str) -> str | None:
    return next((line.removeprefix(mark) for line in text.splitlines() if line.startswith(mark)), None)
