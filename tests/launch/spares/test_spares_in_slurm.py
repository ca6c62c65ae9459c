"""A Slurm job of two nodes with a third one as a spare."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.daemons import program
from tests.beds.slurm_cluster import ALL_NODES
from tests.launch.spares.test_spares_with_devices import DEVICES, device_ips
from tests.launch.spares.test_spares_with_devices import write_table as write_table_of_devices
from tests.support import published
from tests.support.hosts import conf_text, make_host
from tests.support.jobs import LONG, eventually
from tests.support.processes import kill_all
from tests.support.spares import ONCE_AGAIN, OPTIONS, TIMING, fill_log_disk, take_ports, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.network_host import Host
    from tests.beds.slurm_cluster import SlurmCluster
    from tests.support.hosts import StandInHost

pytestmark = [pytest.mark.bed, pytest.mark.slow]

LAUNCH = [sys.executable, "-m", "hccl_tools", "launch", "--product", "a2", "--cpu", "--start", "torch"]
THREE = f"--partition={ALL_NODES}"
SPARES = ["--engine", "slurm", "--spares", "1", "--max-restarts", "1"]


@pytest.fixture
def bed(slurm_cluster: SlurmCluster, own_directory: Path) -> Iterator[SlurmCluster]:
    """The cluster, all of whose nodes are up before and after."""
    write_table(slurm_cluster.first.address, slurm_cluster.second.address)
    yield slurm_cluster
    slurm_cluster.run([program("scancel"), "--user=root", "--signal=KILL"])
    assert eventually(lambda: slurm_cluster.is_idle)


def launch(script: str, *more: str) -> list[str]:
    options = ["--rank-table", "table.json", *SPARES, *OPTIONS, *more]
    return [*LAUNCH, *options, "--no-python", "sh", "-c", script]


def start(bed: SlurmCluster, *argv: str) -> subprocess.Popen[str]:
    own_command = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # hccl-tools, in an emitted script
    return bed.login.start(
        argv,
        env={**bed.env, **TIMING, "PATH": own_command},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def is_up() -> bool:
    """Whether both ranks run before long."""
    return eventually(lambda: all(Path(f"up_{rank}").exists() for rank in (0, 1)))


def check(bed: SlurmCluster, said: str) -> None:
    """Check that n3 took the place of n2, and that nothing is left."""
    report: dict[str, Any] = published.read("report", Path("log/latest/report.json"))
    assert (report["exit_code"], report["restarts"]) == (0, 1), said
    assert [(one["host"], one["spare"]) for one in report["replaced"]] == [(bed.second.address, "n3")]
    assert f"n3 takes the place of {bed.second.address} (rank 1); " in said
    assert Path("log/latest/rank_1.restart_1.log").read_text() == "on n3\n"
    assert not [words for node in bed.nodes for words in node.commands().values() if "6464" in words]


@pytest.mark.parametrize("is_noticed", [False, True], ids=["before Slurm notices", "noticed by Slurm"])
def test_a_spare_node_takes_the_place_of_a_node_that_has_died(bed: SlurmCluster, is_noticed: bool) -> None:
    job = start(bed, "salloc", "-N3", THREE, "--ntasks-per-node=1", "--no-kill", *launch(ONCE_AGAIN))
    assert is_up()
    kill_all(bed.second.pids())
    try:
        if is_noticed:
            bed.run([program("scontrol"), "update", "nodename=n2", "state=down", "reason=dead"])
        said = job.communicate(timeout=LONG)[0]
    finally:
        bed.revive(bed.second)

    assert job.returncode == 0, said
    check(bed, said)


def test_an_emitted_batch_script_continues_on_a_spare(bed: SlurmCluster) -> None:
    emitted = bed.login.run(launch(ONCE_AGAIN, "--emit", "slurm"))
    assert "\n#SBATCH --nodes=3\n" in emitted.stdout, emitted.stderr
    Path("job.sbatch").write_text(emitted.stdout)
    job = start(bed, "sbatch", "--wait", THREE, "--output=out", "job.sbatch")
    assert is_up()
    kill_all(bed.second.pids())
    try:
        bed.run([program("scontrol"), "update", "nodename=n2", "state=down", "reason=dead"])
        job.communicate(timeout=LONG)
    finally:
        bed.revive(bed.second)

    said = Path("out").read_text()
    assert job.returncode == 0, said
    check(bed, said)


def test_spares_need_an_allocation_that_outlives_a_node(bed: SlurmCluster) -> None:
    job = start(bed, "salloc", "-N3", THREE, "--ntasks-per-node=1", *launch(ONCE_AGAIN))
    said = job.communicate(timeout=LONG)[0]

    assert job.returncode == 125
    assert "nothing shows that this allocation was requested with --no-kill" in said
    assert "#SBATCH --no-kill" in said


def test_an_allocation_without_further_nodes_has_no_spares(bed: SlurmCluster) -> None:
    job = start(bed, "salloc", "-N2", "--ntasks-per-node=1", "--no-kill", *launch(ONCE_AGAIN))
    said = job.communicate(timeout=LONG)[0]

    assert job.returncode == 2
    assert "--spares 1: the number of known hosts besides the table's is 0" in said


def test_a_node_on_which_the_health_command_fails_is_left_out(bed: SlurmCluster) -> None:
    health = '[ "$SLURMD_NODENAME" != n2 ] || { echo "n2 is sick" >&2; exit 1; }'
    script = 'echo "on $(hostname)"'
    options = ["--preflight-command", health, "--max-restarts", "0"]
    job = start(bed, "salloc", "-N3", THREE, "--ntasks-per-node=1", "--no-kill", *launch(script, *options))
    said = job.communicate(timeout=LONG)[0]

    assert job.returncode == 0, said
    report: dict[str, Any] = published.read("report", Path("log/latest/report.json"))
    (replaced,) = report["replaced"]
    assert (replaced["host"], replaced["spare"], replaced["restart"]) == (bed.second.address, "n3", 0)
    assert replaced["finding"]["message"].endswith("exit code 1: n2 is sick")
    assert Path("log/latest/rank_1.log").read_text() == "on n3\n"


@pytest.fixture
def machines(bed: SlurmCluster, tmp_path: Path) -> Iterator[list[StandInHost]]:
    """A2 hosts on all nodes, each with its own devices and Ascend tools."""
    made = []
    for number, node in enumerate(bed.nodes):
        ips = device_ips(number)
        devices = {str(device): {"ip": ip} for device, ip in enumerate(ips)}
        one = make_host(
            tmp_path / node.name, product="a2", devices=devices, nodes=DEVICES, conf=conf_text(ips)
        )
        path = f"export PATH={one.bin}:{os.environ['PATH']}\n"
        (bed.folder / f"{node.name}.env").write_text(f"{path}export HCCL_TOOLS_ROOT={one.root}\n")
        made.append(one)
    yield made
    for node in bed.nodes:
        (bed.folder / f"{node.name}.env").unlink()


def port_taken(machine: StandInHost, node: Host, stack: ExitStack) -> str:
    machine.real_ports()
    take_ports(node, stack)
    return "HCD301"


def log_disk_full(_machine: StandInHost, node: Host, stack: ExitStack) -> str:
    fill_log_disk(node, os.environ["HOME"], stack)
    return "HCD306"


def cut_link(_machine: StandInHost, node: Host, stack: ExitStack) -> str:
    stack.callback(node.reconnect)
    node.cut_off()
    return "HCD501"


def sick_device(machine: StandInHost, _node: Host, _stack: ExitStack) -> str:
    devices = machine.description["devices"]
    devices["1"] = {**devices["1"], "npu_health": "Alarm"}
    machine.describe({**machine.description, "devices": devices})
    return "HCD103"


def missing_device(machine: StandInHost, _node: Host, _stack: ExitStack) -> str:
    (machine.root / "dev" / "davinci1").unlink()
    return "HCC"


def odd_version(machine: StandInHost, _node: Host, _stack: ExitStack) -> str:
    (machine.root / "usr/local/Ascend/driver/version.info").write_text("Version=1.0\n")
    return "HCD503"


FAULTS = {
    one.__name__: one
    for one in (port_taken, missing_device, sick_device, odd_version, log_disk_full, cut_link)
}


def checked(bed: SlurmCluster) -> tuple[int, str]:
    """Start a job of two nodes with devices and a spare, all of which are checked before."""
    write_table_of_devices(bed.first.address, bed.second.address)
    options = ["--ignore", "HCC2,HCC4,HCC5,HCC6", "--preflight", "full", "--preflight-timeout", "20"]
    argv = [*LAUNCH, "--rank-table", "table.json", *SPARES, *OPTIONS, *options]
    argv.remove("--cpu")
    argv += ["--no-python", "sh", "-c", 'echo "rank $RANK on $(hostname)"']
    job = start(bed, "salloc", "-N3", THREE, "--ntasks-per-node=1", "--no-kill", *argv)
    said = job.communicate(timeout=LONG)[0]
    return job.returncode, said


@pytest.mark.parametrize("fault", FAULTS)
def test_a_node_with_a_fault_is_replaced_before_the_start(
    bed: SlurmCluster, machines: list[StandInHost], fault: str
) -> None:
    for machine in machines:
        version = machine.root / "usr/local/Ascend/driver/version.info"
        version.parent.mkdir(parents=True, exist_ok=True)
        version.write_text("Version=25.2.0\n")
    with ExitStack() as stack:
        check = FAULTS[fault](machines[1], bed.second, stack)
        code, said = checked(bed)

    assert code == 0, said
    report: dict[str, Any] = published.read("report", Path("log/latest/report.json"))
    (replaced,) = report["replaced"]
    assert (replaced["host"], replaced["spare"]) == (bed.second.address, bed.third.address), said
    assert replaced["finding"]["check"].startswith(check), replaced
    assert Path("log/latest/rank_3.log").read_text() == "rank 3 on n3\n"


def test_a_sick_spare_node_is_left_out(bed: SlurmCluster, machines: list[StandInHost]) -> None:
    with ExitStack() as stack:
        sick_device(machines[2], bed.third, stack)
        code, said = checked(bed)

    assert code == 0, said
    assert published.read("report", Path("log/latest/report.json"))["replaced"] == []
    assert Path("log/latest/rank_3.log").read_text() == "rank 3 on n2\n"


def test_nothing_starts_without_a_sound_node(bed: SlurmCluster, machines: list[StandInHost]) -> None:
    with ExitStack() as stack:
        for machine, node in zip(machines[1:], bed.nodes[1:], strict=True):
            sick_device(machine, node, stack)
        code, said = checked(bed)

    assert code == 125, said
    assert "must be replaced, and no spare is left" in said
    assert not Path("log").exists()
