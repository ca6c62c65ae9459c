"""A job of two hosts and a spare: the third host takes the place of one that is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.jobs import eventually
from tests.support.mpiruns import every_remote_engine
from tests.support.processes import has_ended
from tests.support.spares import ONCE_AGAIN, OPTIONS, TIMING, write_table
from tests.support.three_by import environ

if TYPE_CHECKING:
    from tests.beds.network_host import Host
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.mpiruns import Mpirun, Ssh

pytestmark = [pytest.mark.bed, pytest.mark.mpi, pytest.mark.slow]

LAUNCH = [sys.executable, "-m", "hccl_tools", "launch", "--product", "a2", "--cpu", "--start", "torch"]
#: The table before the restart, and that of the job.
TABLES = ("rank_table.before_restart_1.json", "rank_table.json")


class SpareJob:
    """A job on the first two of three hosts, started on the first, with the third as a spare."""

    def __init__(
        self, bed: ThreeHosts, engine: Mpirun | Ssh, *options: str, program: str = ONCE_AGAIN
    ) -> None:
        self.bed = bed
        self._always = {pid for host in bed.hosts for pid in host.pids()}
        first, second, spare = (host.address for host in bed.hosts)
        reserve = ["--spare-hosts", spare, "--max-restarts", "1"]
        self.launcher = bed.hosts[0].start(
            [
                *(*LAUNCH, "--rank-table", write_table(first, second), *engine.for_launch, *reserve),
                *(*OPTIONS, *options, "--no-python", "sh", "-c", program),
            ],
            env=environ(bed) | TIMING,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def is_up(self) -> bool:
        """Whether both ranks run before long."""
        return eventually(lambda: all(Path(f"up_{rank}").exists() for rank in (0, 1)), 60)

    def on(self, host: Host) -> list[int]:
        """Return the processes of the job on a host."""
        return [pid for pid in host.pids() if pid not in self._always and not has_ended(pid)]

    def end(self) -> tuple[int, str, dict[str, Any]]:
        """Wait for the end of the job, of which nothing may be left: its code, output and report."""
        said = self.launcher.communicate(timeout=90)[0]
        assert eventually(lambda: not any(map(self.on, self.bed.hosts)), 5), said
        return self.launcher.returncode, said, json.loads(Path("log/latest/report.json").read_text())


@every_remote_engine
def test_a_spare_takes_the_place_of_a_host_whose_processes_are_killed(
    three_hosts: ThreeHosts, own_directory: Path, engine: Mpirun | Ssh
) -> None:
    lost, spare = (host.address for host in three_hosts.hosts[1:])
    job = SpareJob(three_hosts, engine)
    assert job.is_up(), job.launcher.communicate(timeout=30)[0]
    for pid in job.on(three_hosts.hosts[1]):
        os.kill(pid, signal.SIGKILL)

    code, said, report = job.end()

    assert code == 0, said
    (replaced,) = report["replaced"]
    assert (replaced["restart"], replaced["host"], replaced["spare"], replaced["ranks"]) == (
        1,
        lost,
        spare,
        [1],
    )
    assert (
        f"{spare} takes the place of {lost} (rank 1); the table's fingerprint {replaced['table_before']} "
        f"becomes {replaced['table_after']}\n"
    ) in said
    run_dir = own_directory / "log" / "latest"
    before, after = (json.loads((run_dir / name).read_text()) for name in TABLES)
    assert [one["server_id"] for one in before["server_list"]] == [three_hosts.hosts[0].address, lost]
    assert [one["server_id"] for one in after["server_list"]] == [three_hosts.hosts[0].address, spare]
    assert (run_dir / "rank_1.restart_1.log").read_text() == f"on {three_hosts.hosts[2].name}\n"
    assert json.loads((run_dir / "plan.json").read_text())["hosts"] == [three_hosts.hosts[0].address, spare]
    assert [one["reason"] for one in report["attempts"]] == ["host", "ended"]
