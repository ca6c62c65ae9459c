"""``doctor --bandwidth`` with a stand-in for ``all_reduce_test``, started by the mpirun of this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.cli.test_doctor_hosts import Cluster
from tests.support.jobs import eventually
from tests.support.mpiruns import MPIRUNS, every_mpirun
from tests.support.processes import has_ended

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.mpiruns import Mpirun

#: Each test starts processes by the dozen.
pytestmark = pytest.mark.slow

#: Prints what the program prints; rank 0 is silent on all others. ``answer`` says how fast it is.
PROGRAM = """\
#!/bin/sh
node=${{HCCL_TOOLS_ROOT%/root}}
rank=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}
echo "$$ ${{node##*/}} $ASCEND_RT_VISIBLE_DEVICES $*" >> {folder}/calls
[ $rank = 0 ] || exit 0
speed=67.10886
check=success
case "${{node##*/}} $ASCEND_RT_VISIBLE_DEVICES" in
    {answer}
esac
echo "the minbytes is 67108864, maxbytes is 67108864, iters is 20, warmup_iters is 10"
echo "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"
echo "67108864          | 1000.00        | $speed             | $check"
"""
#: Skips the options that Open MPI, MPICH and hccl-tools pass.
OPTIONS = "while :; do case $1 in -o) shift 2;; --) shift; break;; -*) shift;; *) break;; esac; done\n"
#: Open MPI's daemons of several hosts, here on one machine, sometimes crash or wait for each other; they are
#: tried on three hosts in namespaces.
OVER_SSH = [one for one in MPIRUNS if one.is_mpich]


class Bed(Cluster):
    """Three hosts that share ``all_reduce_test``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 3)
        lines = self.ssh.read_text().splitlines(keepends=True)
        self.ssh.write_text("".join([lines[0], OPTIONS, "host=$1\nshift\n", *lines[4:]]))
        self.program("")

    def program(self, answer: str) -> None:
        path = self.folder / "cann" / "tools" / "hccl_test" / "bin" / "all_reduce_test"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROGRAM.format(folder=self.folder, answer=answer))
        path.chmod(0o755)

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return [line.partition(" ")[2] for line in path.read_text().splitlines()] if path.exists() else []

    def environ(self, mpirun: Mpirun, **more: str) -> dict[str, str]:
        links = self.folder / "mpi"
        if mpirun.path.parent.name == "bin" and str(mpirun.path.parent) != "/usr/bin":
            first = str(mpirun.path.parent)
        else:
            links.mkdir(exist_ok=True)
            (links / "mpirun").write_text(f'#!/bin/sh\nexec {mpirun.path} "$@"\n')
            (links / "mpirun").chmod(0o755)
            first = str(links)
        return {
            "PATH": f"{first}:/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8",
            "ASCEND_HOME_PATH": str(self.folder / "cann"), "HCCL_TEST_USE_DEVS": "7", **more,
        }  # fmt: skip

    def bandwidth(self, mpirun: Mpirun, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
        ssh = [] if mpirun.is_mpich else ["--ssh", str(self.ssh)]
        if mpirun.is_mpich:
            more = {"HYDRA_LAUNCHER_EXEC": str(self.ssh), **more}
            self.folder.joinpath("mpi").mkdir(exist_ok=True)
            shutil.copy(self.ssh, self.folder / "mpi" / "ssh")
        command = [sys.executable, "-m", "hccl_tools", "doctor", "--product", "a2", "--bandwidth"]
        return subprocess.run(
            [*command, "--engine", "ssh", *ssh, str(self.table()), *args],
            capture_output=True, text=True, check=False, env=self.environ(mpirun, **more), timeout=300,
        )  # fmt: skip

    def local_command(self, *args: str) -> list[str]:
        """Return the command on node1 alone, whose server of the table has the name of this machine."""
        self.names[0] = os.uname().nodename
        command = [sys.executable, "-m", "hccl_tools", "doctor", "--product", "a2", "--local"]
        return [*command, "--bandwidth", str(self.table()), *args]

    def local_environ(self, mpirun: Mpirun, **more: str) -> dict[str, str]:
        host = self.hosts["node1"]
        environ = self.environ(mpirun, HCCL_TOOLS_ROOT=str(host.root), **more)
        return {**environ, "PATH": f"{host.bin}:{environ['PATH']}"}

    def local(self, mpirun: Mpirun, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.local_command(*args),
            capture_output=True, text=True, check=False, env=self.local_environ(mpirun, **more), timeout=300,
        )  # fmt: skip


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    assert done.stdout, done.stderr
    return {one["check"]: one for one in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize("mpirun", OVER_SSH, ids=str)
def test_a_slow_pair_of_hosts(bed: Bed, mpirun: Mpirun) -> None:
    bed.program('"node2 1") speed=30.00000;;')

    done = bed.bandwidth(mpirun, "-f", "json")

    found = findings(done)
    assert done.returncode == 0
    assert "measuring the bandwidth of 9 pairs of devices, one after another, about 2 min 15 s" in done.stderr
    assert found["HCD605"]["message"] == (
        "1 of 6 pairs over RoCE between servers has less than 75% of the median of 67.11 GB/s: "
        "device 1 of node2 and device 1 of node3 (30.00 GB/s)"
    )
    assert found["HCD605"]["hosts"] == ["node2", "node3"]
    assert "9 pairs measured" in found["HCD607"]["message"]
    answer = json.loads(done.stdout)
    assert [len(host["bandwidth"]) for host in answer["hosts"]] == [3, 3, 3]
    assert answer["hosts"][1]["bandwidth"][2] == {
        "device": 1, "peer_host": "node3", "peer_device": 1, "link": "RoCE", "gigabytes_per_second": 30.0,
        "check_result": "success",
    }  # fmt: skip
    schema = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "schema", "doctor"], capture_output=True, text=True, check=True
    )
    jsonschema.validate(answer, json.loads(schema.stdout))
    calls = bed.calls()
    options = "-b 64M -e 64M -d fp32 -o sum -c 1 -p"
    assert calls[:2] == [f"node1 0,1 {options} 2"] * 2
    assert sorted(calls[6:8]) == [f"node1 0 {options} 1", f"node2 0 {options} 1"]
    assert len(calls) == 18


@every_mpirun
def test_this_host_alone(bed: Bed, mpirun: Mpirun) -> None:
    bed.program("*) check=failed;;")

    done = bed.local(mpirun)

    assert done.returncode == 1
    name = os.uname().nodename
    assert f"stops[HCD606]: {name}: the sum over 1 pair is wrong: devices 0 and 1 of {name}\n" in done.stdout
    assert len(bed.calls()) == 2


@pytest.mark.skipif(not OVER_SSH, reason="no mpirun of MPICH")
def test_hosts_with_processes_are_left_out(bed: Bed) -> None:
    bed.differ("node3", processes=[[1, 4711, "python", 900]])

    done = bed.bandwidth(OVER_SSH[0])

    assert "stops[HCD106]" in done.stdout
    why = "process 4711 is on device 1, and a measurement would slow it"
    assert f"note[HCD001]: node3: not looked at: the bandwidth: {why}\n" in done.stdout
    assert "4 pairs measured" in done.stdout
    assert {call.split()[0] for call in bed.calls()} == {"node1", "node2"}


@every_mpirun
def test_a_program_that_fails(bed: Bed, mpirun: Mpirun) -> None:
    bed.program("*) echo 'hccl interface return err ./hccl_test_common.cc:538, retcode: 7'; exit 1;;")

    done = bed.local(mpirun)

    assert done.returncode == 0
    assert "the bandwidth of devices 0 and 1 of" in done.stdout
    # An mpirun that ends the job can lose what the program has printed last; it prints the exit code itself.
    printed = "hccl interface return err ./hccl_test_common.cc:538, retcode: 7\n|.*[Ee]xit code"
    assert re.search(f"all_reduce_test or mpirun printed: (?:{printed})", done.stdout)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
def test_what_is_missing_is_a_note(bed: Bed) -> None:
    without_program = bed.local(MPIRUNS[0], ASCEND_HOME_PATH="/absent")
    without_mpirun = bed.local(MPIRUNS[0], PATH="/absent")

    assert "there is no /absent/tools/hccl_test/bin/all_reduce_test here" in without_program.stdout
    assert "there is no mpirun on PATH; put the MPI with which" in without_mpirun.stdout
    assert "`make -C /absent/tools/hccl_test MPI_HOME=" in without_program.stdout
    assert without_program.returncode == without_mpirun.returncode == 0
    assert bed.calls() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--via", "sh -c {host}"], "--bandwidth and --via exclude each other"),
        (["--ignore", "HCD6"], "--select or --ignore leaves its results out"),
        (["--select", "HCD1"], "--select or --ignore leaves its results out"),
    ],
)
def test_options_that_contradict(bed: Bed, options: list[str], message: str) -> None:
    done = bed.run(str(bed.table()), "--bandwidth", *options)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_without_a_table(bed: Bed) -> None:
    done = bed.run("--bandwidth")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--bandwidth measures pairs of devices of a table" in done.stderr


def test_without_the_option_nothing_is_measured(bed: Bed) -> None:
    done = bed.run(str(bed.table()), "-f", "json")

    assert bed.calls() == []
    assert "bandwidth" not in json.loads(done.stdout)["hosts"][0]


@every_mpirun
def test_an_interrupt_ends_all_processes(bed: Bed, mpirun: Mpirun) -> None:
    bed.program("*) exec sleep 1000;;")

    with subprocess.Popen(
        bed.local_command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=bed.local_environ(mpirun)
    ) as process:
        assert eventually(lambda: len(bed.calls()) == 2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    assert process.returncode == 130
    pids = [int(line.split()[0]) for line in (bed.folder / "calls").read_text().splitlines()]
    assert eventually(lambda: all(has_ended(pid) for pid in pids))
