"""The process of ``--engine ssh``: start a command on each host over ssh, and show its output.

The variables for the command, which include the secret of the job, are sent over the standard input of the
remote shell: a command line is visible to all users. Like MPICH's mpiexec, this program collects its children
only at the end, so that the launcher sees which connections have ended.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.host.local_addresses import those_of_this_host
from hccl_tools.notation.named_lines import MOST_SAID, NamedLines
from hccl_tools.programs import ssh
from hccl_tools.remote.connection import READY, Connection, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from typing import IO

#: The program that reads the variables and becomes the command; it needs nothing but Python.
_BOOTSTRAP = f"""\
import json, os, sys
job = json.loads(sys.stdin.buffer.readline())
try:
    os.chdir(job["dir"])
    os.environ.update(job["environment"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.write(1, {READY + b"%c" % 10!r})
    os.execv(job["argv"][0], job["argv"])
except OSError as error:
    sys.exit(f"{{os.uname().nodename}}: {{error.filename or job['argv'][0]}}: {{error.strerror}}")
"""
#: A longer line is shown in parts.
_LONGEST_LINE = 1 << 20
#: Seconds from SIGTERM to SIGKILL of the connections.
_GRACE_SECONDS = 2.0
_PAUSE_SECONDS = 0.01


class _Host(Connection):
    """One host; of what ssh says about it, the beginning is passed on."""

    def __init__(self, _host: str, argv: Sequence[str], selector: selectors.BaseSelector, job: bytes) -> None:
        super().__init__(argv, selector, job, stderr=subprocess.PIPE)

    def _read_errors(self, pipe: IO[bytes]) -> None:
        before, self.errors = self.errors, b""
        super()._read_errors(pipe)
        _write(2, self.errors[: max(0, MOST_SAID - len(before))])
        self.errors = (before + self.errors)[:MOST_SAID]


class _Shown(_Host):
    """A host with a rank that is shown: its output is that of the rank, and is passed on as it is."""

    _rest = b""

    def received(self, data: bytes) -> None:
        """Write complete lines, so that no line of one host splits a line of another."""
        self._rest += data
        end = max(self._rest.rfind(b"\n"), self._rest.rfind(b"\r")) + 1
        if not data or len(self._rest) - end > _LONGEST_LINE:
            end = len(self._rest)
        shown, self._rest = self._rest[:end], self._rest[end:]
        _write(1, shown)


class _Quiet(_Host):
    """A host without a rank that is shown: the messages of its launcher are passed on, as its own."""

    def __init__(self, host: str, argv: Sequence[str], selector: selectors.BaseSelector, job: bytes) -> None:
        self._lines = NamedLines(host)
        super().__init__(host, argv, selector, job)

    def received(self, data: bytes) -> None:
        """Write complete lines, escaped, each with the name of the host; what is too much is left out."""
        _write(1, self._lines.take(data))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _argvs(hosts: Sequence[str], over_ssh: str) -> dict[str, list[str]]:
    """Return the command lines that start the bootstrap, by host."""
    command = [sys.executable, "-c", own_python.without_current_folder(_BOOTSTRAP)]
    here = those_of_this_host(hosts)
    return {host: command if host in here else ssh.on_host(over_ssh.split(), host, command) for host in hosts}


def _job(argv: Sequence[str], folder: str, environment: Mapping[str, str]) -> bytes:
    return json.dumps({"dir": folder, "environment": environment, "argv": argv}).encode() + b"\n"


def run(argvs: Mapping[str, Sequence[str]], job: bytes, shown: Container[str]) -> int:
    """Run the command lines of all hosts at once, and return the first exit code that is not 0.

    Args:
        shown: The hosts with a rank whose output is shown.
    """
    connections: list[Connection] = []
    with selectors.DefaultSelector() as selector:
        stop = _stopped(connections)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, stop)
        opening = (
            (_Shown if host in shown else _Quiet)(host, argv, selector, job) for host, argv in argvs.items()
        )
        serve(opening, connections, selector, counts=lambda one: not (one.is_ready or one.ended))
        codes = [one.process.wait() for one in connections]
        for one in connections:
            one.close_output()
    return next((code if code > 0 else 128 - code for code in codes if code), 0)


def _stopped(connections: list[Connection]) -> Callable[[int, object], None]:
    """Return a signal handler that ends all connections and this process."""

    def stop(number: int, _frame: object) -> None:
        for one in connections:
            one.process.send_signal(number)
        deadline = time.monotonic() + _GRACE_SECONDS
        while any(one.process.poll() is None for one in connections) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        for one in connections:
            one.process.kill()
        os._exit(128 + number)

    return stop


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the command on the hosts and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--ssh", "--hosts", "--dir", "--export"):
        parser.add_argument(name, required=True)
    parser.add_argument("--shown")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    environment = {name: os.environ[name] for name in options.export.split(",") if name in os.environ}
    hosts = options.hosts.split(",")
    shown = hosts if options.shown is None else options.shown.split(",")
    return run(_argvs(hosts, options.ssh), _job(options.command, options.dir, environment), frozenset(shown))


if __name__ == "__main__":
    sys.exit(main())
