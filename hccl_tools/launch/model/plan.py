"""What a launch will do, as data: one process per rank, and one scheduler where the framework wants it.

A plan is made once, printed by ``--dry-run`` and carried out as it is: engines bring it to the hosts, a
supervisor on each host starts its part. Nobody edits it on the way.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Start = Literal["table", "cluster", "mpi", "torch"]
Engine = Literal["loop", "mpirun", "slurm"]
#: The index of a host that is none of the job's servers: its plan is only to be looked at.
ELSEWHERE = -1
#: The table's name in the run directory.
TABLE_COPY = "rank_table.json"
#: What is settled for each MPI rank, likewise; see ``rank_facts``.
FACTS_FILE = "mpi_ranks"
_NOTHING: Mapping[str, str] = MappingProxyType({})


class RankProcess(NamedTuple):
    """One process of the job.

    ``rank`` is its RANK_ID, or -1 for the scheduler of ``--start cluster``. ``device`` is the table's
    (physical) device id, ``device_id`` what the process is told in DEVICE_ID (they differ in containers).
    ``environment`` holds only what is set for this rank on top of the launcher's cleaned environment.
    ``log`` is relative to the run directory.
    """

    rank: int
    host: str
    server_index: int
    device: int
    device_id: int
    environment: dict[str, str]
    argv: tuple[str, ...]
    log: str

    @property
    def name(self) -> str:
        """``rank 3`` or ``scheduler``: how messages speak of it."""
        return "scheduler" if self.rank < 0 else f"rank {self.rank}"


class Plan(NamedTuple):
    """A whole job.

    ``processes`` are in rank order, the scheduler (if any) first. ``removed`` names the variables of the
    caller's shell that no rank inherits; ``common`` is set for every process. ``table`` is the absolute path
    of the rank table as given, ``None`` with ``--no-table``. ``notes`` are sentences that the user should
    read. ``here`` is the index of this host's server, ``None`` where the whole job runs on this machine or an
    engine brings it to its hosts, ``ELSEWHERE`` where this host is none of them.
    ``chosen`` holds by subject (rank table, product, start, python) what was taken and why.

    ``counted`` says that the ranks' devices are only numbers: there is no table, and there are fewer devices.
    ``cores`` are those that each rank of this host is bound to, by rank; empty without ``--bind``.
    ``meeting`` is the address and port of rank 0's host where hosts that are started by hand meet, and keep a
    line to each other; ``None`` for all other jobs.

    The nine before these are for engines: what each host runs where the job is brought to several, the
    variables that go along, whether nothing else does, the program that starts it there
    (``/usr/bin/mpirun``), its flavour (``openmpi-4``), which nodes of a Slurm allocation are meant where it
    has others too, the command of the per-rank shim, whether the caller is root, and whether the job is a
    rehearsal on the CPU.
    """

    processes: tuple[RankProcess, ...]
    start: Start
    engine: Engine
    run_dir: str
    working_dir: str
    world_size: int
    table: str | None = None
    common: Mapping[str, str] = _NOTHING
    removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    here: int | None = None
    chosen: Mapping[str, str] = _NOTHING
    supervisor: tuple[str, ...] = ()
    exported: tuple[str, ...] = ()
    only_exported: bool = False
    engine_program: str = ""
    engine_flavour: str = ""
    nodes: tuple[str, ...] = ()
    shim: tuple[str, ...] = ()
    as_root: bool = False
    cpu: bool = False
    counted: bool = False
    cores: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    meeting: tuple[str, int] | None = None

    @property
    def private_dir(self) -> str:
        """The directory of this user alone in which a shim finds what it starts, "" without shims."""
        return os.path.dirname(self.shim[self.shim.index("--facts") + 1]) if self.shim else ""

    @property
    def ranks(self) -> tuple[RankProcess, ...]:
        """The ranks without the scheduler, in rank order."""
        return tuple(process for process in self.processes if process.rank >= 0)

    @property
    def local(self) -> tuple[RankProcess, ...]:
        """The processes of this host, the scheduler among them where rank 0 is here."""
        if self.here is None:
            return self.processes
        return tuple(process for process in self.processes if process.server_index == self.here)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the job, in order of their lowest rank."""
        return tuple(dict.fromkeys(process.host for process in self.ranks))
