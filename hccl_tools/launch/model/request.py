"""What the user asked ``launch`` for, as data, before anything is looked up."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.table.model import RankTable

ProgramKind = Literal["script", "module", "program"]
Bind = Literal["none", "cores", "numa"]
#: The ranks that are shown on the terminal.
Tail = tuple[int, ...] | Literal["all"]


class LaunchRequest(NamedTuple):
    """One call of ``launch``.

    ``program`` is the script, module or program and its own arguments, untouched. ``devices`` is the text as
    typed and counts within the visible devices, ``physical`` are ids of the host. ``environment`` is set for
    every rank and wins over what the launcher would set. ``own_python`` says that the caller chose the
    interpreter by running ``python -m hccl_tools.launch`` with it. ``run_dir`` is set for the supervisor of
    one host of a job that was started elsewhere; ``typed_options`` are what such a supervisor gets.
    ``made_table`` is the table that the hosts of the job have just told; it will lie in the run directory.
    ``wait`` is how many seconds a table may take to be completed. ``export`` names variables for other hosts
    besides the usual ones, which ``export_defaults`` stands for. ``mpirun`` names the program of
    ``--engine mpirun`` where it is not the first on PATH. ``stdin`` holds the rank that reads the
    caller's, if one does. ``only_shown`` says that nothing is to be started: this host need not be one of the
    job's.
    """

    program: tuple[str, ...]
    kind: ProgramKind = "script"
    rank_table: str | None = None
    ranks: int | None = None
    devices: str | None = None
    physical: tuple[int, ...] | None = None
    no_table: bool = False
    product: str | None = None
    ignore: tuple[str, ...] = ()
    start: Start | None = None
    engine: str = "loop"
    mpirun: str | None = None
    cpu: bool = False
    all_here: bool = False
    max_ranks: int = 16
    server: str | None = None
    ignore_visible: bool = False
    local_check: bool = True
    preflight: bool = True
    environment: Mapping[str, str] = MappingProxyType({})
    keep_mpi: bool = False
    pass_table: bool = False
    buffered: bool = False
    python: str | None = None
    own_python: bool = False
    log_dir: str = "log"
    log_mode: int = 0o700
    log_file: str | None = None
    flat_logs: bool = False
    tail: Tail = (0,)
    stdin: tuple[int, ...] = ()
    start_port: int | None = None
    master_address: str | None = None
    ips: tuple[str, ...] = ()
    node_count: int | None = None
    node_rank: int | None = None
    per_node: int | None = None
    #: One rank on each visible device was asked for by a word, not only by saying nothing.
    all_visible: bool = False
    run_dir: str | None = None
    typed_options: tuple[str, ...] = ()
    made_table: JobTable | None = None
    wait: float | None = None
    bind: Bind = "none"
    export: tuple[str, ...] = ()
    export_defaults: bool = True
    only_shown: bool = False
    #: Sentences on what was typed, for the user.
    remarks: tuple[str, ...] = ()


class JobTable(NamedTuple):
    """A table that has been found good.

    ``path`` is absolute, or says "standard input". ``data`` are the bytes for the ranks: the file's own, or a
    1.0 table made from a group_list. ``product`` and ``notes`` are sentences for the plan.
    """

    path: str
    table: RankTable
    data: bytes
    product: str
    notes: tuple[str, ...] = ()
