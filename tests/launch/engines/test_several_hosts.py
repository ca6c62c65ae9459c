"""One job on two hosts with their own addresses: the same command typed on both, and mpirun over ssh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import UsageError
from hccl_tools.launch.planning import remote_launch
from tests.support import two_by_two
from tests.support.jobs import eventually
from tests.support.mpiruns import MPIRUNS, every_remote_engine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.beds.network_host import Host
    from tests.beds.two_hosts import TwoHosts
    from tests.support.mpiruns import Mpirun, Ssh

SHOW = """\
import json, os, socket, subprocess
address = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()[0]
names = ("RANK_ID", "DEVICE_ID", "RANK_SIZE", "SERVER_ID", "RANK", "MASTER_ADDR", "MASTER_PORT")
print(json.dumps({"address": address, **{name: os.environ.get(name) for name in names}}))
"""


def shuffled_table(two_hosts: TwoHosts) -> dict[str, Any]:
    """Return a 2 x 2 table with servers and ranks in no order."""
    placed = {two_hosts.second.address: ((5, 3), (4, 0)), two_hosts.first.address: ((4, 2), (5, 1))}
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
    return {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}


@pytest.fixture
def job(own_directory: Path, two_hosts: TwoHosts) -> list[str]:
    (own_directory / "show.py").write_text(SHOW)
    (own_directory / "table.json").write_text(json.dumps(shuffled_table(two_hosts)))
    return [
        sys.executable, "-m", "hccl_tools", "launch", "--rank-table", "table.json", "--product", "a2",
        "--ignore", "HCC205", "--cpu",
        "--start", "torch", "--python", sys.executable,
    ]  # fmt: skip


def expected(two_hosts: TwoHosts) -> dict[int, tuple[str, str]]:
    first, second = two_hosts.first.address, two_hosts.second.address
    return {0: (second, "0"), 1: (first, "1"), 2: (first, "0"), 3: (second, "1")}


def check(logs: dict[int, Path], two_hosts: TwoHosts) -> None:
    for rank, (address, device) in expected(two_hosts).items():
        found = json.loads(logs[rank].read_text())
        assert (found["RANK_ID"], found["RANK"], found["RANK_SIZE"]) == (str(rank), str(rank), "4")
        assert (found["address"], found["DEVICE_ID"]) == (address, device)
        assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == (two_hosts.second.address, "18118")


def on(host: Host, command: list[str], two_hosts: TwoHosts) -> subprocess.CompletedProcess[str]:
    return host.run(command, env=two_by_two.environ(two_hosts))


@pytest.mark.bed
def test_same_command_typed_on_both(job: list[str], two_hosts: TwoHosts, own_directory: Path) -> None:
    logs: dict[int, Path] = {}
    for name, (code, said) in typed_on_both([*job, "show.py"], two_hosts).items():
        assert code == 0, said
        for log in (own_directory / name / "latest").resolve().glob("rank_?.log"):
            logs[int(log.stem.removeprefix("rank_"))] = log

    check(logs, two_hosts)


def typed_on_both(
    command: list[str], two_hosts: TwoHosts, *, second: dict[str, str] | None = None
) -> dict[str, tuple[int, str]]:
    """Type a command on both hosts; return exit code and stderr of each. ``second`` swaps words there."""
    started = {}
    for name, host in (("one", two_hosts.first), ("two", two_hosts.second)):
        swapped = second or {} if name == "two" else {}
        words = [swapped.get(word, word) for word in command]
        program = words.pop()
        started[name] = host.start(
            [*words, "--log-dir", name, program], env=two_by_two.environ(two_hosts), stderr=subprocess.PIPE
        )
    said = {name: process.communicate(timeout=120)[1] for name, process in started.items()}
    return {name: (process.returncode, said[name]) for name, process in started.items()}


@pytest.mark.bed
def test_another_table_on_one_host_is_refused_on_both(
    job: list[str], two_hosts: TwoHosts, own_directory: Path
) -> None:
    table = (own_directory / "table.json").read_text()
    (own_directory / "other.json").write_text(table.replace("192.168.0.5", "192.168.0.55"))

    done = typed_on_both([*job, "show.py"], two_hosts, second={"table.json": "other.json"})

    for code, said in done.values():
        assert code == 125
        assert "fingerprint of the rank table: " in said
        assert two_hosts.first.address in said
        assert two_hosts.second.address in said
    assert not list(own_directory.glob("*/*/rank_*.log"))


@pytest.mark.bed
def test_another_script_on_one_host_is_refused_on_both(
    job: list[str], two_hosts: TwoHosts, own_directory: Path
) -> None:
    (own_directory / "there").mkdir()
    (own_directory / "there/show.py").write_text("print('another')\n")

    done = typed_on_both([*job, "show.py"], two_hosts, second={"show.py": "there/show.py"})

    assert [code for code, _said in done.values()] == [125, 125]
    assert all("SHA-256 of show.py: " in said for _code, said in done.values())


@pytest.mark.bed
def test_scripts_of_different_names_are_refused_by_their_names(
    job: list[str], two_hosts: TwoHosts, own_directory: Path
) -> None:
    (own_directory / "envs.py").write_text("print('another')\n")

    done = typed_on_both([*job, "show.py"], two_hosts, second={"show.py": "envs.py"})

    one, other = two_hosts.first.address, two_hosts.second.address
    for code, said in done.values():
        assert code == 125
        assert "the hosts start different scripts: " in said
        assert f"show.py on {one}" in said
        assert f"envs.py on {other}" in said


@pytest.mark.bed
@pytest.mark.mpi
@every_remote_engine
def test_typed_once_with_mpirun(
    job: list[str], two_hosts: TwoHosts, own_directory: Path, engine: Mpirun | Ssh
) -> None:
    done = on(two_hosts.first, [*job, *engine.for_launch, "show.py"], two_hosts)

    assert done.returncode == 0, done.stdout + done.stderr
    run_dir = (own_directory / "log" / "latest").resolve()
    check({rank: run_dir / f"rank_{rank}.log" for rank in range(4)}, two_hosts)


@pytest.mark.bed
@pytest.mark.mpi
@every_remote_engine
@pytest.mark.rotates("engine")
def test_failure_on_one_host_ends_the_job_on_all(
    job: list[str], two_hosts: TwoHosts, engine: Mpirun | Ssh
) -> None:
    fails = (
        "echo up; touch up_$RANK_ID; [ $RANK_ID != 3 ] || { until [ -e up_0 ]; do sleep 0.05; done; exit 7; }"
    )
    program = ["--no-python", "sh", "-c", f"{fails}; exec sleep 61"]

    done = on(two_hosts.first, [*job, *engine.for_launch, "--grace", "2", *program], two_hosts)

    assert done.returncode == 7, done.stdout + done.stderr
    assert "rank 3 failed first: exit code 7" in done.stderr
    assert two_hosts.second.address in done.stderr
    assert done.stdout == "up\n"  # Nothing of what mpirun and the supervisors say of it.
    assert _sleepers(two_hosts) == []


@pytest.mark.bed
@pytest.mark.mpi
@every_remote_engine
@pytest.mark.rotates("engine")
def test_host_that_cannot_be_reached_is_told(
    job: list[str], two_hosts: TwoHosts, own_directory: Path, engine: Mpirun | Ssh
) -> None:
    table = (own_directory / "table.json").read_text().replace(two_hosts.second.address, "10.77.0.99")
    (own_directory / "table.json").write_text(table)

    done = on(two_hosts.first, [*job, *engine.for_launch, "--no-python", "sleep", "61"], two_hosts)

    assert done.returncode not in {0, 137}, done.stdout + done.stderr
    assert "connect to host 10.77.0.99 port 2222: No route to host" in done.stderr
    assert _sleepers(two_hosts) == []


@pytest.mark.bed
@pytest.mark.mpi
@every_remote_engine
@pytest.mark.rotates("engine")
def test_killed_launcher_leaves_nothing_on_either_host(
    job: list[str], two_hosts: TwoHosts, engine: Mpirun | Ssh
) -> None:
    program = ["--no-python", "sh", "-c", "exec sleep 61"]
    started = two_hosts.first.start([*job, *engine.for_launch, *program], env=two_by_two.environ(two_hosts))
    assert eventually(lambda: len(_sleepers(two_hosts)) == 4)
    started.send_signal(signal.SIGKILL)
    started.wait()

    assert eventually(lambda: not _sleepers(two_hosts))


def _sleepers(two_hosts: TwoHosts) -> list[int]:
    hosts = (two_hosts.first, two_hosts.second)
    return [pid for host in hosts for pid, command in host.commands().items() if command == ["sleep", "61"]]


def test_variables_that_travel() -> None:
    environ = {
        "PATH": "/bin",
        "HCCL_BUFFSIZE": "200",
        "HOME": "/root",
        "HCCL_TOOLS_RUN_DIR": "/x",
        "GLOG_v": "2",
    }

    assert remote_launch.exported(environ) == {"PATH": "/bin", "HCCL_BUFFSIZE": "200", "GLOG_v": "2"}


def test_variables_that_travel_by_choice() -> None:
    environ = {"PATH": "/bin", "HCCL_BUFFSIZE": "200", "WANDB_API_KEY": "k"}

    assert remote_launch.exported(environ, also=("WANDB_API_KEY",)) == environ
    assert remote_launch.exported(environ, also=("WANDB_API_KEY",), usual=False) == {"WANDB_API_KEY": "k"}
    with pytest.raises(UsageError, match="--export WANDB_API_KYE: the variable is not set"):
        remote_launch.exported(environ, also=("WANDB_API_KYE",))


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
def test_dry_run_lists_what_travels_with_secrets_masked(own_directory: Path) -> None:
    servers = [
        {"server_id": f"10.0.0.{host}", "host_nic_ip": "reserve", "device": [
            {"device_id": "0", "device_ip": f"192.168.{host}.1", "rank_id": str(host - 1)}]}
        for host in (1, 2)
    ]  # fmt: skip
    table = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
    (own_directory / "table.json").write_text(json.dumps(table))
    environ = {**os.environ, "WANDB_API_KEY": "k-123"}
    options = ["--rank-table", "table.json", "--product", "a2", "--ignore", "HCC205", "--cpu"]
    options += [
        *MPIRUNS[0].for_launch,
        "--start",
        "table",
        "--export",
        "WANDB_API_KEY",
        "--no-export",
        "--dry-run",
    ]

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "launch", *options, "--no-python", "true"],
        capture_output=True, text=True, timeout=120, check=False, env=environ,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "passed to other hosts:\n  WANDB_API_KEY='***'\n" in done.stdout
    assert "-x WANDB_API_KEY" in done.stdout
    assert "-x PATH" not in done.stdout
