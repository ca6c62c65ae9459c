"""Share the preparation of a host's first MPI rank with the other ranks of the host.

Checking a table of 8,192 ranks takes 0.1 s, which every rank would repeat. The first rank of a host creates
the run directory, and writes its path and the settings of each rank of its server to a private file. The file
is valid for the SHA-256 of the table's bytes, the options that all ranks have, and the variables that can
name a table. A rank with other values prepares itself.
"""

from __future__ import annotations

import marshal
import os
import time
import zlib
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import LaunchError
from hccl_tools.launch.model.variables import Inheritance, composed
from hccl_tools.launch.mpi import first_rank
from hccl_tools.launch.mpi.planned_ranks import is_still
from hccl_tools.launch.mpi.prepared import PreparedRank
from hccl_tools.launch.planning.table_source import TABLE_VARIABLES
from hccl_tools.processes import procfs, run_files
from hccl_tools.records import NamedTuple
from hccl_tools.runs import directory, private_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.mpi.options import RankOptions
    from hccl_tools.launch.mpi.world import MpiWorld

#: Maximum seconds to wait for the first rank of a host, and seconds between two checks.
_PATIENCE, _PAUSE = 10.0, 0.002
#: The version of the marshal format that is identical in Python 3.10 to 3.13.
_MARSHAL = 2


class Settled(NamedTuple):
    """The shared settings of the ranks of one host.

    No rank inherits the variables in ``inheritance``; ``common`` is set for every rank; ``ranks`` contains
    the device and the variables of each rank. ``first`` is this host's first rank in a job without a table,
    else ``None``.
    """

    inheritance: Inheritance
    argv: tuple[str, ...]
    common: dict[str, str]
    ranks: dict[int, tuple[int, dict[str, str]]]
    first: int | None


class Left(NamedTuple):
    """The result of the first rank: ``settled`` is valid for ``key`` and the table in ``file``.

    ``folder`` is the identity of the run directory; see ``run_files.Folder``.
    ``file`` is path and SHA-256 (``None``: no table), ``settled`` is ``None`` if each rank prepares itself.
    """

    folder: tuple[Any, ...]
    key: str
    file: tuple[str, bytes] | None
    settled: Settled | None


def write(world: MpiWorld, environ: Mapping[str, str], left: Left) -> None:
    """Write the preparation for the other ranks of this host.

    Raises:
        LaunchError: The private directory does not exist or cannot be written.
    """
    path = _path(world, environ)
    private_files.ensure(os.path.dirname(path))
    settled = left.settled
    fields: Any = (*left[:3], settled and (tuple(settled.inheritance), *settled[1:]))
    try:
        run_files.write(*os.path.split(path), marshal.dumps(fields, _MARSHAL))
    except OSError as error:
        raise LaunchError(f"{path} cannot be written: {error.strerror}") from error


def read(options: RankOptions, world: MpiWorld, environ: Mapping[str, str]) -> PreparedRank | None:
    """Return the prepared rank; ``None`` if it has to prepare itself.

    Raises:
        LaunchError: The run directory no longer belongs to this user.
    """
    if world.local_rank == 0 or world.rank == 0 or options.run_dir is not None:
        return None
    left = _wait(world, environ)
    if left is None or left.settled is None or left.key != key(options, environ):
        return None
    settled = left.settled
    as_counted = settled.first in {None, world.rank - world.local_rank}
    if world.rank not in settled.ranks or not as_counted or (left.file and not is_still(*left.file)):
        return None
    run_dir = _hold(left, options)
    device, variables = settled.ranks[world.rank]
    return PreparedRank(
        rank=world.rank,
        device=device,
        argv=settled.argv,
        environment=composed(environ, settled.inheritance, settled.common, variables),
        run_dir=run_dir,
        tail=options.tail,
        keep_binding=options.keep_binding,
        exec=options.exec,
    )


def key(options: RankOptions, environ: Mapping[str, str]) -> str:
    """Return a key of the values that must be equal in all ranks that share the preparation."""
    return repr((options, [environ.get(variable) for variable in TABLE_VARIABLES]))


def _wait(world: MpiWorld, environ: Mapping[str, str]) -> Left | None:
    path = _path(world, environ)
    deadline = time.monotonic() + _PATIENCE
    first: int | None = None
    while time.monotonic() < deadline:
        try:
            with open(private_files.open_own(path), "rb") as file:
                folder, made_for, table, settled = marshal.load(file)  # noqa: S302  (this user's own file)  # nosec B302
        except FileNotFoundError:
            if first is None:
                first = first_rank.find()
            elif not first_rank.runs(first):
                return None  # The first rank has refused the job, and this rank finds the same reason.
            time.sleep(_PAUSE)
            continue
        return Left(folder, made_for, table, settled and Settled(Inheritance(*settled[0]), *settled[1:]))
    return None


def own_run_directory(options: RankOptions, world: MpiWorld, environ: Mapping[str, str]) -> str:
    """Return the run directory that the first rank of this host has made; for the first rank, a new path.

    Ranks that mpirun has not started as children of one process cannot find that directory; each rank then
    has its own directory.

    Raises:
        LaunchError: The directory belongs to another user.
    """
    if world.local_rank and (left := _wait(world, environ)):
        return _hold(left, options)
    return directory.path_for(options.log_dir, environ)


def _hold(left: Left, options: RankOptions) -> str:
    """Hold the run directory that the first rank has made, and return its path."""
    path: str = left.folder[0]
    try:
        run_files.adopt(left.folder)
    except OSError as error:
        raise LaunchError(f"the run directory {path} cannot be opened: {run_files.reason(error)}") from error
    directory.check_owner(path, options.log_mode)
    return path


def _path(world: MpiWorld, environ: Mapping[str, str]) -> str:
    """Return the file whose name all ranks of this job on this host compute without communication."""
    parent = procfs.status(os.getppid())
    with open("/proc/stat", encoding="ascii") as file:
        boot = next((line for line in file if line.startswith("btime ")), "")
    job = zlib.crc32(f"{world.job} {os.uname().nodename} {boot}".encode())
    name = f"{private_files.SHIMS}{os.getppid()}-{parent.start if parent else 0}-{job:08x}"
    return os.path.join(private_files.place(environ), name)
