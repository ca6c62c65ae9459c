"""``stacks`` and the end of a hang for a job whose hosts an engine has started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import published, two_by_two
from tests.support.jobs import LONG, eventually
from tests.support.mpiruns import every_remote_engine

if TYPE_CHECKING:
    from tests.beds.two_hosts import TwoHosts
    from tests.support.mpiruns import Mpirun, Ssh

pytestmark = [pytest.mark.bed, pytest.mark.mpi]

HANGS = """\
import os, signal, time
print("up", flush=True)
def wait_for_others():
    time.sleep(300)
if os.environ["RANK_ID"] == "3":
    os.kill(os.getpid(), signal.SIGSTOP)
wait_for_others()
"""


def command(two_hosts: TwoHosts, engine: Mpirun | Ssh, *options: str) -> list[str]:
    Path("hangs.py").write_text(HANGS)
    hosts = (two_hosts.first.address, two_hosts.second.address)
    start = (*engine.for_launch, "--start", "torch", "--grace", "2", "--faulthandler")
    return [*two_by_two.command(hosts, *start, *options), "hangs.py"]


@every_remote_engine
@pytest.mark.rotates("engine")
def test_the_host_of_the_stopped_rank_ends_the_job(
    engine: Mpirun | Ssh, own_directory: Path, two_hosts: TwoHosts
) -> None:
    done = two_hosts.first.run(
        command(two_hosts, engine, "--hang-timeout", "3"), env=two_by_two.environ(two_hosts)
    )

    assert done.returncode == 124, done.stderr
    assert "rank 3 stopped first" in done.stderr
    report = published.read("report", own_directory / "log" / "latest" / "report.json")
    assert report["reason"] == "hang"
    (first,) = [one for one in report["hung"] if one["is_first"]]
    assert (first["rank"], first["host"]) == (3, two_hosts.second.address)
    assert first["stack"][-1].endswith(" in <module>")


@every_remote_engine
@pytest.mark.rotates("engine")
def test_the_ranks_of_both_hosts_are_shown(
    engine: Mpirun | Ssh, own_directory: Path, two_hosts: TwoHosts
) -> None:
    environ = two_by_two.environ(two_hosts)
    job = two_hosts.first.start(
        command(two_hosts, engine), env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    logs = [own_directory / "log" / "latest" / f"rank_{rank}.log" for rank in range(4)]
    try:
        assert eventually(lambda: all(log.exists() and "up" in log.read_text() for log in logs))
        tool = [sys.executable, "-m", "hccl_tools"]
        assert eventually(
            lambda: "): stopped\n" in two_hosts.first.run([*tool, "stacks"], env=environ).stdout
        )
        done = two_hosts.first.run([*tool, "stacks", "-f", "json"], env=environ)
        two_hosts.first.run([*tool, "stop"], env=environ)
    finally:
        job.communicate(timeout=LONG)

    assert done.returncode == 0, done.stderr
    ranks = {one["rank"]: one for one in json.loads(done.stdout)["ranks"]}
    assert ranks[3]["doing"] == "stopped"
    assert all(" in wait_for_others" in ranks[rank]["stack"][0] for rank in (0, 1, 2))
    assert {one["host"] for one in ranks.values()} == {two_hosts.first.address, two_hosts.second.address}
