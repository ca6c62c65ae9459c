"""The rank of a process and its MPI world, from the environment that mpirun or Slurm has set."""

from __future__ import annotations

from hccl_tools.errors import UsageError
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping


class MpiWorld(NamedTuple):
    """The rank of a process among all processes of its job; ``job`` is the same in all of them."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    job: str
    launcher: str

    @property
    def one_host(self) -> bool:
        """Whether all processes are on this host."""
        return self.local_size == self.size

    @property
    def is_open_mpi(self) -> bool:
        """Whether Open MPI has started the processes."""
        return self.launcher == "Open MPI"

    @property
    def is_mpich(self) -> bool:
        """Whether MPICH has started the processes."""
        return self.launcher == "MPICH"


#: Characters of a wrong value that an error shows.
_MOST_SHOWN = 80
#: launcher: rank, size, local rank, local size, job. Open MPI 4 and 5 both set the first row (measured).
_FAMILIES = {
    "Open MPI": (
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE",
    ),
    "MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_PORT"),
}  # fmt: skip


def from_environment(environ: Mapping[str, str]) -> MpiWorld:
    """Return the rank and world of this process.

    Raises:
        UsageError: The rank is not set, or a variable is not a number.
    """
    for launcher, names in _FAMILIES.items():
        if names[0] in environ:
            numbers = [_number(environ, name) for name in names[:4]]
            job = _printable(environ.get(names[4], ""))
            return _checked(MpiWorld(numbers[0], numbers[1], numbers[2], numbers[3], job, launcher))
    if "SLURM_STEP_ID" in environ and "SLURM_PROCID" in environ:
        rank, local_rank = _number(environ, "SLURM_PROCID"), _number(environ, "SLURM_LOCALID")
        size = _number(environ, "SLURM_NTASKS")
        job = _printable(f"{environ.get('SLURM_JOB_ID')}.{environ.get('SLURM_STEP_ID')}")
        return _checked(MpiWorld(rank, size, local_rank, _slurm_local_size(environ, size), job, "Slurm"))
    raise UsageError(
        "this process was not started by mpirun or srun: OMPI_COMM_WORLD_RANK is not set",
        hint="mpirun -n 2 python -m hccl_tools.launch.rank train.py",
    )


def _checked(world: MpiWorld) -> MpiWorld:
    """Return a world whose numbers fit together.

    Raises:
        UsageError: They do not.
    """
    if world.rank < world.size and world.local_rank < world.local_size <= world.size:
        return world
    raise UsageError(
        f"the variables of {world.launcher} do not fit together: rank {world.rank} of {world.size}, on this "
        f"host {world.local_rank} of {world.local_size}",
        hint="start the ranks with mpirun or srun, and do not set these variables",
    )


def _printable(text: str) -> str:
    """Return the name of a job, which messages contain, without line breaks and other control characters."""
    return "".join(sign for sign in text if sign.isprintable())


def _number(environ: Mapping[str, str], name: str, default: str = "") -> int:
    text = environ.get(name, default)
    number = whole_number(text)
    if number is None:
        raise _no_number(name, text)
    return number


def _no_number(name: str, text: str) -> UsageError:
    what = f'{name}="{_printable(text[:_MOST_SHOWN])}" is not a number'
    return UsageError(what, hint="start the ranks with mpirun or srun")


def _slurm_local_size(environ: Mapping[str, str], size: int) -> int:
    """Return this node's entry of SLURM_STEP_TASKS_PER_NODE, such as ``2(x3),1``."""
    name, node = "SLURM_STEP_TASKS_PER_NODE", _number(environ, "SLURM_NODEID", "0")
    for part in environ.get(name, str(size)).split(","):
        text, _, times = part.partition("(x")
        count, nodes = whole_number(text), whole_number(times.rstrip(")") or "1")
        if count is None or nodes is None:
            raise _no_number(name, part)
        if node < nodes:
            return count
        node -= nodes
    return size
