"""The shim between mpirun and one rank: ``mpirun -n 2 python -m hccl_tools.launch.rank train.py``.

It maps mpirun's variables (OMPI_COMM_WORLD_RANK) to variables that frameworks read (RANK_ID, DEVICE_ID),
starts the program as its child, and handles its log, signals and exit code. Imports delay every rank, so the
shim imports almost nothing under ``launch``, which has prepared everything.
"""

from __future__ import annotations

import os
import sys

from hccl_tools.errors import HcclToolsError
from hccl_tools.launch.mpi import launcher_link, shim
from hccl_tools.launch.mpi import world as mpi_world

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.mpi.prepared import PreparedRank
    from hccl_tools.launch.mpi.world import MpiWorld


def main(args: list[str] | None = None) -> int:
    """Run one rank and return its exit code; only the first rank of a host prints usage errors."""
    world = None
    args = sys.argv[1:] if args is None else args
    try:
        if args[:1] != ["--facts"]:
            from hccl_tools.launch.mpi import options as rank_options  # noqa: PLC0415  (not under `launch`)

            rank_options.parse(args)  # Report wrong options even without mpirun.
        world = mpi_world.from_environment(os.environ)
        link = launcher_link.from_environment(os.environ, world.rank)
        prepared = _prepared(args, world, os.environ)
    except HcclToolsError as error:
        if world is None or world.local_rank == 0:
            from hccl_tools.notation import printable, screen  # noqa: PLC0415  (only for an error)

            hint = f"\n  help: {error.hint}" if error.hint else ""
            text = printable.escaped(f"error: {error.message}{hint}\n", keep="\n\t")
            sys.stderr.write(screen.fitted(text, screen.width(2)))
        else:
            from hccl_tools.launch.mpi import first_rank  # noqa: PLC0415  (rare)

            # mpirun ends all ranks at the first nonzero exit code: wait for the rank that prints the reason.
            first_rank.wait_for_end()
        return error.exit_code
    return shim.run(prepared, link)


def _prepared(args: list[str], world: MpiWorld, environ: Mapping[str, str]) -> PreparedRank:
    if args[:1] == ["--facts"]:
        from hccl_tools.launch.mpi import planned_ranks  # noqa: PLC0415  (only under `launch`)

        if planned := planned_ranks.read(args[1], world, environ):
            return planned
    from hccl_tools.launch.mpi import options as rank_options  # noqa: PLC0415  (only if nothing is prepared)
    from hccl_tools.launch.mpi import shared_preparation  # noqa: PLC0415

    options = rank_options.parse(args)
    if found := shared_preparation.read(options, world, environ):
        return found
    from hccl_tools.launch.mpi import standalone  # noqa: PLC0415  (the first rank of a host)

    return standalone.prepare(options, world, environ)


if __name__ == "__main__":
    sys.exit(main())
