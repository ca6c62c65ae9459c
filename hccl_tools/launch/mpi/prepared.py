"""One MPI rank with the data that the shim needs to start it."""

from __future__ import annotations

from hccl_tools.records import NamedTuple


class PreparedRank(NamedTuple):
    """One rank, ready to start.

    ``tail`` lists the ranks that are shown. ``scheduler`` is the argv and environment of MindSpore's
    scheduler (rank 0 only), which listens on ``port``. The rank is bound to ``cores``, if any.
    ``restart`` counts the restarts so far; each restart has its own log.
    """

    rank: int
    device: int
    argv: tuple[str, ...]
    environment: dict[str, str]
    run_dir: str
    tail: str = "0"
    keep_binding: bool = False
    exec: bool = False
    scheduler: tuple[tuple[str, ...], dict[str, str]] | None = None
    port: int = 0
    cores: tuple[int, ...] = ()
    restart: int = 0
