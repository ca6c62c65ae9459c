from __future__ import annotations

import copy
import subprocess
import sys

import pytest

from hccl_tools.launch.mpi.prepared import PreparedRank
from hccl_tools.launch.mpi.world import MpiWorld

WORLD = MpiWorld(1, 2, 1, 2, "job", "Open MPI")


def test_a_record_is_what_typing_makes_of_it() -> None:
    assert WORLD == (1, 2, 1, 2, "job", "Open MPI")
    assert WORLD.one_host
    assert not WORLD._replace(local_size=1).one_host
    assert repr(WORLD).startswith("MpiWorld(rank=1, size=2")
    assert copy.copy(WORLD) == WORLD
    assert (MpiWorld.__doc__ or "").startswith("The rank of a process")


def test_defaults_and_what_must_be_given() -> None:
    assert PreparedRank(0, 4, ("true",), {}, "run").tail == "0"
    with pytest.raises(TypeError, match="run_dir"):
        PreparedRank(0, 4, ("true",), {})  # type: ignore[call-arg]


def test_a_shim_loads_none_of_what_takes_long() -> None:
    code = (
        "import sys; from hccl_tools.launch import rank;"
        " from hccl_tools.launch.mpi import end_report, planned_ranks, shim;"
        " print(sorted({'typing', 'json', 're', 'dataclasses', 'subprocess'} & set(sys.modules)))"
    )

    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
