"""Starting small jobs of real processes, and finding what they leave behind."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import published
from tests.support.processes import kill_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from subprocess import Popen

DRIVER = Path(__file__).with_name("supervised.py")
#: In the environment of every process of a job, however it was started.
MARK = "HCCL_TOOLS_TEST_JOB"
#: Seconds after which a test gives up; no test waits this long when all is well, however busy the machine is.
LONG = 120.0


def eventually(condition: Callable[[], object], seconds: float = LONG) -> bool:
    """Whether a condition comes true within so many seconds.

    It is asked less and less often, down to ten times a second: to ask must not be what loads the machine.
    """
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        if waited > seconds:
            return False
        time.sleep(min(max(0.005, waited / 10), 0.1))
    return True


def living(mark: str) -> dict[int, str]:
    """The processes of a job that have not ended, with their command lines."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except (OSError, IndexError):
            continue
    return found


def none_left(mark: str, seconds: float = LONG, *, but: Sequence[str] = ()) -> bool:
    """Whether all processes of a job end within so many seconds.

    Args:
        mark: The mark of the job.
        seconds: How long to wait for their ends, of which the kernel tells.
        but: Processes with one of these words in their command lines may stay.
    """
    deadline = time.monotonic() + seconds
    while left := [pid for pid, line in living(mark).items() if not any(word in line for word in but)]:
        if not _have_ended(left, deadline):
            return False
    return True


def _have_ended(pids: Sequence[int], deadline: float) -> bool:
    """Wait until these processes have ended, at most until a time of ``time.monotonic``."""
    with ExitStack() as stack:
        for pid in pids:
            with suppress(ProcessLookupError):
                descriptor = os.pidfd_open(pid)
                stack.callback(os.close, descriptor)
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    return False
    return True


@dataclass
class Job:
    """A job that has been started: the launcher's process and what it has written."""

    run_dir: Path
    mark: str
    launcher: Popen[str]
    out: str = ""
    err: str = ""
    report: dict[str, Any] = field(default_factory=dict)

    def end(self) -> int:
        """Wait for the launcher; its exit code (negative for a signal, as subprocess has it)."""
        self.out, self.err = self.launcher.communicate(timeout=LONG)
        path = self.run_dir / "report.json"
        if path.exists():
            self.report = published.read("report", path)
        return self.launcher.returncode

    def log(self, rank: int) -> str:
        """What a rank has written so far."""
        path = self.run_dir / f"rank_{rank}.log"
        return path.read_text() if path.exists() else ""

    def says(self, word: str, *ranks: int) -> bool:
        """Whether all these ranks have come to write a word."""
        return eventually(lambda: all(word in self.log(rank) for rank in ranks))

    def pid(self, rank: int) -> int:
        """The process id that a rank has written in its first line."""
        assert eventually(lambda: "\n" in self.log(rank))
        return int(self.log(rank).split()[0])

    def living(self) -> dict[int, str]:
        """What still runs of it."""
        return living(self.mark)

    def ranks_are_gone(self) -> bool:
        """Whether, before long, nothing but the launcher and its keeper runs."""
        own = (DRIVER.name, "hccl_tools.processes.keeper_process")
        return none_left(self.mark, but=own)

    def is_gone(self, seconds: float = LONG) -> bool:
        """Whether nothing of it runs any more, at the latest after so many seconds."""
        return none_left(self.mark, seconds)


class Jobs:
    """Starts jobs in a folder and ends whatever a failed test leaves behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[Job] = []

    def start(
        self,
        *programs: Sequence[str],
        scheduler: Sequence[str] = (),
        working_dir: str | None = None,
        run_dir: Path | None = None,
        prefix: Sequence[str] = (),
        popen: dict[str, Any] | None = None,
        **options: Any,
    ) -> Job:
        """Start a job of one rank per program under ``prefix`` (nohup); ``options`` are ``Supervision``'s."""
        run_dir = run_dir or self.folder / f"run_{len(self.started)}"
        run_dir.mkdir(exist_ok=True)
        mark = uuid.uuid4().hex
        described = {
            "programs": [list(program) for program in programs],
            "scheduler": list(scheduler),
            "run_dir": str(run_dir),
            "working_dir": working_dir or str(self.folder),
            "options": options,
        }
        streams: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **(popen or {}),
        }
        launcher = subprocess.Popen(
            [*prefix, sys.executable, str(DRIVER), json.dumps(described)],
            env={**os.environ, MARK: mark},
            text=True,
            **streams,
        )
        job = Job(run_dir, mark, launcher)
        self.started.append(job)
        return job

    def run(self, *programs: Sequence[str], **options: Any) -> tuple[int, Job]:
        """Start a job and wait for its end."""
        job = self.start(*programs, **options)
        return job.end(), job

    def clean_up(self) -> None:
        """Kill what is left and close the pipes."""
        for job in self.started:
            if job.launcher.poll() is None:
                job.launcher.kill()
                job.launcher.wait()
            for stream in (job.launcher.stdout, job.launcher.stderr, job.launcher.stdin):
                if stream is not None:
                    stream.close()
            kill_all(job.living())


def sh(script: str) -> list[str]:
    """A program that is a shell script."""
    return ["/bin/sh", "-c", script]


def python(script: str) -> list[str]:
    """A program that is a Python script; it starts faster than one with the site module."""
    return [sys.executable, "-I", "-S", "-c", script]
