"""Survey hosts with Open MPI's mpirun: over ssh, each process sends its answer with mpi4py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.errors import DiscoveryError, LaunchError
from hccl_tools.gathering import commands, engine_run
from hccl_tools.gathering.commands import PROGRAM, SshStart
from hccl_tools.gathering.engine_run import EngineOutcome, hanging, indented, misbehaving
from hccl_tools.gathering.failures import HCCL_TOOLS_MISSING_HINT, MPI4PY_MISSING_HINT, Failure
from hccl_tools.gathering.messages import SurveyAnswer, SurveyTask
from hccl_tools.gathering.stdout_framing import MOST_OF_HOST, MPIRUN_LABEL, TOO_MUCH, EngineOutput
from hccl_tools.host.local_addresses import is_this_host
from hccl_tools.programs import bounded_run, ssh
from hccl_tools.programs.lookup import MPIRUN, ProgramMissingError
from hccl_tools.programs.mpirun import find_mpirun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.gathering.options import GatherOptions
    from hccl_tools.gathering.table_copy import CopyRequest
    from hccl_tools.host.observation import ObservationRequest
    from hccl_tools.host.survey import SurveyRequest

#: The share of the time limit that is reserved to determine why hosts did not answer.
_DIAGNOSIS_SHARE = 0.2

#: The number of simultaneous connections; sshd refuses more than a few unauthenticated ones.
_AT_ONCE = 32
_NOT_FOUND = 127
_NOT_EXECUTABLE = 126
#: One host that does not answer leaves all others without a process.
_WAITS_FOR_ALL = "mpirun starts no process before all hosts have answered: --engine ssh asks each host alone"
#: The check, for ``python -c``: its exit message is the cause. mpirun starts the daemon on each host.
_CHECK = """\
import importlib.util, os, shutil, sys
for name in ("hccl_tools", "mpi4py"):
    if importlib.util.find_spec(name) is None:
        sys.exit("missing " + name)
daemon = sys.argv[1]
if not (os.access(daemon, os.X_OK) if "/" in daemon else shutil.which(daemon)):
    sys.exit("missing " + daemon)
"""


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
    start = _ssh_start(options)
    limit = seconds * (1 - _DIAGNOSIS_SHARE)
    with TemporaryDirectory(prefix="hccl-tools-gather-") as folder:
        file = Path(folder, "answers.json")
        # An additional MPI process on this host collects the answers: mpirun's streams may mix long lines.
        first = SurveyTask(request=request, seconds=limit - 1, collect=str(file))
        tasks = [("localhost", first)]
        tasks += [(host, SurveyTask(host, places[host], request, limit - 1)) for host in hosts]
        members = [(host, [*own_python.script(PROGRAM), host, task.to_json()]) for host, task in tasks]
        # The answers come over MPI, all at once: the processes that have started are counted. The additional
        # process has number 0.
        output = EngineOutput(hosts, label=MPIRUN_LABEL, first=1, answered=options.answered, by_start=True)
        ended = engine_run.run(commands.mpirun(start, members, labelled=True), limit, options.environ, output)
        collected: dict[str, str] = {}
        with suppress(OSError, ValueError):
            collected = json.loads(file.read_text(encoding="utf-8"))
    # Standard output has failures only. A process may write any name there: the label of its line decides.
    printed = [SurveyAnswer.from_json(text, host) for host, text in ended.output.texts().items()]
    answers = {one.host: one for one in printed if one.has_failed}
    answers |= {
        host: SurveyAnswer.from_json(collected[str(rank)], host)
        for rank, host in enumerate(hosts, 1)
        if str(rank) in collected
    }
    causes = misbehaving([host for host in hosts if host not in answers], ended)
    known = {cause.host for cause in causes}
    silent = [host for host in hosts if host not in answers and host not in known]
    if not silent and not causes:
        return EngineOutcome(answers, [])
    unreached = [host for host in silent if host not in ended.output.began]  # mpirun's ssh reached the others
    causes += diagnose(unreached, start, max(2.0, seconds * _DIAGNOSIS_SHARE - 1))
    if ended.output.is_flooded and causes:  # mpirun starts no host then: the others can be asked again
        return EngineOutcome(answers, causes)
    if ended.status is None or collected:
        causes += hanging(silent, causes, ended, options.seconds, unstarted=_WAITS_FOR_ALL)
    return EngineOutcome(answers, causes, indented(ended))


def _ssh_start(options: GatherOptions) -> SshStart:
    # The mpirun of a virtual environment that is not activated is next to its Python.
    beside = os.path.dirname(sys.executable)  # noqa: PTH120
    path = os.pathsep.join([options.environ.get("PATH", os.defpath), beside])
    try:
        mpirun = find_mpirun({**options.environ, "PATH": path})
    except ProgramMissingError:
        raise DiscoveryError(
            "no mpirun on PATH", hint=f"install one: {MPIRUN}; or use --engine ssh"
        ) from None
    except LaunchError as error:
        raise DiscoveryError(
            error.head, lines=error.lines, hint="put Open MPI's mpirun first on PATH"
        ) from None
    if not mpirun.is_open_mpi:
        raise DiscoveryError(
            f"{mpirun.path} is not Open MPI's mpirun, which --hosts requires",
            hint="put Open MPI's mpirun first on PATH, or start the processes yourself: "
            "mpirun -n 16 -ppn 1 hccl-tools gen --gather",
        )
    agent = ssh.command(options.ssh, {**options.environ, "PATH": path}, wait=options.connect_seconds)
    return SshStart(mpirun, agent, as_root=os.geteuid() == 0)


def diagnose(hosts: Sequence[str], start: SshStart, seconds: float) -> list[Failure]:
    """Return the failure of each host that cannot be used, as far as ssh reports it.

    This host needs no ssh and is skipped. ``seconds`` is the time limit for each host.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda host: None if is_this_host(host) else _cause(host, start, seconds), hosts)
        return [failure for failure in found if failure is not None]


def _cause(host: str, start: SshStart, seconds: float) -> Failure | None:
    daemon = start.mpirun.daemon
    argv = ssh.on_host(start.ssh, host, [*own_python.script(_CHECK), daemon])
    try:
        done = bounded_run.run(argv, seconds, os.environ, most=MOST_OF_HOST)
    except bounded_run.TooMuchOutputError:
        return Failure(host, TOO_MUCH)
    except subprocess.TimeoutExpired:
        return Failure(
            host, f"no answer over ssh within {seconds:.0f} s", "check its load and its file systems"
        )
    return _explain(host, done.code, done.errors, daemon) if done.code else None


def _explain(host: str, status: int, printed: str, daemon: str) -> Failure:
    last = ssh.last_line(printed)
    if status == ssh.FAILED:
        return Failure(host, last or "ssh failed without a message", ssh.hint(host, printed))
    if status in {_NOT_FOUND, _NOT_EXECUTABLE}:
        what = "does not exist" if status == _NOT_FOUND else "cannot be run"
        return Failure(host, f"{sys.executable} {what} there", "install hccl-tools there, in the same folder")
    if last == "missing hccl_tools":
        return Failure(
            host, f"hccl-tools is not installed there for {sys.executable}", HCCL_TOOLS_MISSING_HINT
        )
    if last == "missing mpi4py":
        return Failure(host, "mpi4py is not installed there", MPI4PY_MISSING_HINT)
    if last == f"missing {daemon}":
        return Failure(
            host, f"Open MPI is not installed there: no {daemon}", "install the same version there"
        )
    return Failure(host, last or f"its Python exited with exit code {status}")
