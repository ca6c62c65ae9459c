"""Survey hosts over a connection to each, mostly ssh: a program is sent and run by the ``python3`` there."""

from __future__ import annotations

import errno
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.gathering import engine_run
from hccl_tools.gathering.engine_run import LONGEST_ARGUMENT, EngineOutcome
from hccl_tools.gathering.failures import Failure
from hccl_tools.gathering.messages import SurveyAnswer, SurveyTask
from hccl_tools.gathering.stdout_framing import LONGEST_LINE, MOST_OF_HOST, TOO_MUCH, EngineOutput
from hccl_tools.gathering.table_copy import PAYLOAD, CopyRequest
from hccl_tools.host.local_addresses import those_of_this_host
from hccl_tools.launch import engines
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped
from hccl_tools.processes.limits import FileLimit, file_limit
from hccl_tools.programs import ssh
from hccl_tools.programs.lookup import on_path
from hccl_tools.remote import archive
from hccl_tools.remote.connection import Connection, serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.gathering.options import GatherOptions
    from hccl_tools.host.observation import ObservationRequest
    from hccl_tools.host.survey import SurveyRequest
    from hccl_tools.remote.archive import Archive

#: Seconds in which the programs on the other hosts end after their connection was closed.
_GRACE_S = 4.0
#: Open files of the connection to a host, and of this process itself.
_DESCRIPTORS, _OTHERS = 4, 64
_NOT_FOUND = 127
#: kubectl adds a line with the exit code to the messages of the program.
_KUBECTL_END = "command terminated with exit code"
#: The number of lines of an unknown error that are shown: the last may be just a hint at the help.
_MOST_LINES = 3
_PYTHON_MISSING_HINT = "install Python 3.8 or later there, as python3 on the PATH of commands without a login"
_NO_INPUT_HINT = "the command must pass its standard input on; kubectl and docker do so with -i"
_LOAD_HINT = "check its load and its file systems"

#: Stands for the name of the host.
_PLACE = "{host}"
_EXAMPLE = "--via 'kubectl exec -i {host} --'"


class _Query(Connection):
    """One host, and the answer that it has sent so far."""

    def __init__(
        self,
        host: str,
        argv: Sequence[str],
        selector: selectors.BaseSelector,
        *,
        line: bytes,
        message: bytes,
        options: GatherOptions,
    ) -> None:
        self.host, self._rest, self._count = host, b"", 0
        self.output = EngineOutput([host], answered=options.answered)
        # In a session of its own, the child does not get the terminal's Ctrl-C, and the host is cleaned up.
        super().__init__(
            argv, selector, line, then=message,
            stderr=subprocess.PIPE, env=engine_run.environment(options.environ), start_new_session=True,
        )  # fmt: skip

    def received(self, data: bytes) -> None:
        self._count += len(data)
        if self.is_flooded:
            _kill(self)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self.output.add_line(line.decode("ascii", "replace"))
        if self.output.text(self.host) is not None:
            self.close_input()

    @property
    def is_flooded(self) -> bool:
        return self._count > MOST_OF_HOST

    @property
    def answer(self) -> SurveyAnswer | None:
        text = self.output.text(self.host)
        return None if text is None else SurveyAnswer.from_json(text, self.host)


def survey(
    hosts: Sequence[str],
    places: Mapping[str, int],
    request: SurveyRequest | ObservationRequest | CopyRequest,
    options: GatherOptions,
    seconds: float,
) -> EngineOutcome:
    """Survey the hosts; ``places`` has the index of each in the user's list, ``seconds`` is the time limit.

    Raises:
        HcclToolsError: The engine cannot be used here.
    """
    until = time.monotonic() + seconds
    program = archive.make()
    if isinstance(request, CopyRequest) and request.content:  # too long for the command line of a process
        program = archive.make({PAYLOAD: request.content})
        request = request._replace(content="")
    if len(SurveyTask(request=request).to_json()) > LONGEST_ARGUMENT:
        raise UsageError(
            "the table is too large for the pings between its servers", hint="leave them out: --ignore HCD6"
        )

    def left() -> float:
        return max(1.0, until - time.monotonic())

    queries: list[Connection] = []
    limit = FileLimit()
    limit.allows(_DESCRIPTORS * len(hosts) + _OTHERS)
    with selectors.DefaultSelector() as selector:
        tasks = (SurveyTask(host, places[host], request, left(), over_mpi=False) for host in hosts)
        here = frozenset() if options.via else those_of_this_host(hosts)
        opening = (_query(task, program, selector, options, is_here=task.host in here) for task in tasks)
        try:
            serve(opening, queries, selector, counts=lambda one: not one.ended, until=until)
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            raise _too_many(len(hosts)) from None
        finally:
            _close(queries)
            limit.restore()
    asked = {one.host: one for one in queries if isinstance(one, _Query)}
    answers = {host: answer for host, one in asked.items() if (answer := one.answer) is not None}
    silent = [host for host in hosts if host not in answers]
    program_name = os.path.basename(options.via[0]) if options.via else str(options.engine)  # noqa: PTH119
    causes = [_cause(host, asked.get(host), options.seconds, program_name) for host in silent]
    return EngineOutcome(answers, causes)


def _too_many(hosts: int) -> UsageError:
    """Return the error for more hosts than this process may have open files for."""
    return UsageError(
        f"{count(hosts, 'host')} cannot be asked: this process may have {file_limit()} open files",
        hint=f"raise the limit: ulimit -n {_DESCRIPTORS * hosts + _OTHERS}",
    )


def _query(
    task: SurveyTask,
    program: Archive,
    selector: selectors.BaseSelector,
    options: GatherOptions,
    *,
    is_here: bool,
) -> _Query:
    argv, python = _way(task.host, options, is_here=is_here)
    return _Query(
        task.host, argv, selector,
        line=archive.start_line(python, task.seconds),
        message=program.message([task.host, task.to_json()], task.seconds),
        options=options,
    )  # fmt: skip


def _way(host: str, options: GatherOptions, *, is_here: bool) -> tuple[list[str], str]:
    """Return the command line that starts a shell on a host, and the Python there."""
    if options.via:
        return [*command(options.via, host), "sh"], "python3"
    if is_here:
        return ["/bin/sh"], sys.executable
    return engines.get(str(options.engine)).on_host(host, ["sh"], options.reach), "python3"


def _close(queries: Sequence[Connection]) -> None:
    """Close all connections; the programs at the other end then remove what they have there."""
    for one in queries:
        one.close_input()
    until = time.monotonic() + _GRACE_S
    try:
        for one in queries:
            with suppress(subprocess.TimeoutExpired):
                one.process.wait(max(0.0, until - time.monotonic()))
    finally:
        for one in queries:
            _kill(one)
            one.process.wait()
            one.close_output()


def _kill(one: Connection) -> None:
    """Kill the child and its processes: ``--ssh`` may be a script."""
    if one.process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(one.process.pid, signal.SIGKILL)


def _cause(host: str, one: _Query | None, seconds: float, program: str) -> Failure:
    """Return why a host did not answer; ``program`` is the name of ssh, or of what replaces it."""
    if one is None:
        return Failure(host, f"no process started there within {seconds:g} s")
    if one.is_flooded:
        return Failure(host, TOO_MUCH)
    if not one.ended:
        what = "its process started but did not answer" if one.is_ready else f"no answer over {program}"
        advice = "allow more time: --gather-timeout SECONDS" if one.is_ready else _LOAD_HINT
        return Failure(host, f"{what} within {seconds:g} s", advice)
    printed = one.errors.decode("utf-8", "replace")
    lines = [
        line for text in printed.splitlines() if (line := text.strip()) and not line.startswith(_KUBECTL_END)
    ]
    last = lines[-1] if lines else ""
    if one.process.returncode == _NOT_FOUND and "python3" in last:
        return Failure(host, "no python3 there", _PYTHON_MISSING_HINT)
    if "3.8 or later" in last:
        return Failure(host, last, _PYTHON_MISSING_HINT)
    if not last:
        code = one.process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended without a message, exit code {code}"
        return Failure(host, f"{program} {how}", _NO_INPUT_HINT if code == 0 and not one.is_ready else None)
    if one.process.returncode == ssh.FAILED:
        return Failure(host, last, ssh.hint(host, printed))
    if one.is_ready:
        return Failure(host, last)
    return Failure(host, "; ".join(lines[-_MOST_LINES:]))


def parse(text: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words of a command with ``{host}``.

    Raises:
        UsageError: The command has no ``{host}`` or an open quote, or its program does not exist.

    >>> parse("ls -d {host}", {"PATH": "/bin:/usr/bin"})
    ('ls', '-d', '{host}')
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        raise UsageError(
            f'--via "{text}": a quote or backslash has no end',
            hint=f"quote the whole command once: {_EXAMPLE}",
        ) from None
    if not any(_PLACE in word for word in words):
        raise UsageError(
            f'--via "{text}" has no {_PLACE}',
            hint=f"write {_PLACE} where the command needs the host: {_EXAMPLE}",
        )
    if on_path(words[0], environ) is None:
        raise UsageError(
            f'--via "{text}": no program {words[0]} on PATH', hint="install it, or specify its path"
        )
    return words


def command(words: Sequence[str], host: str) -> list[str]:
    """Return the command line for one host; a program and its arguments can be appended.

    Raises:
        UsageError: The name is not that of a host: the command could take it for an option.

    >>> command(("kubectl", "exec", "-i", "{host}", "--"), "worker-0")
    ['kubectl', 'exec', '-i', 'worker-0', '--']
    """
    if why := host_list.why_not_a_host(host, ipv6=True):
        raise UsageError(f"--via is not used for {escaped(host)!r}: it {why}")
    return [word.replace(_PLACE, host) for word in words]
