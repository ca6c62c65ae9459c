"""Survey many hosts at once: start a process on each, collect the answers, report hosts without an answer."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from hccl_tools.errors import DiscoveryError, LaunchError, UsageError
from hccl_tools.gathering import commands, engine_run, failures, host_diagnosis
from hccl_tools.gathering.commands import PROGRAM, SshStart
from hccl_tools.gathering.failures import Failure, Gathered, GatheringError
from hccl_tools.gathering.messages import SurveyAnswer, SurveyTask
from hccl_tools.programs import ssh
from hccl_tools.programs.install_hints import MPIRUN
from hccl_tools.programs.lookup import ProgramMissingError
from hccl_tools.programs.mpirun import find_mpirun
from hccl_tools.programs.slurm import allocated_nodes, find_srun, in_allocation
from hccl_tools.records import NamedTuple
from hccl_tools.table.products import PRODUCT_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.discover.survey import SurveyRequest
    from hccl_tools.gathering.engine_run import EngineRun

Engine = Literal["mpirun", "slurm"]
#: Seconds in which all hosts must answer.
TIMEOUT = 60
#: The share of the time limit that is reserved to determine why hosts did not answer.
_DIAGNOSIS_SHARE = 0.2
_CONNECT_S = 10


class GatherOptions(NamedTuple):
    """How to reach the hosts.

    Attributes:
        engine: ``slurm`` or ``mpirun``; None selects ``slurm`` inside a Slurm allocation, else ``mpirun``.
        seconds: The time limit for all hosts together.
        allow_missing: Whether to continue without the hosts that do not answer.
        ssh: The user's ssh with its options, as typed; None selects the ssh set for Open MPI, else ``ssh``.
    """

    engine: Engine | None = None
    seconds: float = TIMEOUT
    allow_missing: bool = False
    ssh: str | None = None
    environ: Mapping[str, str] = os.environ


class _EngineOutcome(NamedTuple):
    """The result of one run of an engine, by host; ``output`` for a failure without a known host."""

    answers: dict[str, SurveyAnswer]
    causes: list[Failure]
    output: str = ""


def survey_hosts(hosts: Sequence[str], request: SurveyRequest, options: GatherOptions) -> Gathered:
    """Survey every host.

    Raises:
        GatheringError: A host did not return facts and ``allow_missing`` is off, or no host returned facts.
        UsageError: The engine is missing, or the request can apply to one host only.
    """
    if request.server_ip is not None:
        raise UsageError(
            f"--server_ip {request.server_ip} cannot be the address of {len(hosts)} hosts",
            hint="omit --server_ip: each host uses its address in the host list, else its own address",
        )
    request = _for_all(request, options.environ)
    engine = options.engine or ("slurm" if in_allocation(options.environ) else "mpirun")
    deadline = time.monotonic() + options.seconds
    answers: dict[str, SurveyAnswer] = {}
    causes: dict[str, Failure] = {}
    while pending := [host for host in hosts if host not in answers and host not in causes]:
        places = {host: place for place, host in enumerate(hosts)}
        outcome = _ENGINES[engine](pending, places, request, options, max(1.0, deadline - time.monotonic()))
        answers |= {host: answer for host, answer in outcome.answers.items() if answer.facts is not None}
        causes |= {cause.host: cause for cause in outcome.causes}
        causes |= {
            host: Failure(host, answer.message, answer.hint)
            for host, answer in outcome.answers.items()
            if answer.facts is None
        }
        if not outcome.answers and not outcome.causes:
            raise GatheringError(f"no table is written: {engine} failed\n{outcome.output}")
        if causes and not options.allow_missing:
            break
        if time.monotonic() > deadline:
            break
    left_out = [causes[host] for host in hosts if host in causes]
    if left_out and (not options.allow_missing or not answers):
        raise failures.no_answer(left_out, len(hosts))
    return Gathered([answers[host] for host in hosts if host in answers], left_out)


def _for_all(request: SurveyRequest, environ: Mapping[str, str]) -> SurveyRequest:
    """Return the request with absolute paths and the product, so that it applies to every host."""
    site = request.site
    tool, conf, info = (
        None if path is None else os.path.abspath(path)  # noqa: PTH100
        for path in (site.hccn_tool, site.hccn_conf, site.rootinfo)
    )
    if request.simulate is None and request.product is None:
        request = request._replace(product=environ.get(PRODUCT_VARIABLE) or None)
    return request._replace(site=site._replace(hccn_tool=tool, hccn_conf=conf, rootinfo=info))


def _over_mpirun(
    hosts: Sequence[str],
    places: Mapping[str, int],
    request: SurveyRequest,
    options: GatherOptions,
    seconds: float,
) -> _EngineOutcome:
    start = _ssh_start(options)
    limit = seconds * (1 - _DIAGNOSIS_SHARE)
    with TemporaryDirectory(prefix="hccl-tools-gather-") as folder:
        file = Path(folder, "answers.json")
        # An additional MPI process on this host collects the answers: mpirun's streams may mix long lines.
        first = SurveyTask(request=request, seconds=limit - 1, collect=str(file))
        tasks = [("localhost", first)]
        tasks += [(host, SurveyTask(host, places[host], request, limit - 1)) for host in hosts]
        members = [(host, [sys.executable, "-c", PROGRAM, host, task.to_json()]) for host, task in tasks]
        ended = engine_run.run(commands.mpirun(start, members), limit, options.environ)
        collected: list[str] = []
        with suppress(OSError, ValueError):
            collected = json.loads(file.read_text(encoding="utf-8"))
    texts = [*collected, *ended.output.texts().values()]
    answers = {answer.host: answer for answer in map(SurveyAnswer.from_json, texts)}
    silent = [host for host in hosts if host not in answers]
    if not silent:
        return _EngineOutcome(answers, [])
    causes = host_diagnosis.diagnose(silent, start, max(2.0, seconds * _DIAGNOSIS_SHARE - 1))
    if ended.status is None or collected:
        causes += _hanging(silent, causes, ended, options)
    return _EngineOutcome(answers, causes, _indented(ended))


def _ssh_start(options: GatherOptions) -> SshStart:
    # The mpirun of a virtual environment that is not activated is next to its Python.
    beside = os.path.dirname(sys.executable)  # noqa: PTH120
    path = os.pathsep.join([options.environ.get("PATH", os.defpath), beside])
    try:
        mpirun = find_mpirun({**options.environ, "PATH": path})
    except ProgramMissingError:
        raise DiscoveryError("no mpirun on PATH", hint=f"install one: {MPIRUN}") from None
    except LaunchError as error:
        raise DiscoveryError(error.message, hint="put Open MPI's mpirun first on PATH") from None
    if not mpirun.is_open_mpi:
        raise DiscoveryError(
            f"{mpirun.path} is not Open MPI's mpirun, which --hosts requires",
            hint="put Open MPI's mpirun first on PATH, or start the processes yourself: "
            "mpirun -n 16 -ppn 1 hccl-tools gen --gather",
        )
    wait = max(1, min(_CONNECT_S, round(options.seconds / 6)))
    agent = ssh.command(options.ssh, {**options.environ, "PATH": path}, wait=wait)
    return SshStart(mpirun, agent, as_root=os.geteuid() == 0)


def _over_srun(
    hosts: Sequence[str],
    places: Mapping[str, int],
    request: SurveyRequest,
    options: GatherOptions,
    seconds: float,
) -> _EngineOutcome:
    program = find_srun(options.environ)
    if program is None:
        raise DiscoveryError(
            "no srun on PATH", hint="specify --engine mpirun, or add Slurm's commands to PATH"
        )
    if "SLURM_JOB_ID" not in options.environ:
        raise UsageError(
            "--engine slurm requires a Slurm allocation",
            hint=f"allocate nodes first: salloc -N {len(hosts)} hccl-tools gen --gather",
        )
    there = set(allocated_nodes(options.environ) or hosts)
    listed = options.environ.get("SLURM_JOB_NODELIST")
    outside = [Failure(host, f"not in this allocation ({listed})") for host in hosts if host not in there]
    if outside:
        return _EngineOutcome({}, outside)
    task = SurveyTask(
        place=min(places[host] for host in hosts), request=request, seconds=seconds, over_mpi=False
    )
    argv = [sys.executable, "-c", PROGRAM, "", task.to_json()]
    ended = engine_run.run(commands.srun(program, hosts, argv), seconds, options.environ)
    answers = {
        host: SurveyAnswer.from_json(text) for host, text in ended.output.texts().items() if host in places
    }
    silent = [host for host in hosts if host not in answers]
    causes = [Failure(host, lines) for host in silent if (lines := _messages_about(host, ended))]
    if ended.status is None or answers:
        causes += _hanging(silent, causes, ended, options)
    return _EngineOutcome(answers, causes, _indented(ended))


#: Name of an engine -> how it surveys the hosts.
_ENGINES = {"mpirun": _over_mpirun, "slurm": _over_srun}


def _messages_about(host: str, ended: EngineRun) -> str:
    about = [
        line for line in ended.last_lines(40) if host in line.replace(":", " ").replace(",", " ").split()
    ]
    return "; ".join(dict.fromkeys(about[:3]))


def _hanging(
    silent: Sequence[str], causes: Sequence[Failure], ended: EngineRun, options: GatherOptions
) -> list[Failure]:
    known = {cause.host for cause in causes}
    found = []
    for host in (host for host in silent if host not in known):
        began = host in ended.output.began
        what = "its process started but did not answer" if began else "no process started there"
        hint = "allow more time: --gather-timeout SECONDS" if began else None
        found.append(Failure(host, f"{what} within {options.seconds:g} s", hint))
    return found


def _indented(ended: EngineRun) -> str:
    return "\n".join(f"  | {line}" for line in ended.last_lines()) or "  without a message"
