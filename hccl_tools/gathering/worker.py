"""The process that mpirun or srun starts on each host: survey the host and send the answer."""

from __future__ import annotations

import os
import signal

from hccl_tools import __version__
from hccl_tools.codec import parse
from hccl_tools.errors import HcclToolsError
from hccl_tools.gathering import mpi_transport, stdout_framing
from hccl_tools.gathering.host_survey import answer, end_with_tools
from hccl_tools.gathering.messages import FORM, SurveyAnswer, SurveyTask, versions_differ


def main(host: str, text: str) -> int:
    """Run a task; return the exit code.

    A process that cannot use MPI exits with 1, so that ``mpirun`` stops the processes that wait for it.
    """
    fields = parse(text)
    version = _own_version()
    if fields.get("form") != FORM or fields.get("version") != version:
        message, hint = versions_differ(version, str(fields.get("version")))
        stdout_framing.emit(host, SurveyAnswer(host, message=message, hint=hint).to_json())
        return 1
    task = SurveyTask.from_json(text)._replace(host=host)
    end_with_tools()
    # If anything hangs, the kernel kills this process after the time limit for its answer.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, task.seconds + 10)
    if task.collect is None:
        stdout_framing.began(host)
    if not task.over_mpi:
        place = int(os.environ.get("SLURM_PROCID", "0"))  # all tasks of Slurm have the same command line
        stdout_framing.emit(host, answer(host, place, task.request).to_json())
        return 0
    return _over_mpi(task)


def _own_version() -> str:
    return __version__


def _over_mpi(task: SurveyTask) -> int:
    try:
        world = mpi_transport.world()
    except HcclToolsError as error:
        stdout_framing.emit(
            task.host, SurveyAnswer(task.host, message=error.message, hint=error.hint).to_json()
        )
        return 1
    if task.collect is not None:
        return mpi_transport.collect_into(world, task.collect, task.seconds)
    mpi_transport.send(world, answer(task.host, task.place, task.request).to_json())
    mpi_transport.leave(world)
    return 0
