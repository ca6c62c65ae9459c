"""What the launcher settles for its shims: read back whole, or not at all where it no longer holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.model.plan import FACTS_FILE, Plan, RankProcess
from hccl_tools.launch.mpi import planned_ranks
from hccl_tools.launch.mpi.world import MpiWorld
from hccl_tools.launch.planning.composition import inheritance
from hccl_tools.runs import names

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.launch.model.plan import Start

TABLE = b'{"a table": "of some bytes"}'


def settle(run_dir: Path, *, start: Start = "mpi", count: int = 3) -> str:
    """Write the facts of a job and its table; return the path of the facts."""
    ranks = tuple(
        RankProcess(rank, "localhost", 0, 7 - rank, rank, {"RANK_ID": str(rank)}, ("sh", "-c", ":"), "log")
        for rank in range(count)
    )
    inherited = inheritance(start, keep_mpi="all" if start == "mpi" else "none")
    plan = Plan(
        ranks, start, "mpirun", str(run_dir), "/", count, common={"SAID": "to all"}, inheritance=inherited
    )
    (run_dir / names.TABLE).write_bytes(TABLE)
    path = run_dir / FACTS_FILE
    path.write_bytes(planned_ranks.pack(plan, TABLE))
    return str(path)


def world(rank: int, *, size: int = 3, local_size: int = 3) -> MpiWorld:
    return MpiWorld(rank, size, rank, local_size, "job", "Open MPI")


def test_a_rank_reads_its_own_part(tmp_path: Path) -> None:
    told = planned_ranks.read(settle(tmp_path), world(2), {"PATH": "/bin", "OMPI_X": "1"})

    assert told is not None
    assert (told.rank, told.device, told.argv, told.tail) == (2, 5, ("sh", "-c", ":"), "none")
    assert told.environment == {"PATH": "/bin", "OMPI_X": "1", "SAID": "to all", "RANK_ID": "2"}
    assert told.run_dir == str(tmp_path)


def test_what_mpirun_sets_is_kept_from_programs_that_read_the_table(tmp_path: Path) -> None:
    told = planned_ranks.read(settle(tmp_path, start="table"), world(0), {"PATH": "/bin", "OMPI_X": "1"})

    assert told is not None
    assert "OMPI_X" not in told.environment


def test_another_table_is_noticed(tmp_path: Path) -> None:
    path = settle(tmp_path)
    (tmp_path / names.TABLE).write_bytes(TABLE.replace(b"some", b"four"))

    assert planned_ranks.read(path, world(0), {}) is None


def test_ranks_spread_otherwise_than_planned_find_out_themselves(tmp_path: Path) -> None:
    path = settle(tmp_path)

    assert planned_ranks.read(path, world(0, local_size=2), {}) is None
    assert planned_ranks.read(path, world(0, size=2, local_size=2), {}) is None
    assert planned_ranks.read(str(tmp_path / "elsewhere"), world(0), {}) is None
