"""The variables of a rank: what is set for which start, what is removed, and what each is for.

``VARIABLES`` is the contract; the tests go through it for every start and compare docs/environment.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.planning.placement import RankPlacement
    from hccl_tools.launch.planning.visible_devices import VisibleDevices


class JobFacts(NamedTuple):
    """What all ranks share: world size, where they meet, the table's path, this server's physical devices.

    ``devices_are_placeholders`` says that the devices are only numbers. ``is_open_mpi`` is false where
    another MPI than Open MPI starts them.
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
    #: An address and port of each rank, by rank; none where the ranks have no port to meet at.
    endpoints: tuple[str, ...] = ()


class Variable(NamedTuple):
    """One variable of the contract: in which families of starts it is set, to what, and what reads it."""

    name: str
    family: str
    value: Callable[[RankPlacement, JobFacts], str | None]
    meaning: str


#: Which families of variables a start sets. ``mpi`` keeps what mpirun itself has set. Paddle's own launcher
#: sets its names whatever the program is, and so do we: scripts that came from there read them.
FAMILIES: dict[Start, tuple[str, ...]] = {
    "table": ("rank", "rank table", "paddle"),
    "cluster": ("rank", "rank table", "cluster", "paddle"),
    "mpi": ("rank", "visible devices"),
    "torch": ("rank", "torch", "visible devices", "paddle"),
}
#: By this a rank is told of a rehearsal on the CPU.
BACKEND_VARIABLE = "PADDLE_DISTRI_BACKEND"
#: Bytes of one variable: Linux starts no program with 128 KiB, and a half of that fills a whole screen.
_LONGEST = 32_000


def _device_id(seat: RankPlacement, job: JobFacts) -> str:
    if "visible devices" in FAMILIES[job.start]:
        return str(seat.local_rank)
    if job.devices_are_placeholders:
        return str(seat.device)
    return str(job.visible.device_id(seat.device))


def _endpoint(seat: RankPlacement, job: JobFacts) -> str | None:
    return job.endpoints[seat.rank] if job.endpoints else None


def _chooses_visible(job: JobFacts) -> bool:
    return "visible devices" in FAMILIES[job.start] and not (job.cpu or job.devices_are_placeholders)


def _visible(_seat: RankPlacement, job: JobFacts) -> str | None:
    if not _chooses_visible(job):
        return None
    return ",".join(str(job.visible.runtime_id(device)) for device in sorted(job.devices))


VARIABLES = (
    Variable("RANK_ID", "rank", lambda seat, _: str(seat.rank), "the rank, 0 to RANK_SIZE-1"),
    Variable("RANK_SIZE", "rank", lambda _, job: str(job.world_size), "how many ranks the job has"),
    Variable("DEVICE_ID", "rank", _device_id, "the device as the process counts those it sees"),
    Variable("DEVICE_NUM", "rank", lambda seat, _: str(seat.local_size), "devices of this server in the job"),
    Variable("SERVER_ID", "rank", lambda seat, _: str(seat.server_index), "this server's index in the table"),
    Variable("RANK_TABLE_FILE", "rank table", lambda _, job: job.table, "the copy of the table, absolute"),
    Variable("MS_ROLE", "cluster", lambda _, __: "MS_WORKER", "MindSpore: a rank, not the scheduler"),
    Variable("MS_WORKER_NUM", "cluster", lambda _, job: str(job.world_size), "MindSpore: how many ranks"),
    Variable("MS_SCHED_HOST", "cluster", lambda _, job: job.master, "MindSpore: the scheduler's address"),
    Variable("MS_SCHED_PORT", "cluster", lambda _, job: str(job.port), "MindSpore: the scheduler's port"),
    Variable("MS_NODE_ID", "cluster", lambda seat, _: str(seat.rank), "MindSpore: fixes the rank"),
    Variable("RANK", "torch", lambda seat, _: str(seat.rank), "torch: the rank"),
    Variable("WORLD_SIZE", "torch", lambda _, job: str(job.world_size), "torch: how many ranks"),
    Variable("LOCAL_RANK", "torch", lambda seat, _: str(seat.local_rank), "torch: place among the server's"),
    Variable(
        "LOCAL_WORLD_SIZE", "torch", lambda seat, _: str(seat.local_size), "torch: ranks on this server"
    ),
    Variable("MASTER_ADDR", "torch", lambda _, job: job.master, "torch: where the ranks meet"),
    Variable("MASTER_PORT", "torch", lambda _, job: str(job.port), "torch: the port there"),
    Variable("PADDLE_TRAINER_ID", "paddle", lambda seat, _: str(seat.rank), "paddle: the rank"),
    Variable("PADDLE_TRAINERS_NUM", "paddle", lambda _, job: str(job.world_size), "paddle: how many ranks"),
    Variable(
        "PADDLE_RANK_IN_NODE", "paddle", lambda seat, _: str(seat.local_rank), "paddle: place on this server"
    ),
    Variable("PADDLE_CURRENT_ENDPOINT", "paddle", _endpoint, "paddle: this rank's address and port"),
    Variable("FLAGS_selected_npus", "paddle", _device_id, "paddle: the device, as DEVICE_ID"),
    Variable(
        BACKEND_VARIABLE,
        "paddle",
        lambda _, job: "gloo" if job.cpu else "xccl",
        "paddle: what it communicates by",
    ),
    Variable(
        "PADDLE_XCCL_BACKEND",
        "paddle",
        lambda _, job: None if job.cpu else "npu",
        "paddle: the kind of device that is",
    ),
    Variable(
        "ASCEND_RT_VISIBLE_DEVICES",
        "visible devices",
        _visible,
        "this server's devices in the job, ascending",
    ),
    Variable(
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "kept mpi",
        _device_id,
        "where OMPI_* are kept, MindSpore copies it to DEVICE_ID",
    ),
)

#: What another launcher, a platform or an older run left in the shell and would mislead a rank.
STALE_NAMES = frozenset(
    {
        "RANK_ID", "RANK_SIZE", "DEVICE_ID", "DEVICE_NUM", "SERVER_ID", "RANK_TABLE_FILE",
        "MINDSPORE_HCCL_CONFIG_PATH", "MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM", "MS_SERVER_NUM",
        "MS_SCHED_HOST", "MS_SCHED_PORT",
    }
)  # fmt: skip
_TORCH_NAMES = frozenset(variable.name for variable in VARIABLES if variable.family == "torch")
#: What mpirun sets for its ranks, MPICH's the last three; OMPI_MCA_* and OMPI_ALLOW_RUN_AS_ROOT* are the
#: user's settings.
MPI_PREFIXES = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "HYDI_", "MPI_LOCAL")
_USER_MPI_PREFIXES = ("OMPI_MCA_", "OMPI_ALLOW_RUN_AS_ROOT", "PRTE_MCA_", "PRTE_ALLOW", "PMIX_MCA_")
_PADDLE_PREFIXES = ("PADDLE_", "FLAGS_selected_")


def families(job: JobFacts) -> set[str]:
    """Return the families of variables that this job sets."""
    chosen = set(FAMILIES[job.start])
    if job.start == "mpi" and job.cpu:
        # MindSpore's CPU back end has no MPI start of its own: it meets at the scheduler.
        chosen.add("cluster")
    if job.start == "torch" and job.pass_table:
        chosen.add("rank table")
    if job.is_open_mpi and (job.keep_mpi or job.start == "mpi"):
        chosen.add("kept mpi")
    return chosen


def rank_environment(seat: RankPlacement, job: JobFacts) -> dict[str, str]:
    """Return what is set for one rank on top of the cleaned environment."""
    chosen = families(job)
    values = ((name, value(seat, job)) for name, family, value, _meaning in VARIABLES if family in chosen)
    return {name: text for name, text in values if text is not None}


def scheduler_environment(job: JobFacts) -> dict[str, str]:
    """Return what is set for MindSpore's scheduler: it meets the ranks, and holds no device."""
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


def is_stale(name: str, *, start: Start, keep_mpi: bool = False) -> bool:
    """Tell whether a variable of the caller's shell must not reach a rank."""
    if name in STALE_NAMES or name.startswith(_PADDLE_PREFIXES):
        return True
    if start == "torch" and (name in _TORCH_NAMES or name.startswith("TORCHELASTIC_")):
        return True
    if not name.startswith(MPI_PREFIXES) or keep_mpi:
        return False
    return start != "mpi" or not name.startswith(_USER_MPI_PREFIXES)


def cleaned(
    environ: Mapping[str, str], *, start: Start, keep_mpi: bool = False, also: Collection[str] = ()
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the environment without stale variables and ``also``, and the removed ones' names, sorted."""
    removed = {name for name in environ if name in also or is_stale(name, start=start, keep_mpi=keep_mpi)}
    kept = {name: value for name, value in environ.items() if name not in removed}
    return kept, tuple(sorted(removed))


def common_environment(
    environ: Mapping[str, str], *, buffered: bool, endpoints: Iterable[str] = ()
) -> dict[str, str]:
    """Return what is set for every process: no buffers, so that a log's order is the order of writes.

    ``endpoints`` are paddle's of all ranks, by rank: once here, for in each rank of a large job they would be
    megabytes. In jobs of thousands of ranks they would be too long for a variable, and are left out.
    """
    found = {} if buffered or "PYTHONUNBUFFERED" in environ else {"PYTHONUNBUFFERED": "1"}
    if (text := ",".join(endpoints)) and len(text) < _LONGEST:
        found["PADDLE_TRAINER_ENDPOINTS"] = text
    return found


def parse_assignments(texts: Iterable[str], *, where: str) -> dict[str, str]:
    """Read ``K=V`` texts as they stand on a command line or in a file.

    Raises:
        UsageError: A text has no ``=`` or no name before it.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or any(letter.isspace() for letter in name.strip()):
            raise UsageError(f'{where}: "{text}" is not NAME=VALUE', hint="for example --env GLOG_v=2")
        found[name.strip()] = value
    return found


def read_environment_file(path: str) -> dict[str, str]:
    """Read a file of ``NAME=VALUE`` lines; blank lines, ``#`` lines, ``export`` and outer quotes are taken.

    Blanks around the ``=`` are none of the value's.

    Raises:
        UsageError: The file cannot be read, or a line is not an assignment; the message names the line.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:  # Windows editors begin a file with a byte order mark.
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"--env-file {path}: {reason}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        assignment = text.removeprefix("export ").strip()
        for name, value in parse_assignments([assignment], where=f"{path}:{number}").items():
            inner = value.strip()
            quoted = len(inner) >= 2 and inner[0] == inner[-1] and inner[0] in "\"'"
            found[name] = inner[1:-1] if quoted else inner
    return found
