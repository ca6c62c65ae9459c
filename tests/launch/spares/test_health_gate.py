"""A host that fails the checks before the start is left out, and a spare has its ranks."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.three_hosts import ADDRESSES, isolate
from tests.launch.spares.test_spares_with_devices import (
    TABLE,
    OnAscendHosts,
    addresses,
    device_ips,
    write_table,
)
from tests.support.jobs import LONG, eventually
from tests.support.mpiruns import Mpirun, Ssh, every_mpirun, every_remote_engine
from tests.support.spare_jobs import OnThreeHosts, SpareJob
from tests.support.spares import fill_log_disk, take_ports
from tests.support.spares import write_table as write_small_table

if TYPE_CHECKING:
    from tests.beds.three_hosts import ThreeHosts

pytestmark = [pytest.mark.bed, pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

FULL = ["--preflight", "full", "--preflight-timeout", "20"]
ECHO = ["--start", "torch", "--tail", "all", "--no-python", "sh", "-c", 'echo "rank $RANK on $(hostname)"']


@pytest.fixture
def place(three_hosts: ThreeHosts) -> OnAscendHosts:
    write_table()
    return OnAscendHosts(three_hosts)


def describe(place: OnAscendHosts, host: int, **fields: Any) -> None:
    machine = place.machines[host]
    machine.describe({**machine.description, **fields})


def port_taken(place: OnAscendHosts, host: int, stack: ExitStack) -> str:
    place.machines[host].real_ports()
    take_ports(place.hosts[host], stack)
    return "HCD301"


def missing_device(place: OnAscendHosts, host: int, _stack: ExitStack) -> str:
    (place.machines[host].root / "dev" / "davinci1").unlink()
    return "HCC"


def sick_device(place: OnAscendHosts, host: int, _stack: ExitStack) -> str:
    devices = place.machines[host].description["devices"]
    devices["1"] = {**devices["1"], "npu_health": "Alarm"}
    describe(place, host, devices=devices)
    return "HCD103"


def odd_version(place: OnAscendHosts, host: int, _stack: ExitStack) -> str:
    version = place.machines[host].root / "usr/local/Ascend/driver/version.info"
    version.parent.mkdir(parents=True, exist_ok=True)
    version.write_text("Version=1.0\n")
    for other in set(range(3)) - {host}:
        file = place.machines[other].root / "usr/local/Ascend/driver/version.info"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Version=25.2.0\n")
    return "HCD503"


def log_disk_full(place: OnAscendHosts, host: int, stack: ExitStack) -> str:
    home = place.hosts[host].run([str(place.bed.ssh), ADDRESSES[host], "echo $HOME"]).stdout.strip()
    fill_log_disk(place.hosts[host], home, stack)
    return "HCD306"


def cut_link(place: OnAscendHosts, host: int, stack: ExitStack) -> str:
    stack.enter_context(place.bed.impaired(*isolate(place.hosts[host])))
    return "HCD501"


FAULTS = {
    one.__name__: one
    for one in (port_taken, missing_device, sick_device, odd_version, log_disk_full, cut_link)
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_spare_has_the_ranks_of_a_sick_host_before_the_start(place: OnAscendHosts, fault: str) -> None:
    check_that_a_spare_starts(place, fault)


@pytest.mark.mpi
@pytest.mark.rotates("mpirun")
@every_mpirun
@pytest.mark.parametrize("fault", FAULTS)
def test_the_checks_come_before_mpirun(three_hosts: ThreeHosts, mpirun: Mpirun, fault: str) -> None:
    write_table()
    check_that_a_spare_starts(OnAscendHosts(three_hosts, mpirun), fault)


def check_that_a_spare_starts(place: OnAscendHosts, fault: str) -> None:
    """Check that the third host takes the ranks of the second, which has a fault, before the start."""
    with ExitStack() as stack:
        check = FAULTS[fault](place, 1, stack)
        job = SpareJob(place, *TABLE, *FULL, *ECHO, own_table=True)
        code, said, report = job.end()

    assert code == 0, said
    (replaced,) = report["replaced"]
    assert (replaced["restart"], replaced["host"], replaced["spare"]) == (0, *ADDRESSES[1:])
    assert replaced["ranks"] == [2, 3]
    assert replaced["finding"]["check"].startswith(check), replaced
    assert f"{ADDRESSES[2]} takes the place of {ADDRESSES[1]} (ranks 2-3)" in said
    assert addresses() == {ADDRESSES[host]: device_ips(host) for host in (0, 2)}
    assert f"rank 3 on {place.hosts[2].name}" in said
    assert place.hosts[1].name not in said
    assert report["restarts"] == 0


def test_nothing_starts_without_a_sound_spare(place: OnAscendHosts) -> None:
    with ExitStack() as stack:
        for host in (1, 2):
            sick_device(place, host, stack)
        job = SpareJob(place, *TABLE, *FULL, *ECHO, own_table=True)
        said = job.launcher.communicate(timeout=LONG)[0]

    assert job.launcher.returncode == 125
    assert f"nothing was started: {ADDRESSES[1]} must be replaced, and no spare is left" in said
    assert said.count("stops[HCD103]") == 1  # one finding, on both hosts
    assert not Path("log").exists()
    assert job.left() == []


def test_a_sick_spare_is_left_out(place: OnAscendHosts) -> None:
    with ExitStack() as stack:
        sick_device(place, 2, stack)
        job = SpareJob(place, *TABLE, *FULL, *ECHO, own_table=True)
        code, said, report = job.end()

    assert (code, report["replaced"]) == (0, []), said
    assert f"spare {ADDRESSES[2]} is left out: npu-smi reports the health of device 1" in said


def test_sound_hosts_stay(place: OnAscendHosts) -> None:
    job = SpareJob(place, *TABLE, *FULL, *ECHO, own_table=True)
    code, said, report = job.end()

    assert (code, report["replaced"]) == (0, []), said
    assert addresses() == {ADDRESSES[host]: device_ips(host) for host in (0, 1)}


@pytest.mark.parametrize("seed", [1, 7, 20, 22, 28])
def test_random_faults(place: OnAscendHosts, seed: int) -> None:
    """No sound host is left out, and no job starts with a sick one: also if it is the launcher's own host.

    A spare that cannot be asked is refused before, as without the checks; so is a launcher that is cut off.
    """
    chance = random.Random(seed)  # noqa: S311  (a choice of tests)
    host, fault = chance.choice((0, 1, 2)), chance.choice(list(FAULTS))
    with ExitStack() as stack:
        FAULTS[fault](place, host, stack)
        job = SpareJob(place, *TABLE, *FULL, *ECHO, own_table=True)
        said = job.launcher.communicate(timeout=LONG)[0]

    assert eventually(lambda: not job.left()), said
    if job.launcher.returncode == 125:
        assert (host, fault) in {(2, "cut_link"), (2, "missing_device"), (0, "cut_link")}, said
        assert not Path("log").exists()
        return
    assert job.launcher.returncode == 0, (fault, host, said)
    assert set(addresses()) == {ADDRESSES[one] for one in range(3) if one != host}, (fault, host, said)


COMMAND = "--preflight-command"
#: Fails on the host with the file.
HEALTH = '[ ! -e "sick_$(hostname)" ] || { echo "the disk of $(hostname) is worn out"; exit 3; }'


@every_remote_engine
@pytest.mark.mpi
@pytest.mark.rotates("engine")
def test_the_users_own_check(three_hosts: ThreeHosts, engine: Mpirun | Ssh) -> None:
    first, second, third = three_hosts.hosts
    health = HEALTH.replace('"sick_', f'"{Path.cwd()}/sick_')
    Path(f"sick_{second.name}").touch()
    place = OnThreeHosts(three_hosts, engine)
    job = SpareJob(place, COMMAND, health, *ECHO)
    code, said, report = job.end()

    assert code == 0, said
    (replaced,) = report["replaced"]
    assert (replaced["host"], replaced["spare"], replaced["ranks"]) == (second.address, third.address, [1])
    assert replaced["finding"] == {
        "check": "HCD325",
        "message": f"the health command failed with exit code 3: the disk of {second.name} is worn out",
    }
    assert {f"rank 0 on {first.name}", f"rank 1 on {third.name}"} < set(said.splitlines()) | {
        line.partition("] ")[2] for line in said.splitlines()
    }


def test_a_check_that_does_not_end(three_hosts: ThreeHosts) -> None:
    """Its children are gone as well, and without spares the job is refused."""
    table = write_small_table(*(host.address for host in three_hosts.hosts[:2]))
    slow = f'[ "$(hostname)" != {three_hosts.hosts[1].name} ] || {{ sleep 7171 & wait; }}'
    place = OnThreeHosts(three_hosts, Ssh(), reserve=[])
    job = SpareJob(
        place, "--rank-table", table, COMMAND, slow, "--preflight-timeout", "8", *ECHO, own_table=True
    )
    said = job.launcher.communicate(timeout=LONG)[0]

    assert job.launcher.returncode == 125
    assert "stops[HCD325]" in said
    assert "exit code 124: it did not end within 3 s" in said
    assert job.left() == []


def test_the_findings_of_doctor_in_the_users_check(three_hosts: ThreeHosts) -> None:
    table = write_small_table(*(host.address for host in three_hosts.hosts[:2]))
    finding = {"check": "HCD103", "consequence": "stops", "message": "device 3 is sick"}
    Path("said.json").write_text(json.dumps({"findings": [finding]}))
    place = OnThreeHosts(three_hosts, Ssh(), reserve=[])
    check = f"cat {Path.cwd()}/said.json; exit 1"
    job = SpareJob(place, "--rank-table", table, COMMAND, check, *ECHO, own_table=True)
    said = job.launcher.communicate(timeout=LONG)[0]

    assert job.launcher.returncode == 125
    assert "the health command failed with exit code 1: HCD103: device 3 is sick" in " ".join(said.split())
