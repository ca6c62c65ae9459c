"""The environment variables of a rank: which start sets them, their values, and which are removed.

A new variable needs a row in ``VARIABLES`` and a row in docs/en/reference/environment.md; a test compares
the rows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hccl_tools.launch.model.variables import (
    HEARTBEAT_VARIABLE,
    LOG_PATH_VARIABLE,
    RESTART_VARIABLE,
    TORCH_RESTART_VARIABLE,
)
from hccl_tools.processes.procfs import RUN_VARIABLE
from hccl_tools.processes.stack_dump import RECORDER_SIGNAL, RECORDER_VARIABLE
from hccl_tools.records import NamedTuple
from hccl_tools.runs.names import BACKUP_VARIABLES, PIPE_STEM, heartbeat, plog_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import VisibleDevices


#: The default for the maximum length of PADDLE_TRAINER_ENDPOINTS in bytes, as in Paddle's launcher.
ENDPOINTS_LIMIT = 48_000
#: Linux refuses a variable of 128 KiB, its name included.
LONGEST_VALUE = (1 << 17) - 64


class JobFacts(NamedTuple):
    """The facts about a job from which the values of variables are computed.

    ``master`` and ``port`` are the rendezvous address of the ranks, ``table`` is the path of their copy of
    the table and ``devices`` are the physical devices of the rank's server. ``devices_are_placeholders``
    means that there are no devices behind the ids. ``is_open_mpi`` is false if another MPI starts the ranks.
    """

    start: Start
    world_size: int
    master: str
    port: int
    table: str | None
    devices: tuple[int, ...]
    visible: VisibleDevices
    cpu: bool = False
    devices_are_placeholders: bool = False
    keep_mpi: bool = False
    pass_table: bool = False
    is_open_mpi: bool = True
    #: The address and port of each rank, in rank order; empty if the ranks have no rendezvous port.
    endpoints: tuple[str, ...] = ()
    #: The maximum length of the list of all endpoints in a variable, in bytes.
    endpoints_limit: int = ENDPOINTS_LIMIT
    #: The number of servers; ``None`` if the other servers are unknown.
    servers: int | None = None
    #: The super pods of the servers, by index; empty if the table has fewer than two.
    super_pods: tuple[str | None, ...] = ()
    #: The index of this host's server, and its interface with the address of the job; ``None`` if unknown.
    interface: tuple[int, str] | None = None
    run_dir: str | None = None
    #: The directory of the ranks' logs, absolute; ``None`` for the run directory.
    log_dir: str | None = None
    #: Whether the output of the ranks' Python is buffered.
    buffered: bool = False
    #: The variables with ``users_first`` that the user has set.
    set_by_user: frozenset[str] = frozenset()
    under_mpirun: bool = False
    #: Whether the ranks do not inherit the variables that limit the visible devices.
    ignore_visible: bool = False
    #: Whether the launcher reads the heartbeats of the ranks.
    heartbeats: bool = False
    #: The folder that is put at the front of PYTHONPATH, and the user's PYTHONPATH; ``None`` without
    #: ``--faulthandler``.
    python_path: str | None = None
    #: Whether the ranks record their collectives: ``--flight-recorder``.
    flight_recorder: bool = False
    #: The number of restarts before this start.
    restart: int = 0


class Variable(NamedTuple):
    """One variable of a rank."""

    name: str
    #: Computes the value; None leaves the variable unset.
    value: Callable[[RankPlacement, JobFacts], str | None]
    #: The description in docs/en/reference/environment.md.
    meaning: str
    #: Whether all processes of the job have the same value, which is then kept once.
    shared: bool = False
    #: Whether a value that the user has set is kept.
    users_first: bool = False


#: The families of variables that a start sets, besides "process", "supervision" and "logs". ``mpi`` keeps
#: those of mpirun.
#: Paddle's names are set for any program, as Paddle's launcher does: ported scripts read them.
FAMILIES: dict[Start, tuple[str, ...]] = {
    "table": ("rank", "rank table", "paddle"),
    "cluster": ("rank", "rank table", "cluster", "paddle"),
    "mpi": ("rank", "super pods", "visible devices"),
    "torch": ("rank", "torch", "gloo", "super pods", "visible devices", "paddle"),
}
#: Marks the job as a rehearsal on the CPU.
BACKEND_VARIABLE = "PADDLE_DISTRI_BACKEND"
_ENDPOINTS_VARIABLE = "PADDLE_TRAINER_ENDPOINTS"


def _device_id(placement: RankPlacement, job: JobFacts) -> str:
    if "visible devices" in FAMILIES[job.start]:
        return str(placement.local_rank)
    if job.devices_are_placeholders:
        return str(placement.device)
    return str(job.visible.device_id(placement.device))


def _endpoint(placement: RankPlacement, job: JobFacts) -> str | None:
    return job.endpoints[placement.rank] if job.endpoints else None


def _interface(placement: RankPlacement, job: JobFacts) -> str | None:
    server, name = job.interface or (None, None)
    return name if server == placement.server_index else None


def _super_pod(placement: RankPlacement, job: JobFacts) -> str | None:
    """Return the super pod of a rank that has no table, in which HCCL would find it.

    Without the variable HCCL takes the physical super pod, whatever the scheduler has divided the job into.
    ascend-operator sets the variable in pods of an AscendJob (env.go, addHcclSuperPodIdEnv), not in those of
    Volcano's Job.
    """
    return None if job.cpu or job.pass_table or not job.super_pods else job.super_pods[placement.server_index]


def _has_long_endpoints(job: JobFacts) -> bool:
    """Return whether the list of all endpoints is too long for a variable (thousands of ranks)."""
    # Each address is followed by a comma, except the last one.
    return sum(map(len, job.endpoints)) + len(job.endpoints) - 1 >= job.endpoints_limit


def _endpoints(_placement: RankPlacement, job: JobFacts) -> str | None:
    """Return the endpoints of all ranks, or None if there are none or the value is too long.

    All ranks share this value: a copy per rank of a large job would take megabytes.
    """
    return None if not job.endpoints or _has_long_endpoints(job) else ",".join(job.endpoints)


def _backup(_placement: RankPlacement, job: JobFacts) -> str | None:
    return f"{job.run_dir}/{BACKUP_VARIABLES}" if job.run_dir and _has_long_endpoints(job) else None


def backup_variables(job: JobFacts) -> bytes | None:
    """Return the content of the file of PADDLE_BACKUP_ENV_PATH, or None if all variables can be set.

    Paddle's ranks read a variable that is not set from this file.
    """
    if not _has_long_endpoints(job):
        return None
    return json.dumps({_ENDPOINTS_VARIABLE: ",".join(job.endpoints)}).encode()


def _log_path(placement: RankPlacement, job: JobFacts) -> str | None:
    if job.cpu or job.run_dir is None:
        return None
    return f"{job.run_dir}/{plog_folder(placement.rank)}"


def _heartbeat(placement: RankPlacement, job: JobFacts) -> str | None:
    return f"{job.run_dir}/{heartbeat(placement.rank)}" if job.heartbeats and job.run_dir else None


def _visible(_placement: RankPlacement, job: JobFacts) -> str | None:
    if "visible devices" not in FAMILIES[job.start] or job.cpu or job.devices_are_placeholders:
        return None
    return ",".join(str(job.visible.runtime_id(device)) for device in sorted(job.devices))


#: The beginning of the paths of torch_npu's dumps.
_TRACE_STEM = f"{{run_dir}}/{PIPE_STEM}"


def _of_recorder(name: str, value: str, meaning: str, *, users_first: bool = True) -> Variable:
    """Return a variable of the flight recorder, with torch's default; ``{run_dir}`` is the run directory.

    The names are those of torch 2.13 and of torch_npu's sources of August 2026 (ProcessGroupHCCL.cpp,
    TraceUtils.h). Older versions ignore the names that they do not know.
    """

    def get(_placement: RankPlacement, job: JobFacts) -> str | None:
        return value.format(run_dir=job.run_dir) if job.flight_recorder and job.run_dir else None

    said = f"{meaning}; only with `--flight-recorder`"
    return Variable(name, get, said, shared=True, users_first=users_first)


#: The variables by family. The family decides which starts set them, and remove the caller's values.
VARIABLES: dict[str, tuple[Variable, ...]] = {
    "process": (
        Variable(
            "PYTHONUNBUFFERED",
            lambda _, job: None if job.buffered else "1",
            "`1`, so that a log has the order of the writes; not with `--buffered`, or if you set it",
            shared=True,
            users_first=True,
        ),
        Variable(RUN_VARIABLE, lambda _, job: job.run_dir, "the run directory", shared=True),
        Variable(
            RESTART_VARIABLE, lambda _, job: str(job.restart), "the number of restarts so far", shared=True
        ),
        Variable(
            "PYTHONFAULTHANDLER",
            lambda _, job: None if job.python_path is None else "1",
            "`1`: a crash writes the Python stacks to the log; only with `--faulthandler`",
            shared=True,
            users_first=True,
        ),
        Variable(
            "PYTHONPATH",
            lambda _, job: job.python_path,
            "yours, after a folder whose `sitecustomize` registers SIGUSR2 for stack dumps; only with "
            "`--faulthandler`",
            shared=True,
        ),
        # Otherwise MindSpore's main thread spins while another one communicates. That costs four ranks on two
        # cores three quarters of their CPU time.
        Variable(
            "MS_DEV_HOST_BLOCKING_RUN",
            lambda _, job: "1" if job.cpu else None,
            "`1`: MindSpore does not spin while ranks communicate; only with `--cpu`, not if you set it",
            shared=True,
            users_first=True,
        ),
    ),
    "supervision": (
        Variable(
            HEARTBEAT_VARIABLE,
            _heartbeat,
            "the file that `current_rank().heartbeat()` touches; only with `--hang-timeout`",
        ),
    ),
    "flight recorder": (
        _of_recorder(
            RECORDER_VARIABLE,
            str(RECORDER_SIGNAL),
            "the signal that asks the rank's Python for a dump",
            users_first=False,
        ),
        _of_recorder("TORCH_FR_BUFFER_SIZE", "2000", "torch: the collectives that are kept"),
        _of_recorder("TORCH_HCCL_TRACE_BUFFER_SIZE", "2000", "torch_npu: the collectives that are kept"),
        _of_recorder(
            "TORCH_HCCL_DUMP_ON_TIMEOUT", "1", "torch_npu: also write a dump when its own time limit is over"
        ),
        _of_recorder(
            "TORCH_HCCL_ENABLE_MONITORING", "1", "torch_npu: run the thread that writes these dumps"
        ),
        _of_recorder(
            "TORCH_HCCL_DEBUG_INFO_TEMP_FILE",
            _TRACE_STEM,
            "torch_npu: the beginning of the path of its dumps",
        ),
        _of_recorder(
            "TORCH_HCCL_DEBUG_INFO_PIPE_FILE",
            _TRACE_STEM,
            "torch_npu: the beginning of the path of the pipe that asks for a dump",
        ),
    ),
    "rank": (
        Variable("RANK_ID", lambda at, _: str(at.rank), "the rank, 0 to RANK_SIZE-1"),
        Variable("RANK_SIZE", lambda _, job: str(job.world_size), "the number of ranks of the job"),
        Variable("DEVICE_ID", _device_id, "the index of the device among the devices that the process sees"),
        Variable(
            "DEVICE_NUM", lambda at, _: str(at.local_size), "the number of devices of this server in the job"
        ),
        Variable("SERVER_ID", lambda at, _: str(at.server_index), "the index of this server in the table"),
    ),
    "rank table": (
        Variable("RANK_TABLE_FILE", lambda _, job: job.table, "the copy of the table in the run directory"),
    ),
    "cluster": (
        Variable("MS_ROLE", lambda _, __: "MS_WORKER", "MindSpore: a rank, not the scheduler"),
        Variable("MS_WORKER_NUM", lambda _, job: str(job.world_size), "MindSpore: the number of ranks"),
        Variable("MS_SCHED_HOST", lambda _, job: job.master, "MindSpore: the scheduler's address"),
        Variable("MS_SCHED_PORT", lambda _, job: str(job.port), "MindSpore: the scheduler's port"),
        Variable("MS_NODE_ID", lambda at, _: str(at.rank), "MindSpore: fixes the rank"),
    ),
    "torch": (
        Variable("RANK", lambda at, _: str(at.rank), "torch: the rank"),
        Variable("WORLD_SIZE", lambda _, job: str(job.world_size), "torch: the number of ranks"),
        Variable(
            "LOCAL_RANK",
            lambda at, _: str(at.local_rank),
            "torch: the position among the ranks of this server",
        ),
        Variable(
            "LOCAL_WORLD_SIZE", lambda at, _: str(at.local_size), "torch: the number of ranks on this server"
        ),
        Variable("MASTER_ADDR", lambda _, job: job.master, "torch: the rendezvous address"),
        Variable("MASTER_PORT", lambda _, job: str(job.port), "torch: the rendezvous port"),
        Variable(
            TORCH_RESTART_VARIABLE,
            lambda _, job: str(job.restart),
            "torch: the number of restarts so far",
            shared=True,
        ),
    ),
    "gloo": (
        Variable(
            "GLOO_SOCKET_IFNAME",
            _interface,
            "gloo (torch and paddle): the interface with this server's address; only with several servers, "
            "not if you set it",
            users_first=True,
        ),
    ),
    "super pods": (
        Variable(
            "HCCL_LOGIC_SUPERPOD_ID",
            _super_pod,
            "HCCL: the super pod of this server in the table (A3); only with several super pods, not with "
            "`--cpu` or `--pass-table`, or if you set it",
            users_first=True,
        ),
    ),
    "paddle": (
        Variable("PADDLE_TRAINER_ID", lambda at, _: str(at.rank), "paddle: the rank"),
        Variable("PADDLE_TRAINERS_NUM", lambda _, job: str(job.world_size), "paddle: the number of ranks"),
        Variable(
            "PADDLE_RANK_IN_NODE",
            lambda at, _: str(at.position),
            "paddle: the position among the ranks of this server, in rank order",
        ),
        Variable("PADDLE_GLOBAL_RANK", lambda at, _: str(at.rank), "paddle: as PADDLE_TRAINER_ID"),
        Variable("PADDLE_GLOBAL_SIZE", lambda _, job: str(job.world_size), "paddle: as PADDLE_TRAINERS_NUM"),
        Variable("PADDLE_LOCAL_RANK", lambda at, _: str(at.position), "paddle: as PADDLE_RANK_IN_NODE"),
        Variable(
            "PADDLE_LOCAL_SIZE",
            lambda at, _: str(at.local_size),
            "paddle: the ranks on this server",
        ),
        Variable(
            "PADDLE_NNODES",
            lambda _, job: None if job.servers is None else str(job.servers),
            "paddle: the number of servers",
            shared=True,
        ),
        Variable(
            "PADDLE_MASTER",
            lambda _, job: job.endpoints[0] if job.endpoints else None,
            "paddle: rank 0's address and port, where the ranks meet",
            shared=True,
        ),
        Variable("PADDLE_CURRENT_ENDPOINT", _endpoint, "paddle: this rank's address and port"),
        Variable(
            _ENDPOINTS_VARIABLE,
            _endpoints,
            "paddle: the endpoints of all ranks; from 48,000 bytes on (PADDLE_ENV_LIMIT_LEN) in the file of "
            "PADDLE_BACKUP_ENV_PATH instead",
            shared=True,
        ),
        Variable(
            "PADDLE_BACKUP_ENV_PATH",
            _backup,
            "paddle: a file in the run directory with PADDLE_TRAINER_ENDPOINTS; only if that is too long for "
            "a variable",
            shared=True,
        ),
        Variable(
            "PADDLE_LOG_DIR",
            lambda _, job: job.log_dir or job.run_dir,
            "paddle: the directory of the logs: the run directory, with `--flat-logs` that of `--log-dir`",
            shared=True,
        ),
        Variable("FLAGS_selected_npus", _device_id, "paddle: the device, as DEVICE_ID"),
        Variable(
            BACKEND_VARIABLE,
            lambda _, job: "gloo" if job.cpu else "xccl",
            "paddle: the communication backend",
        ),
        Variable(
            "PADDLE_XCCL_BACKEND",
            lambda _, job: None if job.cpu else "npu",
            "paddle: the kind of device; not set with `--cpu`",
        ),
    ),
    "visible devices": (
        Variable("ASCEND_RT_VISIBLE_DEVICES", _visible, "the devices of this server in the job, ascending"),
    ),
    "kept mpi": (
        Variable(
            "OMPI_COMM_WORLD_LOCAL_RANK",
            _device_id,
            "the device: MindSpore copies it to DEVICE_ID if OMPI_* are kept",
        ),
    ),
    "logs": (
        Variable(
            LOG_PATH_VARIABLE,
            _log_path,
            "the folder of this rank's CANN logs (plog) in the run directory; not with `--cpu`, or if you "
            "set it",
            users_first=True,
        ),
    ),
}


def names(chosen: Iterable[str]) -> set[str]:
    """Return the names of the variables of some families."""
    return {row.name for family in chosen for row in VARIABLES[family]}


def set_by_user(environ: Iterable[str]) -> frozenset[str]:
    """Return which of the names in ``environ`` keep the user's value."""
    return frozenset(row.name for rows in VARIABLES.values() for row in rows if row.users_first).intersection(
        environ
    )


def families(job: JobFacts) -> set[str]:
    """Return the families of variables that this job sets."""
    chosen = {"process", "supervision", "logs", "flight recorder", *FAMILIES[job.start]}
    if job.start == "mpi" and job.cpu:
        # MindSpore's CPU back end has no MPI start: its ranks register with the scheduler.
        chosen.add("cluster")
    if job.start == "torch" and job.pass_table:
        chosen.add("rank table")
    if job.is_open_mpi and (job.keep_mpi or job.start == "mpi"):
        chosen.add("kept mpi")
    return chosen


def rank_environment(placement: RankPlacement, job: JobFacts, *, shared: bool = False) -> dict[str, str]:
    """Return the variables of one rank; with ``shared``, the variables that all placements have in common."""
    chosen = families(job)
    rows = (row for family in VARIABLES if family in chosen for row in VARIABLES[family])
    ours = (row for row in rows if row.shared == shared and row.name not in job.set_by_user)
    values = ((row.name, row.value(placement, job)) for row in ours)
    return {name: value for name, value in values if value is not None}
