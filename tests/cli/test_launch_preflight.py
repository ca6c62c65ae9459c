"""``launch --preflight``: none, quick, and full, which asks all hosts before the start."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.planning.ports import free_port
from tests.cli.test_doctor_hosts import Cluster

if TYPE_CHECKING:
    from pathlib import Path
FULL = ("--preflight", "full")


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, 2)


def launch(
    cluster: Cluster, *args: str, host: str = "node1", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Launch ``echo`` as the program, on a stand-in host, which reaches the others with its ssh."""
    environ = {
        "PATH": f"{cluster.folder}/{host}/bin:/usr/bin:/bin",
        "HOME": str(cluster.folder),
        "TMPDIR": str(cluster.folder),
        "LANG": "C.UTF-8",
        "HCCL_TOOLS_ROOT": str(cluster.hosts[host].root),
        "OMPI_MCA_plm_rsh_agent": str(cluster.ssh),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        **variables,
    }
    command = [sys.executable, "-m", "hccl_tools", "launch", "--product", "a2", *args]
    return subprocess.run(
        [*command, "--no-python", "echo", "it runs"],
        capture_output=True, text=True, check=False, env=environ, cwd=cluster.folder, timeout=120,
    )  # fmt: skip


@pytest.mark.slow
def test_a_fault_of_another_host_prevents_the_start(cluster: Cluster) -> None:
    cluster.differ("node2", 1, tls=1)

    done = launch(cluster, "--engine", "ssh", "--rank-table", str(cluster.table()), *FULL)

    assert done.returncode == 125
    assert "stops[HCD204]: node2: TLS is on on device 1" in done.stderr
    assert "nothing was started: 1 fault would stop the job" in done.stderr
    assert "--preflight quick starts without asking all hosts" in done.stderr
    assert not (cluster.folder / "log").exists()


@pytest.mark.slow
def test_variables_that_no_rank_inherits_are_not_reported(cluster: Cluster) -> None:
    """ascend-operator gives the pods of an AscendJob theirs."""
    cluster.differ("node1", 1, tls=1)

    done = launch(cluster, "--rank-table", str(cluster.table()), *FULL, RANK="99", WORLD_SIZE="99")

    assert "HCD204" in done.stderr
    assert "HCD320" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("is_late", [True, False])
def test_a_table_that_is_not_complete_is_awaited_before_the_checks(cluster: Cluster, is_late: bool) -> None:
    """The pods of a cluster manager start before their table is there."""
    cluster.differ("node1", 1, tls=1)
    complete = cluster.table()
    table = cluster.folder / "table_of_operator.json"
    table.write_text('{"status": "initializing"}')
    if is_late:
        threading.Timer(1.5, complete.replace, [table]).start()

    done = launch(cluster, "--rank-table", str(table), "--wait", "30" if is_late else "0.5", *FULL)

    assert done.returncode == 125
    assert f'hccl-tools: waiting for {table}: its status is "initializing"' in done.stderr
    assert ("HCD204" in done.stderr) == is_late
    assert ("is not ready after 0.5 s" in done.stderr) != is_late
    assert "HCD002" not in done.stderr


@pytest.mark.slow
def test_a_pod_that_was_moved_waits_before_the_checks(cluster: Cluster) -> None:
    cluster.differ("node1", 1, tls=1)
    complete = cluster.table()
    table = cluster.folder / "table_of_operator.json"
    table.write_text(complete.read_text().replace("192.168.", "172.16.").replace('"node', '"old-node'))
    threading.Timer(1.5, complete.replace, [table]).start()

    done = launch(
        cluster,
        "--rank-table",
        str(table),
        "--wait",
        "60",
        "--master-addr",
        "10.0.0.1",
        *FULL,
        KUBERNETES_SERVICE_HOST="10.96.0.1",
    )

    assert done.returncode == 125
    assert "waiting for a table with this host" in done.stderr
    assert "HCD204" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_pod_looks_for_another_table_if_a_node_of_this_one_does_not_answer(
    cluster: Cluster, is_replaced: bool
) -> None:
    """The table of the run before names the node whose loss has started the pods again."""
    complete = cluster.table()
    table = cluster.folder / "table_of_operator.json"
    table.write_text(complete.read_text().replace('.2"', '.8"').replace('"node2', '"node8'))
    for device in range(2):
        cluster.differ("node1", device, lost={"192.168.100.8": 3, "192.168.101.8": 3})
    complete.write_text(
        complete.read_text().replace('.101.1"', '.101.77"')
    )  # So that the job does not start.
    if is_replaced:
        threading.Timer(11, complete.replace, [table]).start()

    done = launch(
        cluster, "--rank-table", str(table), "--wait", "30" if is_replaced else "2", "--server", "node1",
        "--start-port", str(free_port()), "--master-addr", "127.0.0.1", *FULL,
        KUBERNETES_SERVICE_HOST="10.96.0.1",
    )  # fmt: skip

    assert done.returncode == 125
    assert "HCD601" in done.stderr
    assert "hccl-tools: this may be the table of an earlier run: waiting for another" in done.stderr
    assert ("the table has changed: this host checks the new one" in done.stderr) == is_replaced
    assert ("192.168.101.77" in done.stderr) == is_replaced


@pytest.mark.slow
def test_a_host_that_is_down_prevents_the_start(cluster: Cluster) -> None:
    path = str(cluster.table("down1"))

    done = launch(cluster, "--engine", "ssh", "--rank-table", path, *FULL)

    assert done.returncode == 125
    assert "stops[HCD501]" in done.stderr
    assert "No route to host" in done.stderr


@pytest.mark.slow
def test_this_host_alone(cluster: Cluster) -> None:
    cluster.differ("node1", 1, npu_health="Alarm")

    done = launch(cluster, "--devices", "0-1", "--tail", "all", *FULL)
    quick = launch(cluster, "--devices", "0-1", "--tail", "all", "--preflight", "quick")

    assert done.returncode == 125
    assert f"stops[HCD103]: {os.uname().nodename}: npu-smi reports the health of device 1" in done.stderr
    assert quick.returncode == 0, quick.stderr
    assert quick.stdout.count("it runs") == 2


def test_a_sound_host_starts(cluster: Cluster) -> None:
    done = launch(cluster, "--devices", "0-1", "--tail", "all", *FULL)

    assert done.returncode == 0, done.stderr
    assert "nothing would stop the job" in done.stderr
    assert done.stdout.count("it runs") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--no-preflight", "--preflight", "full"], "exclude each other"),
        (["--cpu", "-n", "2", "--preflight", "full"], "--cpu uses none"),
        (["--preflight", "ful"], "quick"),
        (["--preflight", "full", "--ignore", "HCD999"], 'no check matches "HCD999"'),
        (["--ignore", "HCD302"], "add --preflight full"),
        (["--rank-table", "-", "--preflight", "full"], "standard input"),
        (["-n", "2", "--preflight-timeout", "9"], "add --preflight full or --preflight-command"),
        (["-n", "2", "--preflight-command", " "], "--preflight-command is empty"),
        (["-n", "2", "--preflight", "full", "--preflight-timeout", "1"], "--preflight-timeout"),
    ],
)
def test_wrong_usage(cluster: Cluster, args: list[str], words: str) -> None:
    done = launch(cluster, *args)

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
