"""What the first MPI rank of a host has found out by hand, for the others there: they need not do it again.

A table of 8,192 ranks takes 0.1 s to judge, and so it would in every rank. The first leaves in the run
directory what each rank of its server starts with, under the SHA-256 of the table's bytes, the options
that all ranks have, and the variables that can name a table; who has others finds out for itself.
"""

from __future__ import annotations

import marshal
import os
import time
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.launch import proc, run_directory
from hccl_tools.launch.job_table import TABLE_VARIABLES
from hccl_tools.launch.rank_facts import sha256
from hccl_tools.launch.shim import Prepared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.mpi_world import MpiWorld
    from hccl_tools.launch.rank_options import RankOptions

#: Seconds that the first rank of a host may take, and between two looks.
_PATIENCE, _PAUSE = 10.0, 0.002
#: The form of marshal that all of Python 3.10 to 3.13 write and read alike.
_MARSHAL = 2


class Settled(NamedTuple):
    """What the ranks of one host start with.

    ``removed`` are names of variables that no rank inherits, ``beginnings`` those of such names; ``common``
    is set for all, ``ranks`` holds the device and the variables of each by rank. ``first`` is the rank from
    which those of this host count where no table names them, else ``None``.
    """

    argv: tuple[str, ...]
    removed: tuple[str, ...]
    beginnings: tuple[str, ...]
    common: dict[str, str]
    ranks: dict[int, tuple[int, dict[str, str]]]
    first: int | None


def write(
    run_dir: str,
    options: RankOptions,
    environ: Mapping[str, str],
    table: tuple[str, bytes] | None,
    settled: Settled | None,
) -> None:
    """Leave what was found out; ``None`` tells the others not to wait for it.

    ``table`` are the path and the bytes of the table's file, ``None`` without one.
    """
    data = b""
    if settled is not None:
        file = table and (table[0], sha256(table[1]))
        data = marshal.dumps((_key(options, environ), file, tuple(settled)), _MARSHAL)
    run_directory.write(run_dir, _name(), data)


def read(options: RankOptions, world: MpiWorld, environ: Mapping[str, str]) -> Prepared | None:
    """Return what this rank has to start; ``None`` where it has to find out for itself."""
    if world.local_rank == 0 or world.rank == 0 or options.run_dir is not None:
        return None
    run_dir = own_run_directory(options.log_dir, world, environ)
    told = _told(os.path.join(run_dir, _name()), _key(options, environ))
    if told is None:
        return None
    file, settled = told
    as_counted = settled.first in {None, world.rank - world.local_rank}
    if world.rank not in settled.ranks or not as_counted or (file and not _is_still(*file)):
        return None
    device, variables = settled.ranks[world.rank]
    removed = frozenset(settled.removed)
    kept = {
        name: value
        for name, value in environ.items()
        if name not in removed and not (settled.beginnings and name.startswith(settled.beginnings))
    }
    return Prepared(
        rank=world.rank,
        device=device,
        argv=settled.argv,
        environment={**kept, **settled.common, **variables},
        run_dir=run_dir,
        tail=options.tail,
        keep_binding=options.keep_binding,
        exec=options.exec,
    )


def _key(options: RankOptions, environ: Mapping[str, str]) -> str:
    """Return what all ranks must have in common to start alike."""
    return repr((options, [environ.get(variable) for variable in TABLE_VARIABLES]))


def _told(path: str, key: str) -> tuple[tuple[str, bytes] | None, Settled] | None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            time.sleep(_PAUSE)
            continue
        told: Any = marshal.loads(data) if data else None  # noqa: S302  (our own file)
        return (told[1], Settled(*told[2])) if told and told[0] == key else None
    return None


def _is_still(path: str, digest: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return sha256(file.read()) == digest
    except OSError:
        return False


def _name() -> str:
    # Hosts may share the disk.
    return f"mpi_ranks-{os.uname().nodename}"


def own_run_directory(log_dir: str, world: MpiWorld, environ: Mapping[str, str]) -> str:
    """Return a run directory that all ranks of this job on this host name alike, without talking.

    Its time is that of their common parent's start, its ending comes from mpirun's own name of the job.
    """
    parent = proc.status(os.getppid())
    ticks = parent.start if parent else 0
    with open("/proc/stat", encoding="ascii") as file:
        boot = next((int(line.split()[1]) for line in file if line.startswith("btime ")), 0)
    ending = f"{zlib.crc32(f'{world.job}-{os.getppid()}-{ticks}'.encode()) & 0xFFFF:04x}"
    return run_directory.path_for(log_dir, environ, now=boot + ticks / proc.CLOCK_TICKS, ending=ending)
