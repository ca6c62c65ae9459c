"""What a launch will do, as data: one process per rank, and a scheduler if the framework needs one.

A plan is made once, printed by ``--dry-run`` and carried out unchanged: engines start a
supervisor on each host, which starts its part.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from hccl_tools.launch.model.inheritance import Inheritance

if TYPE_CHECKING:
    from collections.abc import Mapping

#: How the framework's ranks find each other: by the rank table, MindSpore's scheduler, MPI, or torch's store.
Start = Literal["table", "cluster", "mpi", "torch"]
#: ``Plan.local_server`` of a host that is not one of the job's: its plan can be shown and not carried out.
NOT_A_MEMBER = -1
#: The file in ``Plan.private_dir`` that holds what each MPI rank starts; see ``planned_ranks``.
FACTS_FILE = "mpi_ranks"
_NOTHING: Mapping[str, str] = MappingProxyType({})


class RankProcess(NamedTuple):
    """One process of the job: a rank, or MindSpore's scheduler."""

    #: RANK_ID; -1 for the scheduler.
    rank: int
    #: How other machines reach its server: an address or a name.
    host: str
    #: The index of its server in the table.
    server_index: int
    #: The physical device id, as in the table; -1 for the scheduler.
    device: int
    #: DEVICE_ID of the process, which counts the devices it sees; differs from ``device`` in containers.
    device_id: int
    #: The variables of this process on top of the launcher's cleaned environment and ``Plan.common``.
    environment: dict[str, str]
    argv: tuple[str, ...]
    #: The path of its log, relative to the run directory or absolute.
    log: str

    @property
    def name(self) -> str:
        """``rank 3`` or ``scheduler``, as messages name it."""
        return "scheduler" if self.rank < 0 else f"rank {self.rank}"


class Plan(NamedTuple):
    """A whole job, on all its hosts."""

    #: In rank order, the scheduler (if any) first.
    processes: tuple[RankProcess, ...]
    start: Start
    #: A name of ``launch.engines``.
    engine: str
    #: Absolute.
    run_dir: str
    #: The caller's directory, in which every process starts; absolute.
    working_dir: str
    world_size: int
    #: The absolute path of the rank table as given; ``None`` for a job without a table.
    table: str | None = None
    #: The variables set for every process.
    common: Mapping[str, str] = _NOTHING
    #: The variables that an MPI rank does not inherit from mpirun's environment.
    inheritance: Inheritance = Inheritance()
    #: The names of the caller's variables that no process inherits, sorted.
    removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    #: The index of this host's server. ``None`` where the whole job runs on this host or an engine starts it,
    #: ``NOT_A_MEMBER`` where this host is not one of the job's.
    local_server: int | None = None
    #: What was chosen and why, by subject: rank table, product, start, python.
    chosen: Mapping[str, str] = _NOTHING
    #: The command that an engine runs on each host of a job on several; empty otherwise.
    supervisor: tuple[str, ...] = ()
    #: The names of the variables that an engine passes to the other hosts, sorted.
    exported: tuple[str, ...] = ()
    #: Whether the engine passes no others (``--no-export``).
    only_exported: bool = False
    #: The path of the program that the engine runs: ``/usr/bin/mpirun``; "" for ``loop``.
    engine_program: str = ""
    #: Its implementation and version: ``openmpi-4``; "" for ``loop``.
    engine_flavour: str = ""
    #: The nodes of a Slurm allocation that the job uses, if the allocation has others too.
    nodes: tuple[str, ...] = ()
    #: The command before the program of each MPI rank; empty where ranks are not MPI processes.
    shim_command: tuple[str, ...] = ()
    cpu: bool = False
    #: Whether the device ids are only numbers: there is no table, and there are fewer devices than ranks.
    devices_are_placeholders: bool = False
    #: The cores that each rank of this host is bound to, by rank; empty without ``--bind``.
    cores: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    #: Address and port of rank 0's host where the launchers of a job that is started by hand on each host
    #: connect; ``None`` for other jobs.
    rendezvous: tuple[str, int] | None = None

    @property
    def private_dir(self) -> str:
        """This user's private directory, from which a shim reads what it starts; "" without shims."""
        if not self.shim_command:
            return ""
        return os.path.dirname(self.shim_command[self.shim_command.index("--facts") + 1])

    @property
    def ranks(self) -> tuple[RankProcess, ...]:
        """The ranks without the scheduler, in rank order."""
        return tuple(process for process in self.processes if process.rank >= 0)

    @property
    def local(self) -> tuple[RankProcess, ...]:
        """The processes of this host, the scheduler among them where rank 0 is here."""
        if self.local_server is None:
            return self.processes
        return tuple(process for process in self.processes if process.server_index == self.local_server)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the job, in order of their lowest rank."""
        return tuple(dict.fromkeys(process.host for process in self.ranks))
