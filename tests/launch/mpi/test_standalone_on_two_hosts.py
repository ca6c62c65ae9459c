"""Ranks of two hosts under one mpirun that the user typed: each on the host that the table says."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.mpiruns import every_mpirun

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

    from tests.beds.two_hosts import TwoHosts
    from tests.support.mpiruns import Mpirun

pytestmark = [pytest.mark.bed, pytest.mark.mpi]

SHOW = """\
import json, os
names = ("RANK_ID", "DEVICE_ID", "SERVER_ID", "MASTER_ADDR", "MASTER_PORT", "PADDLE_TRAINER_ENDPOINTS")
print(json.dumps({name: os.environ.get(name) for name in names}))
"""


@pytest.fixture(autouse=True)
def table(own_directory: Path, two_hosts: TwoHosts) -> None:
    """Write a table with ranks 0 and 1 on the first host, 2 and 3 on the second."""
    servers = [
        {
            "server_id": host.address,
            "device": [
                {"device_id": str(4 + place), "device_ip": f"192.168.{index}.{place}",
                 "rank_id": str(2 * index + place)}
                for place in range(2)
            ],
            "host_nic_ip": "reserve",
        }
        for index, host in enumerate((two_hosts.first, two_hosts.second))
    ]  # fmt: skip
    value = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
    (own_directory / "table.json").write_text(json.dumps(value))
    (own_directory / "show.py").write_text(SHOW)


def ranks(
    mpirun: Mpirun, two_hosts: TwoHosts, *typed: str, options: tuple[str, ...] = (), in_turn: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Start two ranks on each host, the first host's first, or ``in_turn``."""
    hosts = [two_hosts.first.address, two_hosts.second.address]
    if mpirun.is_mpich:
        where = ["-hosts", ",".join(hosts), "-ppn", "1" if in_turn else "2"]
    else:
        where = ["--host", ",".join(f"{host}:2" for host in hosts)]
        where += ["--map-by", "node"] if in_turn else []
        where += ["--prefix", str(mpirun.path.parent.parent)] if str(mpirun) == "wheel" else []
        where += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    shim = [sys.executable, "-m", "hccl_tools.launch.rank", "--product", "a2", "--cpu", "--start", "torch"]
    command = [str(mpirun.path), *options, *where, "-n", "4", *shim, *typed, "show.py"]
    return two_hosts.first.run(command, env={**two_by_two.environ(two_hosts), **variables})


def check(done: subprocess.CompletedProcess[str], two_hosts: TwoHosts) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = two_hosts.first.address, two_hosts.second.address
    for rank in range(4):
        (log,) = Path("log").glob(f"2*/rank_{rank}.log")
        found = json.loads(log.read_text().splitlines()[-1])
        assert (found["RANK_ID"], found["DEVICE_ID"]) == (str(rank), str(rank % 2))
        assert (found["SERVER_ID"], found["MASTER_ADDR"], found["MASTER_PORT"]) == (
            str(rank // 2), first, "18118",
        )  # fmt: skip
        assert found["PADDLE_TRAINER_ENDPOINTS"].startswith(f"{first}:18118,{first}:18119,{second}:18118,")
    assert (
        done.stderr.count("hccl-tools: 4 ranks, devices 4, 5 on this host, start method torch (--start); ")
        == 1
    )


@every_mpirun
def test_ranks_meet_at_the_first_server(mpirun: Mpirun, two_hosts: TwoHosts) -> None:
    check(ranks(mpirun, two_hosts, "--rank-table", "table.json"), two_hosts)


@every_mpirun
def test_ranks_dealt_out_unlike_the_table_are_refused(mpirun: Mpirun, two_hosts: TwoHosts) -> None:
    done = ranks(mpirun, two_hosts, "--rank-table", "table.json", in_turn=True)

    assert done.returncode == 125, done.stdout + done.stderr
    assert 'is on server "' in done.stderr
    assert "mpirun started it on" in done.stderr
    assert not [*Path("log").glob("*/rank_1.log"), *Path("log").glob("*/rank_2.log")]


@every_mpirun
def test_a_table_of_the_shell_reaches_all_hosts_or_is_refused(mpirun: Mpirun, two_hosts: TwoHosts) -> None:
    """MPICH passes the shell's variables on, Open MPI does not."""
    named = {"RANK_TABLE_FILE": str(Path("table.json").absolute())}
    if not mpirun.is_mpich:
        done = ranks(mpirun, two_hosts, variables=named)

        # Whichever host is first: the one that lacks the table, or the one that has it.
        assert done.returncode in {2, 125}, done.stdout + done.stderr
        missing = "--start torch on several hosts needs a rank table" in done.stderr
        assert missing or "mpirun does not pass it to the ranks of other hosts" in done.stderr
        assert "--rank-table" in done.stderr
        assert not list(Path("log").glob("*/rank_*.log"))
    passed = () if mpirun.is_mpich else ("-x", "RANK_TABLE_FILE")
    check(ranks(mpirun, two_hosts, options=passed, variables=named), two_hosts)
