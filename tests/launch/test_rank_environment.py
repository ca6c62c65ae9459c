"""The environment of a rank does not depend on what has started it; real children print theirs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.planning.composition import MPI_PREFIXES
from hccl_tools.launch.planning.environment import VARIABLES, names
from tests.support.mpiruns import every_mpirun
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.mpiruns import Mpirun

PROGRAM = """
import json, os
def write():
    name = f"{os.environ['OUT']}/{os.environ['ROUTE']}-{os.environ['RANK_ID']}.json"
    with open(name, "w") as file:
        json.dump(dict(os.environ), file)
if __name__ == "__main__":
    write()
"""
SPAWN = """
import sys, hccl_tools, program
if __name__ == "__main__":
    hccl_tools.spawn(program.write, rank_table="table.json", cpu=True, start=sys.argv[1], tail=None)
"""
#: Left in the shell by other launchers.
STALE = {
    "RANK_ID": "9", "RANK_TABLE_FILE": "", "MS_ROLE": "MS_WORKER", "MS_SERVER_NUM": "1", "PADDLE_PORT": "1",
    "TORCHELASTIC_RUN_ID": "x", "RANK": "9", "MASTER_PORT": "1", "FLAGS_selected_gpus": "1",
    "HCCL_CONNECT_TIMEOUT": "600",
}  # fmt: skip
#: What differs between two starts of one job: where it writes, and a port that was free.
RUN_DIR = "HCCL_TOOLS_RUN_DIR"
PORTS = ("MASTER_PORT", "PADDLE_MASTER", "PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINER_ENDPOINTS")
#: mpirun brings the table to supervisors, which need a port agreed beforehand. On one host a start by the
#: table alone needs none, and without a port there are no endpoints.
ENDPOINTS = {"PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_MASTER"}
_FAMILIES = ("HCCL_", "MS_", "PADDLE_", "FLAGS_", "ASCEND_", "TORCHELASTIC_", "MINDSPORE_", *MPI_PREFIXES)

RANK = ("-m", "hccl_tools.launch.rank", "--rank-table", "table.json", "--cpu", "--start")
LAUNCH = ("-m", "hccl_tools", "launch", "--rank-table", "table.json", "--cpu", "--no-preflight", "--start")


def routes(mpirun: Mpirun, start: str) -> dict[str, list[str]]:
    """Return the command line of each way to start the ranks."""
    python = sys.executable
    return {
        "loop": [python, *LAUNCH, start, "program.py"],
        "mpirun": [python, *LAUNCH, start, *mpirun.for_launch, "program.py"],
        "shim": mpirun.ranks(2, python, *RANK, start, "program.py"),
        "hand": [python, *RANK, start, "program.py"],
        "spawn": [python, "spawning.py", start],
    }


def by_hand(mpirun: Mpirun) -> dict[str, str]:
    """Return the place of rank 0 as one types it in a shell."""
    if mpirun.is_mpich:
        return {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    return {f"OMPI_COMM_WORLD_{name}": value for name, value in zip(names, "0202", strict=True)}


def seen(route: str, rank: int, start: str) -> dict[str, str]:
    """Return what a rank has seen of the variables that belong to a job."""
    found = json.loads(Path(f"{route}-{rank}.json").read_text())
    ours = names(VARIABLES)
    own = {
        name: value.replace(found[RUN_DIR], "RUN")
        for name, value in found.items()
        if name in ours or name.startswith(_FAMILIES)
    }
    if start == "table":
        return {name: value for name, value in own.items() if name not in ENDPOINTS}
    port = int(found["MASTER_PORT"])
    ports = {name: re.findall(r"(?:^|:)([0-9]+)(?=,|$)", own[name]) for name in PORTS}
    return {**own, **{name: str([int(one) - port for one in found]) for name, found in ports.items()}}


@pytest.mark.mpi
@pytest.mark.parametrize("start", ["table", "torch"])
@every_mpirun
def test_every_way_to_start_a_rank_gives_it_one_environment(mpirun: Mpirun, start: str) -> None:
    Path("program.py").write_text(PROGRAM)
    Path("spawning.py").write_text(SPAWN)
    Path("table.json").write_text(json.dumps(table()).replace("10.0.0.1", "127.0.0.1"))
    for route, command in routes(mpirun, start).items():
        environ = {**os.environ, **STALE, "OUT": str(Path.cwd()), "ROUTE": route}
        place = by_hand(mpirun) if route == "hand" else {}
        done = subprocess.run(
            command, env={**environ, **place}, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{route}: {done.stderr}"

    for rank in range(2):
        expected = seen("loop", rank, start)
        assert expected["HCCL_CONNECT_TIMEOUT"] == "600"
        assert ("TORCHELASTIC_RUN_ID" in expected) == (start == "table")
        for route in ("mpirun", "shim", "spawn", *(("hand",) if rank == 0 else ())):
            assert seen(route, rank, start) == expected, route
