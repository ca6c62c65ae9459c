"""The options of ``launch`` as data, before anything is looked up.

The command line, ``spawn`` and the shim of an MPI rank create these records. The help of ``launch`` describes
the options; ``None`` means that an option was not given.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from hccl_tools.launch.model.outcome import RestartCause
from hccl_tools.launch.model.plan import DEFAULT_JOIN_SECONDS, DEFAULT_SILENCE
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.model.plan import Start, Tail
    from hccl_tools.notation.exclusion import Exclusion
    from hccl_tools.table.model import RankTable

ProgramKind = Literal["script", "module", "program"]
Bind = Literal["none", "cores", "numa"]


class Program(NamedTuple):
    """What every rank runs."""

    #: The script, module or program, followed by its arguments.
    argv: tuple[str, ...]
    kind: ProgramKind = "script"
    #: ``--python``: a path, or a name on PATH.
    python: str | None = None
    #: Whether the user chose the interpreter that runs the launcher (``python -m hccl_tools.launch``).
    own_python: bool = False
    #: Whether it may be missing on this host: ``--emit`` starts nothing here.
    may_be_missing: bool = False


class JobTable(NamedTuple):
    """A table that has been read and checked."""

    #: Absolute, or "standard input".
    path: str
    table: RankTable
    #: The bytes for the ranks: the file's own, or a 1.0 table made from a group_list.
    data: bytes
    #: The product for which the table was checked, and where it comes from.
    product: str
    product_source: str
    notes: tuple[str, ...] = ()
    #: A sentence with the source of this table; ``None`` if the user typed it.
    why: str | None = None
    #: The name under which each host was asked, by its address in the table, where the two differ.
    reached: Mapping[str, str] = MappingProxyType({})

    @property
    def conflict_hint(self) -> str:
        """What to do about an option that contradicts the table."""
        defines = "the table defines the machines, ranks and devices"
        if self.why:
            without = "add --no-table to start without the table"
            return f"{without}, or leave the option out: {defines}; {self.why}"
        return f"leave it out: {defines}"


class TableChoice(NamedTuple):
    """The choice of the rank table, and how the table is checked."""

    #: ``--rank-table``: a file, a directory with a file of the usual name, or ``-``.
    file: str | None = None
    #: The table made from the answers of the job's hosts; it is written to the run directory.
    made: JobTable | None = None
    #: Whether RANK_TABLE_FILE or ModelArts' table is used if no other table is specified.
    from_environment: bool = True
    no_table: bool = False
    product: str | None = None
    ignore: tuple[str, ...] = ()
    #: Seconds to wait for a table that is being completed.
    wait: float | None = None
    local_check: bool = True
    #: What is left out of the table in a file.
    exclude: tuple[Exclusion, ...] = ()


class SpareHost(NamedTuple):
    """A host that can take the place of a lost one."""

    #: The name or address by which the other hosts reach it.
    name: str
    #: A table with this host as its only server; ``None`` in a rehearsal on the CPU, in which the host takes
    #: the devices of the server that it replaces.
    table: RankTable | None = None
    #: The name under which it was asked, by which it is reached; "" for ``name``, which is its own statement.
    asked: str = ""

    @property
    def way(self) -> str:
        """The name by which it is reached."""
        return self.asked or self.name

    @property
    def label(self) -> str:
        """Its name for the user."""
        return self.name if self.way == self.name else f"{self.way} (server_id {self.name})"


class Hosts(NamedTuple):
    """The hosts of the job, the index of this host, and the rendezvous address."""

    ips: tuple[str, ...] = ()
    node_count: int | None = None
    #: ``--node-rank``: the number of this host, from 0; rank 0 is on host 0.
    node_rank: int | None = None
    server: str | None = None
    master_address: str | None = None
    #: The rendezvous port of the ranks, 1024 to 65535.
    start_port: int | None = None
    all_here: bool = False
    #: Whether this host must be a host of the job; false for a plan that is only shown.
    include_this_host: bool = True


class Devices(NamedTuple):
    """The number of ranks of the job, and their devices."""

    ranks: int | None = None
    per_node: int | None = None
    #: ``--devices`` as typed: indices among the visible devices.
    listed: str | None = None
    #: Physical device ids, in rank order.
    physical: tuple[int, ...] | None = None
    #: Whether a rank on every visible device was requested (``--nproc-per-node auto``).
    all_visible: bool = False
    ignore_visible: bool = False
    max_ranks: int = 16


class StartChoice(NamedTuple):
    """The engine and the start of the ranks."""

    #: How the framework finds its peers; by default, the framework and its version decide.
    method: Start | None = None
    engine: str = "loop"
    mpirun: str | None = None
    cpu: bool = False
    bind: Bind = "none"
    preflight: bool = True
    #: Why this engine is used, for the plan.
    engine_reason: str = ""
    #: Whether hosts that were started by hand must have a job key.
    require_key: bool = False


class Variables(NamedTuple):
    """The environment variables of the ranks."""

    #: ``--env`` and ``--env-file``: set for every rank; they override the launcher's variables.
    assigned: Mapping[str, str] = MappingProxyType({})
    #: Whether the ranks inherit the caller's ``OMPI_*``, ``PMIX_*`` and ``PMI_*``.
    keep_mpi: bool = False
    pass_table: bool = False
    #: Whether PYTHONUNBUFFERED is left unchanged.
    buffered: bool = False
    export: tuple[str, ...] = ()
    export_defaults: bool = True


class Logs(NamedTuple):
    """The paths of the logs, and the ranks shown on the terminal."""

    dir: str = "log"
    mode: int = 0o700
    file: str | None = None
    #: Whether the logs are ``DIR/workerlog.0``, ``workerlog.1``, ..., as paddle names them.
    flat: bool = False
    tail: Tail = (0,)
    stdin_rank: int | None = None
    #: The run directory of a job that starts again; ``None`` for a new one in ``dir``.
    run_dir: str | None = None


class Watch(NamedTuple):
    """The supervision of the running job. Times are in seconds; ``None`` disables a limit."""

    #: From SIGTERM to SIGKILL, for all ranks together.
    grace: float = 15.0
    timeout: float | None = None
    early_exit_warn: float | None = 60.0
    hang_warn: float | None = 600.0
    on_log_error: Literal["warn", "stop"] = "warn"
    notify: str | None = None
    max_restarts: int = 0
    #: Without an answer from another host, until that host counts as lost.
    host_timeout: float = DEFAULT_SILENCE
    #: Without output, CPU time or an expected heartbeat, until the job counts as hung and is ended.
    hang_timeout: float | None = None
    #: Whether the ranks' Python writes its stacks to the log on SIGUSR2.
    faulthandler: bool = False
    #: Seconds by which evidence may postpone the end after a failure, a hang or a timeout; 0: none is taken.
    evidence_timeout: float = 5.0
    #: Whether torch's flight recorder is switched on, and its dumps belong to the evidence.
    flight_recorder: bool = False
    #: Seconds before each restart.
    restart_delay: float = 0.0
    #: The causes after which the job is started again; a lost host needs a spare.
    restart_on: frozenset[RestartCause] = frozenset(get_args(RestartCause))
    #: Within an hour; ``None`` for any number.
    restarts_per_hour: int | None = None
    #: A regular expression: with ``hang_timeout``, only a line of output that matches shows progress.
    progress: str | None = None
    #: For every host that answers to start its part.
    join_timeout: float = DEFAULT_JOIN_SECONDS


class Part(NamedTuple):
    """The settings of one host's supervisor from the launcher of the whole job."""

    run_dir: str
    #: The number of restarts of the job before this start.
    restart: int = 0


class LaunchRequest(NamedTuple):
    """One call of ``launch``."""

    program: Program
    table: TableChoice = TableChoice()
    hosts: Hosts = Hosts()
    devices: Devices = Devices()
    start: StartChoice = StartChoice()
    variables: Variables = Variables()
    logs: Logs = Logs()
    watch: Watch = Watch()
    #: ``None`` for the launcher of a whole job.
    part: Part | None = None
    #: The options as typed, for the supervisors on other hosts.
    typed_options: tuple[str, ...] = ()
    #: In the order in which they are used.
    spares: tuple[SpareHost, ...] = ()
    remarks: tuple[str, ...] = ()
    #: The call with the options of ``launch`` that follow the program before it, for the user to type.
    reordered_call: str = ""
    #: The spares that have taken the places of hosts that failed the checks before the start, for the report.
    replaced: tuple[Mapping[str, Any], ...] = ()

    @property
    def run_dir(self) -> str | None:
        """The run directory of a part of a job, or of a job that starts again; ``None`` for a new one."""
        return self.part.run_dir if self.part else self.logs.run_dir
