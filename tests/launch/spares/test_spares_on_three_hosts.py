"""A job of two hosts and a spare: the third host takes the place of one that is lost."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.beds.three_hosts import isolate
from tests.support import published
from tests.support.jobs import LONG, eventually
from tests.support.late_host import held_back
from tests.support.mpiruns import Ssh, every_mpirun, every_remote_engine
from tests.support.processes import above, has_ended, held
from tests.support.spare_jobs import OnThreeHosts, SpareJob
from tests.support.spares import ONCE_AGAIN, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.three_hosts import ThreeHosts
    from tests.support.late_host import LateHost
    from tests.support.mpiruns import Mpirun

pytestmark = [pytest.mark.bed, pytest.mark.mpi, pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

#: The table before the restart, and that of the job.
TABLES = ("rank_table.before_restart_1.json", "rank_table.json")
SHELL = ["--start", "torch", "--no-python", "sh", "-c", ONCE_AGAIN]
#: An address of the bed's network that no host has.
NOBODY = "10.0.0.9"


@pytest.fixture
def scripts(three_hosts: ThreeHosts) -> Iterator[list[Path]]:
    """Put a script with the program on each host's own disk."""
    own = [host.folder / "disk" / "job.sh" for host in three_hosts.hosts]
    for path in own:
        path.write_text(f"#!/bin/sh\n{ONCE_AGAIN}\n")
        path.chmod(0o755)
    yield own
    for path in own:
        path.unlink(missing_ok=True)


def program(bed: ThreeHosts) -> list[str]:
    """Return the options that start the script of each host."""
    return ["--start", "torch", "--no-python", str(bed.hosts[0].disk / "job.sh")]


@every_remote_engine
def test_a_spare_takes_the_place_of_a_host_whose_processes_are_killed(
    three_hosts: ThreeHosts, engine: Mpirun | Ssh
) -> None:
    lost, spare = (host.address for host in three_hosts.hosts[1:])
    job = SpareJob(OnThreeHosts(three_hosts, engine), "--max-restarts", "1", *SHELL)
    assert job.waits_for("up_0", "up_1"), job.launcher.communicate(timeout=LONG)[0]
    job.kill()

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
    run_dir = Path("log/latest")
    before, after = (json.loads((run_dir / name).read_text()) for name in TABLES)
    assert [one["server_id"] for one in before["server_list"]] == [three_hosts.hosts[0].address, lost]
    assert [one["server_id"] for one in after["server_list"]] == [three_hosts.hosts[0].address, spare]
    assert (run_dir / "rank_1.restart_1.log").read_text() == f"on {three_hosts.hosts[2].name}\n"
    assert published.read("plan", run_dir / "plan.json")["hosts"] == [three_hosts.hosts[0].address, spare]
    lost, ended = (one["reason"] for one in report["attempts"])
    assert (lost in {"host", "daemon"}, ended) == (True, "ended")  # What the first of its processes was.


@every_mpirun
def test_a_spare_takes_the_place_of_a_host_that_is_cut_off(three_hosts: ThreeHosts, mpirun: Mpirun) -> None:
    lost, spare = (host.address for host in three_hosts.hosts[1:])
    job = SpareJob(OnThreeHosts(three_hosts, mpirun), "--max-restarts", "1", *SHELL)
    assert job.waits_for("up_0", "up_1"), job.launcher.communicate(timeout=LONG)[0]

    with three_hosts.impaired(*isolate(three_hosts.hosts[1])):
        code, said, report = job.end()

    assert code == 0, said
    assert [(one["host"], one["spare"], one["ranks"]) for one in report["replaced"]] == [(lost, spare, [1])]


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_spare_takes_the_place_of_a_host_that_refuses_its_part(
    three_hosts: ThreeHosts, engine: Mpirun | Ssh, scripts: list[Path]
) -> None:
    lost, spare = (host.address for host in three_hosts.hosts[1:])
    scripts[1].unlink()

    job = SpareJob(OnThreeHosts(three_hosts, engine), "--max-restarts", "1", *program(three_hosts))
    code, said, report = job.end()

    assert code == 0, said
    assert [(one["host"], one["spare"]) for one in report["replaced"]] == [(lost, spare)]
    assert [one["reason"] for one in report["attempts"]] == ["refused", "ended"]


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_spare_takes_the_place_of_a_host_whose_daemon_is_killed(
    three_hosts: ThreeHosts, engine: Mpirun | Ssh
) -> None:
    lost, spare = (host.address for host in three_hosts.hosts[1:])
    job = SpareJob(OnThreeHosts(three_hosts, engine), "--max-restarts", "1", *SHELL)
    assert job.waits_for("up_0", "up_1"), job.launcher.communicate(timeout=LONG)[0]
    os.kill(above(int(Path("up_1").read_text()))["daemon"], signal.SIGKILL)

    code, said, report = job.end()

    assert code == 0, said
    assert [(one["host"], one["spare"]) for one in report["replaced"]] == [(lost, spare)]


@every_mpirun
@pytest.mark.rotates("mpirun")
def test_a_spare_takes_the_place_of_a_host_that_learns_of_the_end_before_it_sees_its_daemon_killed(
    three_hosts: ThreeHosts, mpirun: Mpirun
) -> None:
    lost, spare = (host.address for host in three_hosts.hosts[1:])
    job = SpareJob(OnThreeHosts(three_hosts, mpirun), "--max-restarts", "1", *SHELL)
    assert job.waits_for("up_0", "up_1"), job.launcher.communicate(timeout=LONG)[0]
    engine = above(int(Path("up_0").read_text()))["daemon"]
    second = above(int(Path("up_1").read_text()))
    with held(second["supervisor"]):
        os.kill(second["daemon"], signal.SIGKILL)
        assert eventually(lambda: has_ended(engine))

    code, said, report = job.end()

    assert code == 0, said
    assert [(one["host"], one["spare"]) for one in report["replaced"]] == [(lost, spare)]


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_spare_that_is_unreachable_is_passed_over(three_hosts: ThreeHosts, engine: Mpirun | Ssh) -> None:
    lost, spare = (host.address for host in three_hosts.hosts[1:])
    place = OnThreeHosts(three_hosts, engine, reserve=[NOBODY, spare])
    job = SpareJob(place, "--max-restarts", "1", *SHELL)
    assert job.waits_for("up_0", "up_1"), job.launcher.communicate(timeout=LONG)[0]
    job.kill()

    code, said, report = job.end()

    assert (code, report["restarts"]) == (0, 2), said
    assert [(one["host"], one["spare"]) for one in report["replaced"]] == [(lost, NOBODY), (NOBODY, spare)]
    assert f"  cause: {report['attempts'][0]['detail']}\n" in said
    assert "restart 1 of 1: starting all ranks again\n" in said
    assert "restart 2: starting all ranks again\n" in said


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_spare_that_refuses_at_its_turn_is_passed_over(
    three_hosts: ThreeHosts, engine: Mpirun | Ssh, scripts: list[Path]
) -> None:
    first, refusing, good = (host.address for host in three_hosts.hosts)
    scripts[1].unlink()
    place = OnThreeHosts(three_hosts, engine, reserve=[refusing, good])
    options = ["--rank-table", write_table(first, NOBODY), "--max-restarts", "1", *program(three_hosts)]

    code, said, report = SpareJob(place, *options, own_table=True).end()

    assert (code, report["restarts"]) == (0, 2), said
    replaced = [(one["host"], one["spare"]) for one in report["replaced"]]
    assert replaced == [(NOBODY, refusing), (refusing, good)]
    assert f"  cause: {refusing} does not start its part: the program " in said
    assert [one["reason"] for one in report["attempts"]][1:] == ["refused", "ended"]
    assert report["attempts"][1]["began_on"] == refusing


@pytest.fixture
def changed_python(three_hosts: ThreeHosts) -> Path:
    """A file that every Python on the second host runs at its start."""
    changed = three_hosts.hosts[1].folder / "python" / "sitecustomize.py"
    changed.parent.mkdir()
    return changed


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("import hccl_tools.version\nhccl_tools.version.__version__ = '0.0.9'\n", "has 0.0.9"),
        (
            "import sys\nsys.modules['hccl_tools.cli'] = None\n",
            "cannot run hccl-tools: ModuleNotFoundError: ",
        ),
    ],
    ids=["other version", "broken installation"],
)
@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_spare_that_cannot_run_hccl_tools_is_passed_over(
    three_hosts: ThreeHosts, engine: Mpirun | Ssh, changed_python: Path, change: str, why: str
) -> None:
    first, unusable, good = (host.address for host in three_hosts.hosts)
    changed_python.write_text(change)
    place = OnThreeHosts(three_hosts, engine, reserve=[unusable, good])
    options = ["--rank-table", write_table(first, NOBODY), "--max-restarts", "1"]

    code, said, report = SpareJob(place, *options, *SHELL, own_table=True).end()

    assert (code, report["restarts"]) == (0, 2), said
    replaced = [(one["host"], one["spare"]) for one in report["replaced"]]
    assert replaced == [(NOBODY, unusable), (unusable, good)]
    assert why in said
    assert "restart 1 of 1: " in said
    assert "restart 2: " in said


@pytest.fixture
def late(three_hosts: ThreeHosts) -> Iterator[LateHost]:
    with held_back(three_hosts.hosts[1]) as found:
        yield found


@every_remote_engine
@pytest.mark.rotates("engine")
def test_a_spare_that_is_cut_off_at_its_turn_is_passed_over(
    three_hosts: ThreeHosts, engine: Mpirun | Ssh, late: LateHost
) -> None:
    first, cut, good = (host.address for host in three_hosts.hosts)
    place = OnThreeHosts(three_hosts, engine, reserve=[cut, good])
    options = ["--rank-table", write_table(first, NOBODY), "--max-restarts", "1"]
    job = SpareJob(place, *options, *SHELL, own_table=True)
    assert late.has_begun()
    with three_hosts.impaired(*isolate(late.host)):
        late.goes_on()
        code, said, report = job.end()

    assert (code, report["restarts"]) == (0, 2), said
    replaced = [(one["host"], one["spare"]) for one in report["replaced"]]
    assert replaced == [(NOBODY, cut), (cut, good)]


def test_a_job_whose_only_spare_refuses_ends(three_hosts: ThreeHosts, scripts: list[Path]) -> None:
    _, spare = (host.address for host in three_hosts.hosts[1:])
    job = SpareJob(OnThreeHosts(three_hosts, Ssh()), "--max-restarts", "3", *program(three_hosts))
    assert job.waits_for("up_0", "up_1"), job.launcher.communicate(timeout=LONG)[0]
    scripts[2].unlink()
    job.kill()

    code, said, report = job.end()

    assert (code, report["reason"]) == (125, "refused"), said
    assert f"no restart: {spare} must be replaced, and no spare is left\n" in said
    refusal = f"{three_hosts.hosts[2].address} does not start its part: the program "
    assert refusal in said.partition("takes the place of")[2]
    assert [one["reason"] for one in report["attempts"]] == ["host", "refused"]
