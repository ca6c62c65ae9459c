"""A job of two hosts whose command was typed twice on this machine, once for each host."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

from hccl_tools.launch.planning import ports as free
from tests.support.attackers import Recorder, ports, tree
from tests.support.jobs import LONG, eventually

KEY = "5e" * 32
HERE = "127.0.0.1"
#: Where an eavesdropper stands between the two hosts.
BETWEEN = "127.0.0.9"


class Typed:
    """A job of two hosts with a rank each; the first host has rank 0."""

    def __init__(self, program: str, *options: str, key: str = KEY, port: int = 0) -> None:
        self.program, self.options, self.key = program, options, key
        self.port = port or free.free_port()
        self.launchers: list[subprocess.Popen[str]] = []
        self.said: list[str] = []

    def start(self, host: int, through: str = HERE) -> None:
        """Start a host; its connections to the first one arrive at the address ``through``."""
        command = [
            *(sys.executable, "-m", "hccl_tools", "launch", "--no-table", "--start", "torch"),
            *("--nnodes", "2", "--node-rank", str(host), "--nproc-per-node", "1", "--grace", "2"),
            *("--master-addr", HERE, "--start-port", str(self.port), "--log-dir", f"log{host}"),
            *(*self.options, "--no-python", "sh", "-c", self.program),
        ]
        environment = {**os.environ, "HCCL_TOOLS_JOB_KEY": self.key}
        if not self.key:
            del environment["HCCL_TOOLS_JOB_KEY"]
        if through != HERE:
            environment["PYTHONPATH"] = str(Path(__file__).with_name("eavesdropped"))
            environment["TESTS_EAVESDROPPER"] = f"{HERE},{self.port},{through}"
        self.launchers.append(
            subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        )

    @property
    def pids(self) -> list[int]:
        """The launchers and their keepers, which is all of hccl-tools that runs."""
        all_of_them = [pid for launcher in self.launchers for pid in tree(launcher.pid)]
        return [pid for pid in all_of_them if "hccl_tools" in _command(pid)]

    def waits(self) -> None:
        """Wait until rank 0's host waits for the other."""
        launcher = self.launchers[0]
        assert eventually(lambda: self.port in ports([launcher.pid]) or launcher.poll() is not None)
        assert launcher.poll() is None, launcher.communicate()[1]

    def wrote(self, word: str, restart: int = 0) -> bool:
        """Whether both ranks come to write a word."""
        again = f".restart_{restart}" if restart else ""
        logs = [Path(f"log{rank}/latest/rank_{rank}{again}.log") for rank in (0, 1)]
        return eventually(lambda: all(log.exists() and word in log.read_text() for log in logs))

    def end(self) -> list[int]:
        """Wait for both launchers; their exit codes."""
        self.said = [launcher.communicate(timeout=LONG)[1] for launcher in self.launchers]
        assert not [said for said in self.said if "Traceback" in said], self.said
        return [launcher.returncode for launcher in self.launchers]

    def kill(self) -> None:
        for launcher in self.launchers:
            if launcher.poll() is None:
                launcher.kill()
            launcher.communicate()


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def recorded_conversation(job: Typed) -> bytes:
    """Run a job to its end, and return what its second host has sent to the first."""
    job.start(0)
    job.waits()
    with closing(Recorder((BETWEEN, job.port), (HERE, job.port))) as recorder:
        job.start(1, through=BETWEEN)
        assert job.end() == [0, 0], job.said
        return bytes(max(recorder.sent, key=len))
