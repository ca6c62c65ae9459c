"""The private file in which ``launch`` prepares each MPI rank; a shim reads only its own part.

The file begins with the offsets of its parts (8 bytes each): the shared part, then one part per rank. A shim
reads two small parts and no rank table: the SHA-256 of its bytes shows that the table has not changed.
"""

from __future__ import annotations

import marshal
import os

from hccl_tools.errors import LaunchError
from hccl_tools.launch.model.variables import Inheritance, composed, of_restart
from hccl_tools.launch.mpi.prepared import PreparedRank
from hccl_tools.processes import run_files
from hccl_tools.runs import private_files

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.mpi.world import MpiWorld

_PLACE = 8
#: The version of the marshal format that is identical in Python 3.10 to 3.13.
_MARSHAL = 2
_LARGE = 1 << 20


def write(plan: Plan, table: bytes | None, restart: int = 0) -> None:
    """Write the file for the ranks of a plan into its private directory; for the arguments see ``pack``.

    Raises:
        LaunchError: The file cannot be written.
    """
    from hccl_tools.launch.model.plan import FACTS_FILE  # noqa: PLC0415  (the shim does not need it)

    try:
        run_files.write(plan.private_dir, FACTS_FILE, pack(plan, table, restart))
    except OSError as error:
        raise LaunchError(f"{plan.private_dir} cannot be written to: {error.strerror}") from error


def pack(plan: Plan, table: bytes | None, restart: int = 0) -> bytes:
    """Return the file for the ranks of a plan.

    The run directory, which this process holds, is named by its identity: a shim uses no other in its place.
    ``table`` is the content of the table in the run directory, ``restart`` the number of restarts so far.
    """
    from hccl_tools.runs import names  # noqa: PLC0415

    path = os.path.join(plan.run_dir, names.TABLE)
    hashed = (path, sha256(table)) if table is not None else None
    facts = (os.uname().nodename, plan.world_size, run_files.hold(plan.run_dir).identity, hashed)
    shared = (*facts, of_restart(plan.common, restart), tuple(plan.inheritance), restart)
    parts = [marshal.dumps(shared, _MARSHAL)]
    parts += [
        marshal.dumps(
            (rank.device, list(rank.argv), rank.environment, plan.cores.get(rank.rank, ())), _MARSHAL
        )
        for rank in plan.ranks
    ]
    places = [_PLACE * (len(parts) + 1)]
    for part in parts:
        places.append(places[-1] + len(part))
    return b"".join([*(place.to_bytes(_PLACE, "little") for place in places), *parts])


def read(path: str, world: MpiWorld, environ: Mapping[str, str]) -> PreparedRank | None:
    """Return the prepared rank.

    Return ``None`` if the file is not on this host or not owned by this user, if mpirun has not placed the
    ranks as planned, or if the table has changed.
    """
    try:
        descriptor = private_files.open_own(path)
    except OSError:
        return None
    try:
        host, size, folder, table, common, inheritance, restart = _part(descriptor, 0)
        as_planned = host == os.uname().nodename and world.size == size and world.one_host
        if not as_planned or (table and not is_still(*table)):
            return None
        device, argv, variables, cores = _part(descriptor, 1 + world.rank)
    finally:
        os.close(descriptor)
    try:
        run_files.adopt(folder)
    except OSError as error:
        raise LaunchError(
            f"the run directory {folder[0]} cannot be opened: {run_files.reason(error)}"
        ) from None
    return PreparedRank(
        rank=world.rank,
        device=device,
        argv=tuple(argv),
        environment=composed(environ, Inheritance(*inheritance), common, variables),
        run_dir=folder[0],
        tail="none",  # The launcher shows the logs itself.
        cores=cores,
        restart=restart,
    )


def _part(descriptor: int, index: int) -> Any:
    places = os.pread(descriptor, 2 * _PLACE, _PLACE * index)
    begin, end = (int.from_bytes(places[at : at + _PLACE], "little") for at in (0, _PLACE))
    return marshal.loads(os.pread(descriptor, end - begin, begin))  # noqa: S302  (the launcher's own file)  # nosec B302


def is_still(path: str, digest: bytes) -> bool:
    """Return whether a file can be read and has this SHA-256."""
    try:
        with open(run_files.open_read(path), "rb") as file:
            return sha256(file.read()) == digest
    except OSError:
        return False


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 of a table's bytes.

    OpenSSL takes 3 ms to load, so it is used only for large tables; Python's own code needs 5 ms for 1.5 MB.
    """
    for name in ("_sha2", "_sha256") if len(data) < _LARGE else ():  # from Python 3.12 on, earlier
        try:
            made = __import__(name)
        except ImportError:
            continue
        return bytes(made.sha256(data).digest())
    import hashlib  # noqa: PLC0415

    return hashlib.sha256(data).digest()
