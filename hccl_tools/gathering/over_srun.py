"""Survey the nodes of a Slurm allocation with srun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.gathering import commands, engine_run
from hccl_tools.gathering.commands import PROGRAM
from hccl_tools.gathering.engine_run import EngineOutcome, hanging, indented, misbehaving
from hccl_tools.gathering.failures import Failure
from hccl_tools.gathering.messages import SurveyAnswer, SurveyTask
from hccl_tools.gathering.stdout_framing import SRUN_LABEL, EngineOutput
from hccl_tools.programs.slurm import allocated_nodes, find_srun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.gathering.engine_run import EngineRun
    from hccl_tools.gathering.options import GatherOptions
    from hccl_tools.gathering.table_copy import CopyRequest
    from hccl_tools.host.observation import ObservationRequest
    from hccl_tools.host.survey import SurveyRequest


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
    program = find_srun(options.environ)
    if program is None:
        raise DiscoveryError("no srun on PATH", hint="specify --engine ssh, or add Slurm's commands to PATH")
    if "SLURM_JOB_ID" not in options.environ:
        raise UsageError(
            "--engine slurm requires a Slurm allocation",
            hint=f"allocate nodes first: salloc -N {len(hosts)} hccl-tools gen --gather",
        )
    there = allocated_nodes(options.environ) or tuple(hosts)
    listed = options.environ.get("SLURM_JOB_NODELIST")
    outside = [Failure(host, f"not in this allocation ({listed})") for host in hosts if host not in there]
    if outside:
        return EngineOutcome({}, outside)
    task = SurveyTask(
        place=min(places[host] for host in hosts), request=request, seconds=seconds, over_mpi=False
    )
    if len(task.to_json()) > engine_run.LONGEST_ARGUMENT:
        raise UsageError("the table is too large for srun's command line", hint="specify --engine ssh")
    argv = [*own_python.script(PROGRAM), "", task.to_json()]
    in_order = sorted(hosts, key=there.index)
    command = commands.srun(program, in_order, argv)
    output = EngineOutput(in_order, label=SRUN_LABEL, answered=options.answered)
    ended = engine_run.run(command, seconds, options.environ, output)
    texts = ended.output.texts()
    answers = {host: SurveyAnswer.from_json(text, host) for host, text in texts.items()}
    silent = [host for host in hosts if host not in answers]
    causes = misbehaving(silent, ended)
    known = {cause.host for cause in causes}
    causes += [
        Failure(host, lines)
        for host in silent
        if host not in known and (lines := _messages_about(host, ended))
    ]
    if ended.status is None or answers:
        causes += hanging(silent, causes, ended, options.seconds)
    elif causes:
        named = {cause.host for cause in causes}
        causes += [Failure(host, "it ended without an answer") for host in silent if host not in named]
    return EngineOutcome(answers, causes, indented(ended))


def _messages_about(host: str, ended: EngineRun) -> str:
    lines = ended.last_lines(40, about=host)
    about = [line for line in lines if host in line.replace(":", " ").replace(",", " ").split()]
    return "; ".join(dict.fromkeys(about[:3]))
