"""``--exclude`` on real hosts: who is asked, who starts ranks, and which table each host gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.beds.gather_cluster import HOSTS, Cluster
from tests.beds.three_hosts import ADDRESSES
from tests.launch.spares.test_spares_with_devices import OnAscendHosts, addresses, device_ips
from tests.support import published
from tests.support.jobs import LONG
from tests.support.mpiruns import Mpirun, Ssh, every_remote_engine
from tests.support.spare_jobs import OnThreeHosts
from tests.support.spares import write_table

if TYPE_CHECKING:
    from tests.beds.three_hosts import ThreeHosts
    from tests.beds.two_hosts import TwoHosts

pytestmark = [pytest.mark.bed, pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

ECHO = ["--start", "torch", "--tail", "all", "--no-python", "sh", "-c", 'echo "rank $RANK on $(hostname)"']


@pytest.mark.parametrize(
    ("excluded", "rows"),
    [
        (HOSTS[1], {HOSTS[0]: list("01234567")}),
        ("10.77.0.[1-2]:4-7", {host: list("0123") for host in HOSTS}),
        (f"{HOSTS[0]}:0-3@{HOSTS[1]}", {HOSTS[0]: list("4567")}),
    ],
)
def test_the_table_of_gen(
    two_hosts: TwoHosts, tmp_path: Path, excluded: str, rows: dict[str, list[str]]
) -> None:
    cluster = Cluster(two_hosts, tmp_path)

    done = cluster.gen(
        "--engine",
        "ssh",
        "--hosts",
        ",".join(HOSTS),
        "--exclude",
        excluded,
        "--ignore=HCC308",
        "-o",
        "job.json",
    )

    assert done.returncode == 0, done.stderr
    table = json.loads((tmp_path / "job.json").read_text())
    found = {
        server["server_id"]: [device["device_id"] for device in server["device"]]
        for server in table["server_list"]
    }
    assert found == rows
    ranks = [device["rank_id"] for server in table["server_list"] for device in server["device"]]
    assert ranks == [str(rank) for rank in range(len(ranks))]
    assert "left out by --exclude: " in done.stderr


def test_a_device_that_a_host_does_not_have(two_hosts: TwoHosts, tmp_path: Path) -> None:
    cluster = Cluster(two_hosts, tmp_path)

    done = cluster.gen("--engine", "ssh", "--hosts", ",".join(HOSTS), "--exclude", f"{HOSTS[1]}:8")

    assert done.returncode == 2
    assert f"--exclude: {HOSTS[1]} has no device 8 in this job" in done.stderr
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.mpi
@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_job_with_a_table(three_hosts: ThreeHosts, engine: Mpirun | Ssh) -> None:
    """The other host's part of the job gets the smaller table, and does not leave hosts out again."""
    table = write_table(*(host.address for host in three_hosts.hosts))
    place = OnThreeHosts(three_hosts, engine, reserve=[])

    launcher = place.start("--rank-table", table, "--exclude", three_hosts.hosts[1].address, *ECHO)
    said = launcher.communicate(timeout=LONG)[0]

    assert launcher.returncode == 0, said
    assert f"rank 0 on {three_hosts.hosts[0].name}" in said
    assert f"rank 1 on {three_hosts.hosts[2].name}" in said
    assert "leaves 2 of 3 servers, 2 of 3 ranks" in said
    hosts = published.read("plan", Path("log/latest/plan.json"))["hosts"]
    assert hosts == [three_hosts.hosts[0].address, three_hosts.hosts[2].address]


def test_a_job_with_a_list_of_hosts(three_hosts: ThreeHosts) -> None:
    place = OnAscendHosts(three_hosts)
    excluded = f"10.0.0.[1,3]:0@{ADDRESSES[1]}"

    launcher = place.start("--hosts", "10.0.0.[1-3]", "--exclude", excluded, *ECHO)
    said = launcher.communicate(timeout=LONG)[0]

    assert launcher.returncode == 0, said
    assert addresses() == {ADDRESSES[host]: device_ips(host)[1:] for host in (0, 2)}
    assert three_hosts.hosts[1].name not in said.replace(f"left out by --exclude: {excluded}", "")
