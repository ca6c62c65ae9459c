"""The plan of a launch: one process per rank, and a scheduler if the framework needs one.

A plan is made once, printed by ``--dry-run`` and carried out unchanged: engines start a
supervisor on each host, which starts the processes of that host.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from hccl_tools.launch.model.variables import Inheritance
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


#: How the framework's ranks find each other: by the rank table, MindSpore's scheduler, MPI, or torch's store.
Start = Literal["table", "cluster", "mpi", "torch"]
#: The ranks whose output is shown on the terminal.
Tail = tuple[int, ...] | Literal["all"]
#: ``Plan.local_server`` on a host outside the job: the plan can be shown there but not carried out.
NOT_A_MEMBER = -1
#: The file in ``Plan.private_dir`` with the program and variables of each MPI rank; see ``planned_ranks``.
FACTS_FILE = "mpi_ranks"
#: Seconds without an answer from another host until that host counts as lost.
DEFAULT_SILENCE = 12.0
#: Seconds for a host that answers to start its part of a job.
DEFAULT_JOIN_SECONDS = 300.0
_NOTHING: Mapping[str, str] = MappingProxyType({})


class RankProcess(NamedTuple):
    """One process of the job: a rank, or MindSpore's scheduler."""

    #: RANK_ID; -1 for the scheduler.
    rank: int
    #: The address or name by which other machines reach the server.
    host: str
    server_index: int
    #: The physical device id, as in the table; -1 for the scheduler.
    device: int
    #: DEVICE_ID: the index among the devices that the process sees; differs from ``device`` in containers.
    device_id: int
    #: The variables added to the launcher's cleaned environment and ``Plan.common``.
    environment: dict[str, str]
    argv: tuple[str, ...]
    #: The path of its log, relative to the run directory or absolute.
    log: str
    #: The file in the run directory for its standard error, "" for the log.
    errors: str = ""

    @property
    def name(self) -> str:
        """The name in messages: ``rank 3`` or ``scheduler``."""
        return "scheduler" if self.rank < 0 else f"rank {self.rank}"

    @property
    def is_engine(self) -> bool:
        """Whether this is not a rank but the engine that starts the ranks."""
        return False


class Plan(NamedTuple):
    """A whole job, on all its hosts."""

    #: In rank order, the scheduler (if any) first.
    processes: tuple[RankProcess, ...]
    start: Start
    engine: str
    #: Absolute.
    run_dir: str
    #: The caller's directory, in which every process starts; absolute.
    working_dir: str
    world_size: int
    #: The absolute path of the rank table as given; ``None`` for a job without a table.
    table: str | None = None
    common: Mapping[str, str] = _NOTHING
    #: The variables that an MPI rank does not inherit from mpirun's environment.
    inheritance: Inheritance = Inheritance()
    removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    #: The index of this host's server. ``None`` if the whole job runs on this host or an engine starts it,
    #: ``NOT_A_MEMBER`` if this host is not a host of the job.
    local_server: int | None = None
    #: The choices and their reasons, by subject: rank table, product, start, python.
    chosen: Mapping[str, str] = _NOTHING
    #: The product whose rules the table follows; ``None`` without a table.
    product: str | None = None
    #: The command that an engine runs on each host of a job on several hosts; empty otherwise.
    supervisor: tuple[str, ...] = ()
    #: The names of the variables that an engine passes to the other hosts, sorted.
    exported: tuple[str, ...] = ()
    #: Whether the engine passes no other variables (``--no-export``).
    only_exported: bool = False
    #: The path of the program that the engine runs: ``/usr/bin/mpirun``; "" for ``loop``.
    engine_program: str = ""
    #: The implementation and version of the engine: ``openmpi-4``; "" for ``loop``.
    engine_flavour: str = ""
    #: For hosts that were asked what they have: the name under which each was asked, by which it is reached.
    #: Its address in the table is what it has answered, and can be that of another host.
    reached: Mapping[str, str] = _NOTHING
    #: The nodes of a Slurm allocation that the job uses, if the allocation includes other nodes.
    nodes: tuple[str, ...] = ()
    #: The command before the program of each MPI rank; empty if ranks are not MPI processes.
    shim_command: tuple[str, ...] = ()
    #: This user's private directory with the file that shims read; "" without shims.
    private_dir: str = ""
    cpu: bool = False
    #: Whether the device ids are placeholders: there is no table and fewer devices than ranks.
    devices_are_placeholders: bool = False
    #: The cores that each rank of this host is bound to, by rank; empty without ``--bind``.
    cores: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    #: Seconds without an answer from a host until it counts as lost.
    host_timeout: float = DEFAULT_SILENCE
    #: Seconds for every host to start its part, if an engine starts the hosts.
    join_timeout: float = DEFAULT_JOIN_SECONDS
    #: The ranks whose output is shown on the terminal.
    shown: Tail = (0,)
    #: The address and port to which the launchers connect if the user starts one on each host, else ``None``.
    rendezvous: tuple[str, int] | None = None

    @property
    def ranks(self) -> tuple[RankProcess, ...]:
        """The ranks without the scheduler, in rank order."""
        return tuple(process for process in self.processes if process.rank >= 0)

    def rank(self, number: int) -> RankProcess:
        """Return a rank by its number, below ``world_size``."""
        return self.processes[number + (self.processes[0].rank < 0)]

    @property
    def local(self) -> tuple[RankProcess, ...]:
        """The processes of this host, including the scheduler if rank 0 is here."""
        if self.local_server is None:
            return self.processes
        return tuple(process for process in self.processes if process.server_index == self.local_server)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the job, in order of their lowest rank."""
        return tuple(dict.fromkeys(process.host for process in self.ranks))

    def way_to(self, host: str) -> str:
        """Return the name or address by which this host reaches a host of the job."""
        return self.reached.get(host, host)
