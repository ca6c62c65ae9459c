"""The logs of ranks on another host: ``hccl-tools logs`` runs there over ssh, or as a step of a Slurm job."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import time
from typing import IO, TYPE_CHECKING, cast

from hccl_tools import own_python
from hccl_tools.errors import InputError, UsageError
from hccl_tools.notation import host_list
from hccl_tools.programs import slurm, ssh
from hccl_tools.programs.environment import without_key
from hccl_tools.records import NamedTuple
from hccl_tools.runs import files, hosts, names, own_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.runs.index import Run

#: Seconds for a host to answer.
_CONNECT_SECONDS = 8
#: Seconds without data after which a host that was asked for the end of its logs counts as lost.
_SILENCE_SECONDS = 60.0
#: Bytes of logs that have an end, bytes per second and seconds: a host that sends more, or slower, is left.
_MOST_BYTES, _SLOWEST, _LONGEST = 1 << 30, 1 << 15, 3600.0
#: Seconds between two reads that count as the host's; the rest is that of who reads the output.
_MOST_BETWEEN = 1.0
#: Seconds for ssh to exit after the end of its output.
_EXIT_SECONDS = 5.0
#: Reads of the messages at a time: a pipe holds up to a megabyte.
_MOST_READS = 16
#: Bytes read at a time, and kept of the messages.
_BLOCK = 1 << 16
#: ssh gives up a connection after 3 times 5 seconds without an answer.
_KEEPALIVE = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
#: Bytes; longer lines are shown in parts. The other host does so at 1 MiB, before it adds a label.
_LONGEST_LINE = (1 << 20) + 64
#: A shell's exit codes for a program that is missing, or that must not be executed.
_NOT_STARTED = frozenset({126, 127})
#: The option of ``logs`` on the other host; another version may lack the option.
SERVE = "--serve"

#: The maximum size of an answer in bytes; 20,000 events of ``explain`` have about 10 MB.
LARGEST = 1 << 26
#: Seconds between two looks at the answers.
_PAUSE = 0.02


class RemoteLogs:
    """A reader of logs on another host, in whole lines."""

    def __init__(
        self,
        host: str,
        command: Sequence[str],
        run_dir: str,
        labels: tuple[bytes, ...] = (),
        silence: float = _SILENCE_SECONDS,
    ) -> None:
        """Start ``command``, which prints the logs until its standard input closes.

        Args:
            labels: Those of the ranks that the host was asked for, if each line begins with a label.
            silence: Seconds without data after which the end of the logs is not awaited any longer.
        """
        self._silence, self._heard = silence, 0.0
        # Since the end of the logs was requested: bytes, seconds, and when the last read was.
        self._sent, self._spent, self._looked = 0, 0.0, 0.0
        self._labels, self._label = labels, f"[{host}] ".encode()
        self.ended = False
        self.error: InputError | None = None
        self.received = 0  # Bytes, with those of a line that is not complete.
        self._host, self._run_dir, self._rest = host, run_dir, b""
        self._errors = b""
        self._exit_by: float | None = None  # Monotonic time; set at the end of the output.
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=slurm.without_own_step(without_key(os.environ)),
            start_new_session=True,  # Ctrl-C is for this process, which then ends the child.
        )
        pipes = (self._child.stdin, self._child.stdout, self._child.stderr)
        self._input, self._output, self._error_output = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", pipes)
        os.set_blocking(self._output.fileno(), False)
        os.set_blocking(self._error_output.fileno(), False)

    def read(self, *, last: bool) -> bytes:
        """Return the data received so far, possibly ""; ``last`` requests the end of the output."""
        if last and not self._input.closed:
            self._input.close()
            self._heard = self._looked = time.monotonic()
        if self.ended:
            return b""
        self._read_errors()
        try:
            data = os.read(self._output.fileno(), _BLOCK)
        except BlockingIOError:
            if last:
                self._check_limits()
            return b""
        self._heard = time.monotonic()
        self.received += len(data)
        if last:
            self._sent += len(data)
            self._check_limits()
        shown = self._lines(data)
        if last:
            self._sent += max(0, len(shown) - len(data))  # Each line gets the name of its rank.
        return shown

    def _check_limits(self) -> None:
        """End the reading of a host that goes on without an end.

        The output may wait for its reader, a pager, meanwhile: what the host has sent is in the pipe then.
        """
        now = time.monotonic()
        self._spent += min(now - self._looked, _MOST_BETWEEN)
        self._looked = now
        if now - self._heard > self._silence:
            message = f"its logs have no end after {self._silence:.0f} s without data"
        elif self._sent > _MOST_BYTES:
            message = f"its logs have more than {_MOST_BYTES >> 20} MiB: the rest was not read"
        elif self._spent > min(self._silence + self._sent / _SLOWEST, _LONGEST):
            message = f"its logs have no end after {self._spent:.0f} s and {self._sent} bytes"
        else:
            return
        self.ended, self.error = True, self._failure(message)

    def _lines(self, data: bytes) -> bytes:
        """Return the whole lines of what was received, with labels; "" of ``data`` is the end."""
        if not data:
            self._await_exit()
        is_end = not data or self.ended
        data = self._rest + data
        cut = data.rfind(b"\n") + 1
        if is_end or len(data) - cut > _LONGEST_LINE:
            cut = len(data)
        self._rest = data[cut:]
        return self._labelled(data[:cut]) if self._labels and cut else data[:cut]

    def close(self) -> None:
        """End the connection; the process on the other host exits when its standard input closes."""
        self._input.close()
        self._output.close()
        self._error_output.close()
        for stop in (self._child.terminate, self._child.kill, lambda: None):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(1)
                break
            stop()

    def _labelled(self, data: bytes) -> bytes:
        """Return the data as lines that all have a label: the host may write that of a rank elsewhere.

        A line with no label of this host gets the one of the line before it; at first, the host's name.
        """
        shown = []
        for line in data.removesuffix(b"\n").split(b"\n"):
            if line.startswith(self._labels):
                self._label = line[: line.index(b"] ") + 2]
                shown.append(line)
            else:
                shown.append(self._label + line)
        return b"\n".join(shown) + b"\n"

    def _read_errors(self) -> None:
        """Read what there is of the messages; their end is kept."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(_MOST_READS):
                self._errors = (self._errors + os.read(self._error_output.fileno(), _BLOCK))[-_BLOCK:]

    def _await_exit(self) -> None:
        """Set ``ended`` if the child has exited, or does not exit in time; others are read meanwhile."""
        now = time.monotonic()
        self._exit_by = self._exit_by or now + _EXIT_SECONDS
        status = self._child.poll()
        if status is None and now < self._exit_by:
            return
        self.ended = True
        self._read_errors()
        if status:
            self.error = self._explain(status, self._errors.decode(errors="replace"))

    def _explain(self, status: int, errors: str) -> InputError:
        own = [line.removeprefix("error: ") for line in errors.splitlines() if line.startswith("error: ")]
        message = own[-1] if own else ssh.last_line(errors)
        if status in _NOT_STARTED or "No module named" in message:
            return self._failure(f"hccl-tools is not installed there: {message}")
        if SERVE in message:
            return self._failure(f"hccl-tools has another version there: {message}")
        return self._failure(message or "the connection was lost", ssh.hint(self._host, errors))

    def _failure(self, message: str, what: str | None = None) -> InputError:
        """Return an error of this host; ``what`` is what to do first."""
        hint = f"read the logs there, in {self._run_dir}"
        if what:
            hint = f"{what} Or {hint}" if what.endswith("?") else f"{what}; or {hint}"
        return InputError(f"{self._host}: {message}", hint=hint)


def start(
    run: Run,
    host: str,
    ranks: Sequence[int],
    options: Sequence[str],
    typed_ssh: str | None,
    *,
    prefixed: bool,
) -> RemoteLogs:
    """Start to read logs on another host of a run; rank -1 is MindSpore's scheduler.

    ``prefixed`` asks for lines that begin with their rank.

    Raises:
        UsageError: See ``run_there``.
    """
    chosen = ["--scheduler" if rank < 0 else f"--rank={rank}" for rank in ranks]
    command = ["logs", f"{SERVE}={'prefix' if prefixed else 'plain'}", *options, *chosen]
    labels = tuple(f"[rank {rank}] ".encode() for rank in ranks) if prefixed else ()
    return run_there(run, host, command, typed_ssh, labels)


def run_there(
    run: Run, host: str, command: Sequence[str], typed_ssh: str | None, labels: tuple[bytes, ...] = ()
) -> RemoteLogs:
    """Start a command of hccl-tools on another host; its last argument is the run directory there.

    ``labels`` are those of :class:`RemoteLogs`.

    Raises:
        UsageError: ssh is missing, the run belongs to another user, or ``host`` is not a host name.
    """
    if strange := own_runs.why_strange(run.path, os.environ):
        raise UsageError(
            f"{run.name} {strange}: only the run's files on this host are read",
            hint="the log is on another host: read it there, or ask the owner of the run",
        )
    plan = files.plan(run.path)
    way = plan.reached.get(host, host)
    if why := host_list.why_not_a_host(way, ipv6=True):
        raise UsageError(f'{run.name}: "{way}" {why}', hint=f"see {os.path.join(run.path, names.PLAN)}")
    path = hosts.path_on(run, host)
    there = own_python.command("hccl_tools", *command, "--", path)
    job, srun = plan.slurm_job or "", slurm.find_srun(os.environ)
    node = hosts.node_names(run.path).get(host, "")
    if job.isdecimal() and srun and run.state == "running" and not host_list.why_not_a_host(node):
        return RemoteLogs(host, [*slurm.step_command(srun, job, node), *there], path, labels)
    over_ssh = ssh.command(typed_ssh, os.environ, wait=_CONNECT_SECONDS)
    return RemoteLogs(host, [*over_ssh, *_KEEPALIVE, "--", way, shlex.join(there)], path, labels)


class Answer(NamedTuple):
    """What a host has sent; ``problem`` is a clause that says why that is not all, "" if it is."""

    data: bytes
    problem: str = ""
    hint: str = ""


def read(connections: Mapping[str, RemoteLogs], seconds: float) -> dict[str, Answer]:
    """Return the answers by host; after ``seconds`` those that are not complete have a problem."""
    sent = {host: bytearray() for host in connections}
    deadline = time.monotonic() + seconds
    waiting = list(connections)
    while waiting and time.monotonic() < deadline:
        before = sum(connections[host].received for host in waiting)
        for host in waiting:
            sent[host] += connections[host].read(last=False)
        is_idle = sum(connections[host].received for host in waiting) == before
        # A host that sends too much is no longer read: its pipe fills.
        waiting = [host for host in waiting if not connections[host].ended and len(sent[host]) <= LARGEST]
        if is_idle:
            time.sleep(_PAUSE)
    return {host: _answer(host, connection, sent[host], seconds) for host, connection in connections.items()}


def _answer(host: str, connection: RemoteLogs, sent: bytearray, seconds: float) -> Answer:
    if len(sent) > LARGEST:
        return Answer(b"", f"{host} has sent more than {LARGEST >> 20} MiB: its answer was not read")
    if not connection.ended:
        return Answer(b"", f"{host} has not answered within {seconds:g} s")
    if connection.error is not None:
        return Answer(b"", connection.error.message, connection.error.hint or "")
    return Answer(bytes(sent))
