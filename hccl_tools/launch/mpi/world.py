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
            rank, size, local_rank, local_size = (_number(environ, name) for name in names[:4])
            return MpiWorld(rank, size, local_rank, local_size, environ.get(names[4], ""), launcher)
    if "SLURM_STEP_ID" in environ and "SLURM_PROCID" in environ:
        rank, local_rank = _number(environ, "SLURM_PROCID"), _number(environ, "SLURM_LOCALID")
        size = _number(environ, "SLURM_NTASKS")
        job = f"{environ.get('SLURM_JOB_ID')}.{environ.get('SLURM_STEP_ID')}"
        return MpiWorld(rank, size, local_rank, _slurm_local_size(environ, size), job, "Slurm")
    raise UsageError(
        "this process was not started by mpirun or srun: OMPI_COMM_WORLD_RANK is not set",
        hint="mpirun -n 2 python -m hccl_tools.launch.rank train.py",
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    number = whole_number(environ.get(name, ""))
    if number is None:
        what = f'{name}="{environ.get(name, "")}" is not a number'
        raise UsageError(what, hint="start the ranks with mpirun or srun")
    return number


def _slurm_local_size(environ: Mapping[str, str], size: int) -> int:
    """Return this node's entry of SLURM_STEP_TASKS_PER_NODE, such as ``2(x3),1``."""
    counts: list[int] = []
    for part in environ.get("SLURM_STEP_TASKS_PER_NODE", str(size)).split(","):
        count, _, times = part.partition("(x")
        counts += [int(count)] * int(times.rstrip(")") or 1)
    node = int(environ.get("SLURM_NODEID", "0"))
    return counts[node] if node < len(counts) else size
