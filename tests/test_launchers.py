"""The stand-alone scripts of ``launchers/``, run as they are: in bash, under both mpiruns, by Slurm."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.beds.slurm_cluster import run_batch_job
from tests.support.jobs import MARK, eventually, living, none_left
from tests.support.processes import kill_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.slurm_cluster import SlurmCluster
    from tests.beds.two_hosts import TwoHosts

#: Each test starts processes.
pytestmark = pytest.mark.slow

LAUNCHERS = Path(__file__).parent.parent / "launchers"
SCRIPTS = ("rank_loop.sh", "mpirun.sh", "slurm.sbatch")
#: Four ranks whose order is not that of their devices.
SERVERS = 'SERVERS=(\n  "127.0.0.1 0,1,2,3 5,4,6,7"\n)'
WHO = 'echo "$RANK_ID $DEVICE_ID $RANK_SIZE $DEVICE_NUM $SERVER_ID ${RANK_TABLE_FILE-none}"'
#: Rank 2 fails with a last word; the others have children and would go on for longer than ``run`` waits.
FAILS = 'if [ $RANK_ID = 2 ]; then sleep 600 & echo "no data here"; exit 7; fi; sleep 600 & sleep 600'
STUBBORN = '[ $RANK_ID = 1 ] && trap "" TERM; sleep 600 & echo up; while :; do sleep 600; done'


def mpiruns() -> list[str]:
    """Return where an mpirun is: beside this Python (the wheel's) and the system's."""
    folders = [str(Path(sys.executable).parent), "/usr/bin"]
    return [folder for folder in folders if Path(folder, "mpirun").exists()]


@pytest.fixture(params=["rank_loop.sh", *(f"mpirun.sh {folder}" for folder in mpiruns())])
def script(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script with four ranks on this machine, in a directory of its own, and the mpirun that is meant."""
    name, _, folder = request.param.partition(" ")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK_TABLE_FILE", "")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    if folder:
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return edited(name, tmp_path, SERVERS)


def edited(name: str, folder: Path, servers: str) -> Path:
    """A copy of a script with other SERVERS, as its user would edit it."""
    text = (LAUNCHERS / name).read_text()
    start = text.index("SERVERS=(")
    end = text.index("\n)", start) + 2
    path = folder / name
    path.write_text(text[:start] + servers + text[end:])
    path.chmod(0o755)
    return path


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What every process of the job has in its environment; whatever a failed test leaves is killed."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    yield value
    kill_all(living(value))


def run(script: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [script, "sh", "-c", program], capture_output=True, text=True, timeout=120, check=False
    )


def log(rank: int) -> str:
    return Path(f"log/rank_{rank}.log").read_text()


def test_every_rank_has_its_variables_and_its_log(script: Path) -> None:
    done = run(script, WHO)

    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    expected = [f"{rank} {device} 4 4 0 none\n" for rank, device in enumerate((5, 4, 6, 7))]
    assert [log(rank) for rank in range(4)] == expected


def test_table_is_passed_with_its_whole_path(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("table.json").write_text("{}")
    monkeypatch.setenv("RANK_TABLE_FILE", "table.json")
    monkeypatch.setenv("DEVICE_NUM", "8")
    done = run(script, f"{WHO}; env | grep -c ^OMPI_ || true")

    assert done.returncode == 0
    assert log(1) == f"1 4 4 8 0 {Path('table.json').resolve()}\n0\n"


def test_failure_ends_the_job_with_its_code(script: Path, mark: str) -> None:
    done = run(script, FAILS)

    assert done.returncode == 7, done.stderr
    assert "rank 2" in done.stderr
    assert "no data here" in done.stderr
    assert none_left(mark)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signal_ends_the_job(
    script: Path, mark: str, number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRACE", "1")
    with subprocess.Popen(
        [script, "sh", "-c", STUBBORN], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as job:
        assert eventually(lambda: all(Path(f"log/rank_{rank}.log").exists() for rank in range(4)))
        assert eventually(lambda: all(log(rank) == "up\n" for rank in range(4)))
        job.send_signal(number)

        assert job.wait(60) == code
    assert none_left(mark)


@pytest.mark.parametrize(
    ("setting", "program", "code", "words"),
    [
        ("RANK_TABLE_FILE=nowhere.json", "true", 125, "no rank table nowhere.json here"),
        ("RANK_TABLE_FILE=", "no-such-program", 127, "no-such-program is not there"),
        ("LOG_DIR=/proc/none", "true", 125, "the log directory /proc/none cannot be made"),
    ],
)
def test_wrong_use_is_one_sentence(script: Path, setting: str, program: str, code: int, words: str) -> None:
    done = subprocess.run(
        ["env", setting, script, program], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == code
    assert words in done.stderr
    assert "line " not in done.stderr  # bash's own messages


def test_first_in_time_decides_in_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK_TABLE_FILE", "")
    script = edited("rank_loop.sh", tmp_path, SERVERS)

    done = run(script, 'trap "exit 9" TERM; [ $RANK_ID = 3 ] && exit 5; sleep 60 & wait')

    assert done.returncode == 5
    assert "rank 3 failed first" in done.stderr
    assert "Terminated" not in done.stderr


def test_ranks_that_are_ended_while_they_start_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK_TABLE_FILE", "")
    script = edited("rank_loop.sh", tmp_path, SERVERS)
    trap = "trap : INT TERM HUP"
    text = script.read_text()
    assert text.count(trap) == 1
    script.write_text(text.replace(trap, f"[ $RANK_ID = 3 ] || sleep 60\n    {trap}"))

    done = run(script, "[ $RANK_ID = 3 ] && exit 5; sleep 60")

    assert done.returncode == 5
    assert "rank 3 failed first" in done.stderr
    assert "Terminated" not in done.stderr


def test_second_machine_of_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK_TABLE_FILE", "")
    monkeypatch.setenv("SERVER", "1")
    script = edited("rank_loop.sh", tmp_path, 'SERVERS=(\n  "10.0.0.2 1,3 4,5"\n  "10.0.0.1 2,0 0,1"\n)')

    assert run(script, WHO).returncode == 0
    assert (log(2), log(0)) == ("2 0 4 2 1 none\n", "0 1 4 2 1 none\n")
    assert not Path("log/rank_1.log").exists()


def test_nohup_keeps_the_loop_from_a_hangup(
    tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK_TABLE_FILE", "")
    script = edited("rank_loop.sh", tmp_path, SERVERS)
    with subprocess.Popen(
        ["nohup", script, "sh", "-c", "echo up; sleep 1"], stderr=subprocess.PIPE, text=True
    ) as job:
        assert eventually(lambda: all(Path(f"log/rank_{rank}.log").exists() for rank in range(4)))
        job.send_signal(signal.SIGHUP)

        assert job.wait(60) == 0
    assert not living(mark)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("name", SCRIPTS)
def test_shellcheck_finds_nothing(name: str) -> None:
    done = subprocess.run(["shellcheck", LAUNCHERS / name], capture_output=True, text=True, check=False)

    assert done.stdout == ""


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_can_be_run_and_explain_themselves(name: str) -> None:
    path = LAUNCHERS / name
    lines = path.read_text().splitlines()

    assert os.access(path, os.X_OK)
    assert lines[0] == "#!/usr/bin/env bash"
    assert any("The guide sets 8" in line for line in lines)
    assert max(map(len, lines)) <= 120


REDUCE = """\
import os
import time
from pathlib import Path
import mindspore as ms
import numpy as np
from mindspore import Tensor, communication, ops

ms.set_device("CPU")
communication.init()
rank, size = communication.get_rank(), communication.get_group_size()
total = ops.AllReduce()(Tensor(np.array([rank + 1.0], dtype=np.float32)))
print("sum", rank, os.environ["DEVICE_ID"], total.asnumpy()[0], flush=True)
Path(f"done_{rank}").touch()
while len(list(Path().glob("done_*"))) < size:
    time.sleep(0.02)
os._exit(0)
"""
# MindSpore 2.10 may crash when it leaves its cluster on a busy machine: the main thread frees the connection
# of the heartbeat while the thread that received the last answer uses it. The ranks end before that, when all
# have their sum: MindSpore's collectives fail if a rank is gone early.


def reduced(rank: int) -> list[list[str]]:
    """What rank says of the sum, among MindSpore's own lines."""
    return [line.split() for line in log(rank).splitlines() if line.startswith("sum")]


def quiet_port() -> int:
    """A port that nobody listens on, outside the range from which connections get theirs."""
    for port in random.sample(range(12000, 20000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("0.0.0.0", port))
            return port
    pytest.fail("no port is free")


@pytest.fixture
def reduce(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command of a rank that meets the others at MindSpore's scheduler."""
    pytest.importorskip("mindspore")
    monkeypatch.setenv("SCHED_PORT", str(quiet_port()))
    Path("reduce.py").write_text(REDUCE)
    return [sys.executable, "reduce.py"]


@pytest.mark.slow
@pytest.mark.mindspore
@pytest.mark.rotates("script")
def test_mindspore_ranks_meet(script: Path, reduce: list[str], mark: str) -> None:
    two = edited(script.name, script.parent, 'SERVERS=(\n  "127.0.0.1 0,1 5,4"\n)')
    done = subprocess.run([two, *reduce], capture_output=True, text=True, timeout=300, check=False)

    logs = [path.read_text()[-2000:] for path in sorted(Path("log").glob("*.log"))]
    assert done.returncode == 0, "\n".join([done.stderr, *logs])
    assert [reduced(rank) for rank in range(2)] == [
        [["sum", str(rank), str(device), "3.0"]] for rank, device in enumerate((5, 4))
    ], "\n".join(logs)
    assert none_left(mark), living(mark)


NODES = 'SERVERS=(\n  "10.0.0.2 3,0 5,4"\n  "10.0.0.1 2,1 0,1"\n)'


@pytest.fixture
def batch(slurm_cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Slurm script with two nodes of two ranks each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK_TABLE_FILE", "")
    path = edited("slurm.sbatch", tmp_path, NODES)
    text = (
        path.read_text()
        .replace("--nodes=1", "--nodes=2")
        .replace("--ntasks-per-node=8", "--ntasks-per-node=2")
    )
    path.write_text(text)
    return path


def submit(slurm_cluster: SlurmCluster, batch: Path, program: str, *options: str) -> int:
    """Submit the script and wait for its end; return the job's exit code."""
    argv = ["--output=out", *options, str(batch), "sh", "-c", program]
    return run_batch_job(slurm_cluster, argv, env={"LOG_DIR": "log"})


@pytest.mark.bed
def test_slurm_runs_every_rank_in_its_place(slurm_cluster: SlurmCluster, batch: Path) -> None:
    code = submit(slurm_cluster, batch, f'{WHO}; echo "$SLURMD_NODENAME"')

    assert code == 0, Path("out").read_text()
    places = {3: (5, 0, "n1"), 0: (4, 0, "n1"), 2: (0, 1, "n2"), 1: (1, 1, "n2")}
    for rank, (device, server, node) in places.items():
        assert log(rank) == f"{rank} {device} 4 2 {server} none\n{node}\n"


@pytest.mark.bed
@pytest.mark.slow
@pytest.mark.mindspore
def test_mindspore_ranks_meet_over_two_nodes(
    slurm_cluster: SlurmCluster, batch: Path, reduce: list[str], mark: str
) -> None:
    code = run_batch_job(slurm_cluster, ["--output=out", str(batch), *reduce], env={"LOG_DIR": "log"})

    assert code == 0, Path("out").read_text()
    devices = (4, 1, 0, 5)
    assert [reduced(rank) for rank in range(4)] == [
        [["sum", str(rank), str(device), "10.0"]] for rank, device in enumerate(devices)
    ]
    assert none_left(mark)


@pytest.mark.bed
def test_emitted_script_runs_as_a_batch_job(
    slurm_cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    placed = {"10.0.0.2": ((5, 3), (4, 0)), "10.0.0.1": ((0, 2), (1, 1))}
    servers = [
        {
            "server_id": address,
            "device": [
                {"device_id": str(device), "device_ip": f"192.168.{index}.{device}", "rank_id": str(rank)}
                for device, rank in devices
            ],
            "host_nic_ip": "reserve",
        }
        for index, (address, devices) in enumerate(placed.items())
    ]
    table = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
    Path("table.json").write_text(json.dumps(table))
    options = ["--rank-table", "table.json", "--product", "a2", "--ignore", "HCC205", "--server", "10.0.0.1"]
    emit = [*options, "--cpu", "--start", "table", "--emit", "slurm", "--no-python", "sh", "-c", WHO]
    emitted = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", *emit], capture_output=True, text=True, check=False
    )
    assert emitted.returncode == 0, emitted.stderr
    Path("job.sbatch").write_text(emitted.stdout)

    code = run_batch_job(slurm_cluster, ["--output=out", "job.sbatch"], env={"LOG_DIR": "log"})

    assert code == 0, Path("out").read_text()
    path = Path("table.json").resolve()
    assert {log(rank).rsplit(" ", 2)[0] for rank in range(4)} == {"0 4 4 2", "1 1 4 2", "2 0 4 2", "3 5 4 2"}
    assert all(log(rank).endswith(f" {path}\n") for rank in range(4))


@pytest.mark.bed
def test_slurm_passes_the_first_failure_on(slurm_cluster: SlurmCluster, batch: Path, mark: str) -> None:
    code = submit(slurm_cluster, batch, FAILS)

    said = Path("out").read_text()
    assert code == 7, said
    assert "rank 2 (10.0.0.1) failed first, exit code 7" in said
    assert "no data here" in said
    assert none_left(mark)


@pytest.mark.bed
def test_slurm_job_that_is_cancelled_ends(slurm_cluster: SlurmCluster, batch: Path, mark: str) -> None:
    done = slurm_cluster.run(
        ["sbatch", "--parsable", "--output=out", str(batch), "sh", "-c", STUBBORN], env={"LOG_DIR": "log"}
    )
    assert eventually(lambda: all(Path(f"log/rank_{rank}.log").exists() for rank in range(4)))
    slurm_cluster.run(["scancel", "--batch", "--signal=TERM", done.stdout.strip()])

    assert eventually(lambda: "exit code 143" in Path("out").read_text())
    assert none_left(mark)


@pytest.mark.bed
def test_slurm_job_of_another_shape_is_refused(slurm_cluster: SlurmCluster, batch: Path) -> None:
    code = submit(slurm_cluster, batch, "true", "--nodes=1")

    assert code == 125
    assert Path("out").read_text() == "slurm.sbatch: 1 nodes, but 2 SERVERS\n"


@pytest.mark.bed
@pytest.mark.parametrize("folder", mpiruns())
def test_mpirun_on_two_hosts(
    two_hosts: TwoHosts, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    monkeypatch.chdir(tmp_path)
    servers = f'SERVERS=(\n  "{two_hosts.second.address} 3,0 5,4"\n  "{two_hosts.first.address} 2,1 0,1"\n)'
    script = edited("mpirun.sh", tmp_path, servers)
    options = f"(--prefix {Path(folder).parent} --mca plm_rsh_agent {two_hosts.ssh}"
    if folder != "/usr/bin":
        options = f"(--prefix {Path(folder).parent} --mca plm_ssh_agent {two_hosts.ssh}"
    script.write_text(script.read_text().replace("MPIRUN_OPTIONS=(", f"MPIRUN_OPTIONS={options}"))
    environment = {**os.environ, "RANK_TABLE_FILE": "", "PATH": f"{folder}:{os.environ['PATH']}"}
    host = two_hosts.first

    done = host.run([str(script), "sh", "-c", f"{WHO}; hostname -I"], env=environment)

    assert done.returncode == 0, done.stderr
    first, second = two_hosts.first.address, two_hosts.second.address
    places = {3: (5, 0, second), 0: (4, 0, second), 2: (0, 1, first), 1: (1, 1, first)}
    for rank, (device, server, address) in places.items():
        assert log(rank).split() == [str(rank), str(device), "4", "2", str(server), "none", address]
    failed = host.run([str(script), "sh", "-c", FAILS], env=environment)
    assert failed.returncode == 7, failed.stderr
    assert f"rank 2 ({first}) failed first, exit code 7" in failed.stderr
    assert none_left(mark)
