"""``--bind``: real affinities of real ranks, and shares of made-up hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.launch.planning import cpu_affinity
from hccl_tools.launch.planning.placement import place_ranks_without_table
from hccl_tools.notation import number_list

OWN = sorted(os.sched_getaffinity(0))
several_cores = pytest.mark.skipif(len(OWN) < 2, reason="this process may use one core only")


def launch(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hccl_tools.launch", "--no-table", "-n", "2", *args]
    program = ["--no-python", "sh", "-c", "grep Cpus_allowed_list /proc/self/status"]
    return subprocess.run([*command, *program], capture_output=True, text=True, timeout=120, check=False)


def host(folder: Path, *nodes: str) -> dict[str, str]:
    """Make a host's NUMA nodes with these lists of cores."""
    for number, cores in enumerate(nodes):
        place = folder / "sys/devices/system/node" / f"node{number}"
        place.mkdir(parents=True)
        (place / "cpulist").write_text(cores + "\n")
    return {"HCCL_TOOLS_ROOT": str(folder)}


@several_cores
def test_ranks_share_the_cores_evenly() -> None:
    done = launch("--bind", "cores")

    assert done.returncode == 0, done.stderr
    half = len(OWN) // 2
    for rank, share in enumerate((OWN[:half], OWN[half:])):
        said = Path(f"log/latest/rank_{rank}.log").read_text()
        assert said.split() == ["Cpus_allowed_list:", number_list.fold(share)]


@several_cores
def test_the_plan_shows_the_cores() -> None:
    shown = launch("--bind", "cores", "--dry-run").stdout

    assert "  DEVICE_ID  cores  log" in next(line for line in shown.splitlines() if "rank  host" in line)
    assert "  device  DEVICE_ID  log" in launch("--dry-run").stdout


def test_too_few_cores_are_refused() -> None:
    seats = place_ranks_without_table(range(len(OWN) + 1), ["localhost"])

    with pytest.raises(
        LaunchError, match=f"{len(seats)} ranks need one core each, but this process may use only {len(OWN)}"
    ):
        cpu_affinity.cores_of("cores", seats, {})


def test_neighbouring_ranks_share_a_numa_node(tmp_path: Path) -> None:
    both = ",".join(map(str, OWN))
    environ = host(tmp_path, both, both)

    found = cpu_affinity.cores_of("numa", place_ranks_without_table([3, 2, 1, 0], ["localhost"]), environ)

    assert found == dict.fromkeys(range(4), tuple(OWN))
    assert cpu_affinity.numa_nodes(host(tmp_path / "other", "0-1,4", "2-3")) == [{0, 1, 4}, {2, 3}]


def test_a_host_that_tells_of_no_numa_nodes(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="lists no NUMA node"):
        cpu_affinity.cores_of(
            "numa", place_ranks_without_table([0], ["localhost"]), {"HCCL_TOOLS_ROOT": str(tmp_path)}
        )
