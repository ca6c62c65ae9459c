"""Compose the processes of a job and their environments, for ``launch``, ``spawn`` and a user's mpirun.

The processes are the ranks, and MindSpore's scheduler if the ranks need it. The scheduler of ``--start
cluster`` is one extra process on rank 0's host. It runs under the ranks' Python, which may not have
hccl-tools. Instead of the user's script it runs code that joins the cluster, uses no device and returns when
the ranks have exited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hccl_tools import own_python
from hccl_tools.errors import UsageError
from hccl_tools.launch.model.plan import RankProcess
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE, Inheritance
from hccl_tools.launch.planning import environment, interpreter, log_paths
from hccl_tools.launch.planning.visible_devices import LIMITS
from hccl_tools.processes.procfs import RUN_VARIABLE
from hccl_tools.records import NamedTuple
from hccl_tools.runs import job_key, names
from hccl_tools.variables.rows import OWN_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.environment import JobFacts
    from hccl_tools.launch.planning.interpreter import Interpreter
    from hccl_tools.launch.planning.job import Job
    from hccl_tools.launch.planning.placement import RankPlacement

#: The MPI variables that a process inherits.
KeptMpi = Literal["none", "settings", "all"]
#: Variables that are removed in every start: left in the caller's shell by another launcher, a platform or an
#: older run, they would mislead a rank.
_STALE_FAMILIES = ("supervision", "rank", "rank table", "cluster", "paddle")
_STALE_NAMES = (
    *("MINDSPORE_HCCL_CONFIG_PATH", "MS_SERVER_NUM"),
    # ascend-operator gives a pod of an AscendJob a place as a rank, which all its ranks would have.
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
)
#: What Paddle's launchers set for a rank, and the variables that they read as options, besides the "paddle"
#: family. Other PADDLE_* are the user's settings (PADDLE_PG_TIMEOUT), which Paddle's launcher passes on, too.
_PADDLE_NAMES = (
    *("PADDLE_AUTO_PARALLEL_CONFIG", "PADDLE_AUTO_PARALLEL_STAGE", "PADDLE_CLUSTER_TOPO_PATH"),
    *("PADDLE_DEVICES", "PADDLE_IPS", "PADDLE_JOB_ID", "PADDLE_LOCAL_DEVICE_IDS", "PADDLE_LOG_LEVEL"),
    *("PADDLE_LOG_OVERWRITE", "PADDLE_MASTER_ENDPOINT", "PADDLE_MAX_RESTART", "PADDLE_NPROC_PER_NODE"),
    *("PADDLE_ORIGINAL_CMD_ARGS", "PADDLE_PORT", "PADDLE_RANK", "PADDLE_RANK_MAPPING_PATH", "PADDLE_ROLE"),
    *("PADDLE_RUN_MODE", "PADDLE_SORT_IP", "PADDLE_STAGE_TRAINERS_NUM", "PADDLE_START_PORT"),
    *("PADDLE_TRAINER_NUM", "PADDLE_TRAINERS", "PADDLE_TRAINERS_ENDPOINTS", "PADDLE_TRAINING_ROLE"),
    *("PADDLE_WORKER_ENDPOINT", "PADDLE_WORLD_DEVICE_IDS"),
)
#: The same, by the beginning of the name: parameter servers and elastic jobs have many of them.
_PADDLE_PREFIXES = ("PADDLE_PSERVER", "PADDLE_SERVER", "PADDLE_ELASTIC_", "PADDLE_GLOO_", "FLAGS_selected_")
#: The launcher's address; a launch inside a rank must not use it.
_INTERNAL_PREFIXES = (LAUNCHER_VARIABLE,)
#: What mpirun sets for its ranks (MPICH sets the last three); OMPI_MCA_* and OMPI_ALLOW_RUN_AS_ROOT* are
#: the user's settings.
MPI_PREFIXES = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "HYDI_", "MPI_LOCAL")
_USER_MPI_PREFIXES = ("OMPI_MCA_", "OMPI_ALLOW_RUN_AS_ROOT", "PRTE_MCA_", "PRTE_ALLOW", "PMIX_MCA_")
#: ``set_device`` came with MindSpore 2.5; 2.4 has only the older function.
SCHEDULER_PROGRAM = own_python.without_current_folder(
    "import mindspore as ms; "
    "getattr(ms, 'set_device', lambda target: ms.set_context(device_target=target))('CPU'); "
    "from mindspore.communication import init; init()"
)


class JobEnvironment(NamedTuple):
    """The parts of the environments of a job's processes; ``inheritance.composed`` puts them together.

    ``inheritance`` lists the variables that a rank does not inherit, ``passed_on`` the variables that the
    process started by the launcher (a rank or mpirun) does not inherit. ``common`` is set for every process;
    ``ranks`` contains the variables of single ranks.
    """

    inheritance: Inheritance
    passed_on: Inheritance
    common: dict[str, str]
    ranks: dict[int, dict[str, str]]


def compose(placements: Sequence[RankPlacement], facts: JobFacts) -> JobEnvironment:
    """Return the environment of the ranks; ``placements`` contains all ranks of each server in it."""
    devices: dict[int, list[int]] = {}
    for one in placements:
        devices.setdefault(one.server_index, []).append(one.device)
    on = {server: facts._replace(devices=tuple(found)) for server, found in devices.items()}
    also = LIMITS if facts.ignore_visible else ()
    as_mpi, keep = facts.start == "mpi", facts.keep_mpi
    kept: KeptMpi = "all" if keep or (as_mpi and facts.under_mpirun) else "settings" if as_mpi else "none"
    removed = inheritance(facts.start, keep_mpi=kept, also=also)
    passed_on = removed
    if facts.under_mpirun:  # mpirun needs the user's settings, but not the variables of an outer mpirun.
        passed_on = inheritance("mpi", keep_mpi="all" if keep else "settings", also=also)
    return JobEnvironment(
        removed,
        passed_on,
        environment.rank_environment(placements[0], facts, shared=True),
        {one.rank: environment.rank_environment(one, on[one.server_index]) for one in placements},
    )


def check_assigned(
    assigned: Mapping[str, str], ranks: Mapping[int, Mapping[str, str]], facts: JobFacts
) -> list[str]:
    """Refuse ``--env`` variables that the ranks cannot share; return a note for each that replaces a default.

    Raises:
        UsageError: A variable differs between ranks, or specifies the table or the run directory.
    """
    notes: list[str] = []
    if RUN_VARIABLE in assigned:
        raise UsageError(f"{RUN_VARIABLE} is reserved for hccl-tools", hint="leave it out of --env")
    for name in sorted(assigned.keys() & environment.names(environment.VARIABLES)):
        ours = [found[name] for found in ranks.values() if name in found]
        if name == "RANK_TABLE_FILE" and facts.table:
            raise UsageError(
                f"{name}={assigned[name]} is not the rank table of this job",
                hint=f"specify the table with --rank-table {assigned[name]}, not with --env",
            )
        if len(set(ours)) > 1:
            raise UsageError(
                f"{name}={assigned[name]} assigns one value to all ranks, but {name} differs between ranks",
                hint=f"leave {name} out of --env: hccl-tools sets it for each rank",
            )
        if ours and ours[0] != assigned[name]:
            notes.append(f"{name}={assigned[name]} (--env) replaces {ours[0]}")
    return notes


def check_address(assigned: Mapping[str, str], count: int, places: str) -> None:
    """Refuse an address in ``--env`` that several hosts or pods would get.

    ``count`` is their number, and ``places`` what they are called.

    Raises:
        UsageError: HCCL would look for the same address on all of them.
    """
    if OWN_ADDRESS in assigned and count > 1:
        raise UsageError(
            f"{OWN_ADDRESS}={assigned[OWN_ADDRESS]} assigns one address to all {count} {places}, but each "
            "has its own",
            hint=f"leave {OWN_ADDRESS} out of --env",
        )


def wants_scheduler(facts: JobFacts, frameworks: Mapping[str, str]) -> bool:
    """Return whether MindSpore's scheduler has to run; an ``mpi`` start needs it only on the CPU."""
    if facts.start == "mpi":
        return facts.cpu and "mindspore" in frameworks
    return facts.start == "cluster"


def ranks_meet(start: str, frameworks: Mapping[str, str], *, cpu: bool) -> bool:
    """Return whether the ranks of a start need a rendezvous port on rank 0's host.

    ``frameworks`` are those of the ranks' Python: Paddle's ranks always meet at a port.
    """
    if start == "table":
        return "paddle" in frameworks
    return start in {"cluster", "torch"} or (start == "mpi" and cpu)


def scheduler_environment(job: JobFacts) -> dict[str, str]:
    """Return the variables of MindSpore's scheduler."""
    return {
        "MS_ROLE": "MS_SCHED",
        "MS_WORKER_NUM": str(job.world_size),
        "MS_SCHED_HOST": job.master,
        "MS_SCHED_PORT": str(job.port),
        "MS_NODE_ID": "sched",
        "RANK_ID": "0",
        "RANK_SIZE": str(job.world_size),
        "DEVICE_ID": "0",
    }


def inheritance(start: Start, *, keep_mpi: KeptMpi = "none", also: Iterable[str] = ()) -> Inheritance:
    """Return which variables of the caller's environment the processes of a start do not inherit.

    ``keep_mpi`` selects the variables of mpirun that are inherited: none, the user's ``settings``, or all.
    """
    torch = start == "torch"
    own = (*_STALE_FAMILIES, "torch") if torch else _STALE_FAMILIES
    return Inheritance(
        # The job key is for launchers: programs print and record their environment.
        names=(*sorted(environment.names(own)), *_STALE_NAMES, *_PADDLE_NAMES, *job_key.VARIABLES, *also),
        prefixes=(
            *_PADDLE_PREFIXES,
            *_INTERNAL_PREFIXES,
            *(("TORCHELASTIC_",) if torch else ()),
            *(MPI_PREFIXES if keep_mpi != "all" else ()),
        ),
        exceptions=_USER_MPI_PREFIXES if keep_mpi == "settings" else (),
    )


def processes(
    request: LaunchRequest,
    job: Job,
    facts: JobFacts,
    python: Interpreter,
    variables: Mapping[int, dict[str, str]],
) -> tuple[RankProcess, ...]:
    """Return the ranks, preceded by the scheduler if one is needed."""
    argv, assigned = interpreter.command(request.program, python.path), dict(request.variables.assigned)
    if facts.python_path is not None:
        assigned.pop("PYTHONPATH", None)  # It is part of the launcher's value.
    ranks = tuple(
        RankProcess(
            rank=one.rank,
            host=one.host,
            server_index=one.server_index,
            device=one.device,
            device_id=int(variables[one.rank]["DEVICE_ID"]),
            environment={**variables[one.rank], **assigned},
            argv=argv,
            log=log_paths.log_path(request.logs, one, all_here=request.hosts.all_here),
        )
        for one in job.placements
    )
    if not wants_scheduler(facts, python.frameworks):
        return ranks
    scheduler = RankProcess(
        rank=-1,
        host=job.placements[0].host,
        server_index=job.placements[0].server_index,
        device=-1,
        device_id=-1,
        environment=scheduler_environment(facts),
        argv=(python.path, "-c", SCHEDULER_PROGRAM),
        log=names.SCHEDULER_LOG,
    )
    return (scheduler, *ranks)
