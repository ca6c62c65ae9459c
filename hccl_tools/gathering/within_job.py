"""``gen --gather``: collect the facts of all hosts in a job that ``mpirun`` or ``srun`` started."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.gathering import failures, mpi_transport
from hccl_tools.gathering.failures import Failure, Gathered
from hccl_tools.gathering.host_survey import answer, end_with_tools
from hccl_tools.gathering.messages import SurveyAnswer, versions_differ
from hccl_tools.notation.host_list import why_not_a_host
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.programs.slurm import in_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.host.survey import SurveyRequest

#: Variables with the number of processes that the launcher started: Open MPI, MPICH, Slurm.
_COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


def is_started_by_launcher(environ: Mapping[str, str]) -> bool:
    """Return whether mpirun or srun started this process."""
    return in_step(environ) or any(name in environ for name in _COUNTS[:2])


def gather_within_job(
    request: SurveyRequest, *, seconds: float, allow_missing: bool, environ: Mapping[str, str] = os.environ
) -> Gathered | None:
    """Survey this host and send the answer to the first process.

    Args:
        request: The same for all processes.
        seconds: The time for which the first process waits for the others.

    Returns:
        In the first process, the answers in rank order; in the others, None.

    Raises:
        GatheringError: A host did not return facts to the first process.
        DiscoveryError: MPI is not available.
        UsageError: No launcher started this process, or the request can apply to one host only.
    """
    if not is_started_by_launcher(environ):
        raise UsageError(
            "--gather requires one process per host, started by mpirun or srun",
            hint="mpirun -n 16 --map-by ppr:1:node hccl-tools gen --gather; from one host: gen --hosts LIST",
        )
    if request.server_ip is not None:
        raise UsageError(
            f"--server_ip {request.server_ip} cannot be the address of every host", hint="omit --server_ip"
        )
    host = environ.get("SLURMD_NODENAME") or socket.gethostname()
    comm = _world(environ, host)
    end_with_tools()
    if comm.rank > 0:
        mpi_transport.send(comm, host, is_name=True)
        mpi_transport.send(comm, answer(host, comm.rank, request).to_json())
        mpi_transport.leave(comm)
        return None
    count, own = comm.size, answer(host, 0, request)
    collected = mpi_transport.collect(comm, seconds)
    names = {rank: name for rank, name in collected.names.items() if why_not_a_host(name) is None}
    answers = {0: own} | {
        rank: _same_version(SurveyAnswer.from_json(text, names.get(rank, f"rank {rank}")))
        for rank, text in collected.texts.items()
    }
    if collected.is_complete:
        mpi_transport.finish()
    silent = {rank: names.get(rank, f"rank {rank}") for rank in range(count) if rank not in answers}
    failed = [one for _, one in sorted(answers.items()) if one.facts is None]
    causes = [Failure.of_answer(one) for one in failed]
    causes += [Failure(name, f"it did not answer within {seconds:g} s") for name in silent.values()]
    found = [one for _, one in sorted(answers.items()) if one.facts is not None]
    if causes and (not allow_missing or not found):
        raise failures.no_answer(causes, count)
    return Gathered(found, causes)


def _same_version(one: SurveyAnswer) -> SurveyAnswer:
    """Return an answer, or an error if the host has another version of hccl-tools."""
    if one.version == SurveyAnswer("").version:
        return one
    message, hint = versions_differ(one.version, SurveyAnswer("").version)
    return one._replace(facts=None, message=message, refusal_hint=hint)


def _world(environ: Mapping[str, str], host: str) -> Any:
    try:
        comm = mpi_transport.world()
    except DiscoveryError as error:
        raise DiscoveryError(f"{host}: {error.head}", hint=error.hint, lines=error.lines) from None
    counts = (whole_number(environ.get(name, "")) for name in _COUNTS)
    started = next((number for number in counts if number is not None), comm.size)
    if comm.size != started:
        raise DiscoveryError(
            f"{host}: {started} processes were started, but mpi4py finds {comm.size}",
            hint="use the mpirun of mpi4py's MPI; in Slurm: `srun --mpi=pmix`, or, without MPI, "
            "`hccl-tools gen --hosts $SLURM_JOB_NODELIST`",
        )
    return comm
