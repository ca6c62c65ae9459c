"""The logs of ranks on another host: ``log_sender`` reads them there, ssh or Slurm's srun brings them."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import InputError, UsageError
from hccl_tools.launch.logs.sender import ALIVE, EVERY, OVER
from hccl_tools.launch.runs import index, node_names
from hccl_tools.notation import host_list
from hccl_tools.programs import ssh
from hccl_tools.programs.lookup import on_path
from hccl_tools.version import IMPORT_ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.runs.index import Run

#: Seconds for a host to answer, and for ssh to end after its output has; what is read at a time.
_CONNECT, _PATIENCE, _BLOCK = 8, 5.0, 1 << 16
#: A connection on which nothing comes back for 3 times so many seconds is given up.
_ALIVE = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
_LONGEST_LINE = 1 << 20
_NOT_THERE, _MAY_NOT_RUN = 127, 126


class RemoteLogs:
    """What one host sends of some logs, in whole lines."""

    def __init__(self, host: str, command: Sequence[str], where: str) -> None:
        """Begin to read.

        Args:
            host: The host, for messages.
            command: What brings its answer.
            where: The run directory there, for messages.
        """
        self.ended = False
        self.error: InputError | None = None
        self._host, self._where = host, where
        self._rest, self._told = b"", False
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the connection)
        theirs, self._to = os.pipe()
        self._from, out = os.pipe()
        os.set_blocking(self._from, False)
        self._child = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=out,
            stderr=self._words,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is ours, and we tell.
        )
        os.close(theirs)
        os.close(out)
        self._closing = threading.Event()
        self._keeper = threading.Thread(target=self._keep_alive, daemon=True)
        self._keeper.start()

    def read(self, *, last: bool) -> bytes:
        """Return what has come, "" for nothing; with ``last`` the other side is told to come to its end."""
        if last and not self._told:
            self._told = True
            self._say(OVER)
        if self.ended:
            return b""
        try:
            data = os.read(self._from, _BLOCK)
        except BlockingIOError:
            return b""
        if not data:
            self._end()
        data = self._rest + data
        cut = data.rfind(b"\n") + 1
        if self.ended or len(data) - cut > _LONGEST_LINE:
            cut = len(data)
        self._rest = data[cut:]
        return data[:cut]

    def close(self) -> None:
        """End the connection; what runs on the other host ends with it."""
        self._closing.set()
        self._keeper.join()
        os.close(self._to)
        os.close(self._from)
        for stop in (self._child.terminate, self._child.kill, lambda: None):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(1)
                break
            stop()
        self._words.close()

    def _end(self) -> None:
        self.ended = True
        try:
            status = self._child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return
        if status != 0:
            self._words.seek(0)
            self.error = self._explained(status, self._words.read().decode(errors="replace"))

    def _explained(self, status: int, said: str) -> InputError:
        last = ssh.last_words(said).removeprefix("error: ")
        hint = f"or look there, in {self._where}"
        if status in {_NOT_THERE, _MAY_NOT_RUN} or "No module named" in last:
            return InputError(f"{self._host}: hccl-tools is not there: {last}", hint=hint)
        if what := ssh.hint(self._host, said):
            hint = f"{what} O{hint[1:]}" if what.endswith("?") else f"{what}; {hint}"
        return InputError(f"{self._host}: {last or 'the connection was lost'}", hint=hint)

    def _keep_alive(self) -> None:
        while not self._closing.wait(EVERY):
            self._say(ALIVE)

    def _say(self, word: bytes) -> None:
        with contextlib.suppress(OSError):  # It has ended, which `read` will find.
            os.write(self._to, word)


def start(run: Run, host: str, asked: dict[str, Any], typed_ssh: str | None) -> RemoteLogs:
    """Ask a host of a run for logs.

    Args:
        run: The run, as this host has it.
        host: The host, as the plan calls it.
        asked: What is wanted: ``ranks``, ``follow``, ``lines``, ``prefixed``.
        typed_ssh: The ssh that the user has named.

    Raises:
        UsageError: There is no such ssh, the run is another user's, or it does not name a host.
    """
    if not index.is_own(run):
        raise UsageError(
            f"{run.name} belongs to {index.user_of(run.path)}: only what lies on this host is read of it",
            hint="its log is on another host: look there, or ask its owner",
        )
    if (why := host_list.why_not_a_host(host)) and not host_list.is_ipv6(host):
        raise UsageError(f'{run.name}: "{host}" {why}', hint=f"see {os.path.join(run.path, 'plan.json')}")
    path = index.path_on(run, host)
    there = _there({**asked, "run": path})
    job, srun = index.plan_of(run).get("slurm_job") or "", on_path("srun", os.environ)
    node = node_names.node_names(run.path).get(host, "")
    if job.isdecimal() and srun and run.state == "running" and not host_list.why_not_a_host(node):
        return RemoteLogs(host, [*_step(srun, job, node), *there], path)
    over_ssh = ssh.command(typed_ssh, os.environ, wait=_CONNECT)
    return RemoteLogs(host, [*over_ssh, *_ALIVE, "--", host, shlex.join(there)], path)


def _there(asked: dict[str, Any]) -> list[str]:
    """Return what the other host runs: this very hccl-tools, by the path that it has here."""
    program = (
        f"import sys; sys.path.append({IMPORT_ROOT!r}); from hccl_tools.launch.logs.sender import main;"
        " sys.exit(main(sys.argv[1]))"
    )
    return [sys.executable, "-c", program, json.dumps(asked)]


def _step(srun: str, job: str, node: str) -> list[str]:
    """Return how a step is added to a job whose cores are all in use."""
    return [
        *(srun, "--jobid", job, "--overlap", "--nodes=1", "--ntasks=1", "--nodelist", node),
        *("--mpi=none", "--quiet", "--chdir=/"),
    ]


def _environment() -> dict[str, str]:
    """Return our environment without the place in Slurm that we may have, which srun would go by."""
    return {
        name: value
        for name, value in os.environ.items()
        if name == "SLURM_CONF" or not name.startswith("SLURM_")
    }
