"""One MPI rank with everything that the shim needs to start it."""

from __future__ import annotations

from hccl_tools.records import NamedTuple


class PreparedRank(NamedTuple):
    """One rank, ready to start.

    ``tail`` names the ranks that are shown. ``scheduler`` is the argv and environment of MindSpore's, on
    rank 0 only, ``port`` where it listens. ``cores`` are those the rank is bound to, none for all. After a
    ``restart`` its log has a name of its own.
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
