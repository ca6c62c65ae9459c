"""Make what ``launch`` hands to its shims, for N ranks: ``python -m benchmarks.shim_facts DIR N``."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.tables import PER_SERVER, large_table
from hccl_tools import formats
from hccl_tools.launch.model import plan
from hccl_tools.launch.mpi import planned_ranks
from hccl_tools.runs import names


def main(run_dir: str, count: int) -> None:
    """Write the facts and a table of ``count`` ranks into a directory."""
    ranks = tuple(
        plan.RankProcess(
            rank=rank,
            host="localhost",
            server_index=0,
            device=rank,
            device_id=rank,
            environment={"RANK_ID": str(rank), "RANK_SIZE": str(count), "DEVICE_ID": str(rank)},
            argv=("/bin/true",),
            log=f"rank_{rank}.log",
        )
        for rank in range(count)
    )
    job = plan.Plan(
        processes=ranks,
        start="mpi",
        engine="mpirun",
        run_dir=run_dir,
        working_dir=run_dir,
        world_size=count,
        shim_command=("--tail", "0"),
    )
    table = "".join(formats.write(large_table("1.0", -(-count // PER_SERVER)))).encode()
    Path(run_dir, names.TABLE).write_bytes(table)
    Path(run_dir, plan.FACTS_FILE).write_bytes(planned_ranks.pack(job, table))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
