"""Jobs in pods, whose table an operator fills in: MindCluster's in a ConfigMap, and that of ModelArts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.gather_cluster import HOSTS, Cluster, described
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.beds.two_hosts import TwoHosts

pytestmark = [pytest.mark.bed, pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

PROGRAM = ["--start", "torch", "--tail", "all", "--no-python", "sh", "-c", 'echo "rank $RANK on $(hostname)"']
INITIALIZING = {"status": "initializing"}


class Mount:
    """A folder with the ConfigMap of a job, as kubelet makes it: the file is a link."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        self.folder, self.file, self._version = folder, folder / name, 0

    def show(self, value: dict[str, Any]) -> None:
        self._version += 1
        version = self.folder / f"..version_{self._version}"
        version.mkdir()
        (version / self.file.name).write_text(json.dumps(value, separators=(",", ":")))
        (self.folder / "..data_tmp").symlink_to(version.name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")
        if not self.file.is_symlink():
            self.file.symlink_to(Path("..data") / self.file.name)


def by_ascend_operator(machines: Sequence[int]) -> dict[str, Any]:
    """Return the table of ascend-operator: the id of a server is the UID of its pod."""
    servers = [
        {
            "device": [
                {"device_id": device, "device_ip": one["ip"], "rank_id": str(8 * rank + int(device))}
                for device, one in described(machine)["devices"].items()
            ],
            "server_id": f"0f1e2d3c-0000-4000-8000-00000000000{machine}",
            "host_ip": HOSTS[machine - 1],
            "container_ip": HOSTS[machine - 1],
        }
        for rank, machine in enumerate(machines)
    ]
    return {"status": "completed", "server_list": servers, "server_count": "2", "version": "1.0"}


def by_modelarts(machines: Sequence[int], *, filled: bool = True) -> dict[str, Any]:
    instances = [
        {
            "pod_name": f"job-worker-{rank}",
            "server_id": HOSTS[machine - 1],
            "devices": [
                {"device_id": device, "device_ip": one["ip"]}
                for device, one in described(machine)["devices"].items()
            ],
        }
        for rank, machine in enumerate(machines if filled else ())
    ]
    group = {"group_name": "worker", "device_count": "16", "instance_count": "2", "instance_list": instances}
    status = "completed" if filled else "initializing"
    return {"status": status, "group_count": "1", "group_list": [group]}


class Pods:
    """The same command on each of two hosts."""

    def __init__(
        self, cluster: Cluster, *options: str, mounts: Sequence[Mount] = (), **variables: str
    ) -> None:
        self.logs = [Path(f"said_{number}").absolute() for number in (1, 2)]
        hosts = (cluster.bed.first, cluster.bed.second)
        self._launchers = []
        tables = [["--rank-table", str(mount.file)] for mount in mounts] or [[], []]
        for host, machine, log, table in zip(hosts, cluster.machines, self.logs, tables, strict=True):
            own = {"PATH": f"{machine.bin}:{os.environ['PATH']}", "HCCL_TOOLS_ROOT": str(machine.root)}
            with log.open("w") as said:
                self._launchers.append(
                    host.start(
                        [sys.executable, "-m", "hccl_tools", "launch", *table, *options, *PROGRAM],
                        env={**os.environ, **own, **variables, "HOST_IP": host.address}, cwd=Path.cwd(),
                        stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                    )
                )  # fmt: skip

    @property
    def said(self) -> list[str]:
        return [log.read_text() for log in self.logs]

    def wait_for(self, words: str) -> None:
        """Return when each pod has printed something."""
        assert eventually(lambda: all(words in said for said in self.said)), self.said

    def end(self) -> None:
        codes = [launcher.wait(timeout=LONG) for launcher in self._launchers]
        assert codes == [0, 0], self.said


@pytest.fixture
def cluster(two_hosts: TwoHosts, tmp_path: Path) -> Cluster:
    return Cluster(two_hosts, tmp_path)


def ranks_of(cluster: Cluster, first: int) -> list[list[str]]:
    """Return the lines of each host if the given machine (1 or 2) has the first ranks."""
    names = [cluster.bed.first.name, cluster.bed.second.name]
    begin = [0 if first == machine else 8 for machine in (1, 2)]
    return [
        [f"rank {rank} on {name}" for rank in range(at, at + 8)]
        for name, at in zip(names, begin, strict=True)
    ]


def test_the_table_of_ascend_operator(cluster: Cluster, tmp_path: Path) -> None:
    """Filled in while the pods wait; after a restart the pods have the ranks the other way round."""
    mount = Mount(tmp_path / "config", "hccl.json")
    for machines in ([1, 2], [2, 1]):
        mount.show(INITIALIZING)
        pods = Pods(cluster, "--rank-table", str(mount.file), "--wait", "60")
        pods.wait_for(f'waiting for {mount.file}: its status is "initializing"')

        mount.show(by_ascend_operator(machines))
        pods.end()

        for said, lines in zip(pods.said, ranks_of(cluster, machines[0]), strict=True):
            assert all(line in said for line in lines), said


def with_another_node(machines: Sequence[int], place: int) -> dict[str, Any]:
    """Return the table before the pod at a place was moved from another node."""
    table = by_ascend_operator(machines)
    server = table["server_list"][place]
    server.update(host_ip="10.77.0.9", container_ip="10.77.0.9", server_id=server["server_id"][:-1] + "9")
    for device in server["device"]:
        device["device_ip"] = described(9)["devices"][device["device_id"]]["ip"]
    return table


KEY = "0f" * 32


@pytest.mark.parametrize("key", ["", KEY])
@pytest.mark.parametrize(("machines", "moved"), [([1, 2], 0), ([1, 2], 1), ([2, 1], 0)])
def test_a_pod_with_an_earlier_table_takes_the_next_one(
    cluster: Cluster, tmp_path: Path, machines: list[int], moved: int, key: str
) -> None:
    """kubelet updates a ConfigMap on each node at another time, up to a minute later."""
    mounts = [Mount(tmp_path / name, "hccl.json") for name in ("first", "second")]
    stays = mounts[machines[1 - moved] - 1]
    for mount in mounts:
        mount.show(with_another_node(machines, moved) if mount is stays else by_ascend_operator(machines))
    variables = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", **({"HCCL_TOOLS_JOB_KEY": key} if key else {})}
    pods = Pods(cluster, "--wait", "60", mounts=mounts, **variables)
    pods.wait_for("waiting for 10.")

    stays.show(by_ascend_operator(machines))
    pods.end()

    for said, lines in zip(pods.said, ranks_of(cluster, machines[0]), strict=True):
        assert all(line in said for line in lines), said


def test_a_pod_waits_for_a_table_with_its_devices(cluster: Cluster, tmp_path: Path) -> None:
    """A pod with a part of a node can get other devices than the pod before it."""
    mount = Mount(tmp_path / "config", "hccl.json")
    tables = list[dict[str, Any]]()
    for first in (0, 4):
        table = by_ascend_operator([1, 2])
        for number, server in enumerate(table["server_list"]):
            server["device"] = server["device"][first : first + 4]
            for at, device in enumerate(server["device"]):
                device["rank_id"] = str(4 * number + at)
        tables.append(table)
    mount.show(tables[0])
    visible = {"ASCEND_VISIBLE_DEVICES": "4-7", "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    pods = Pods(cluster, "--wait", "60", "--ignore", "HCC308", mounts=[mount, mount], **visible)
    pods.wait_for("waiting for a table with the devices of this host, at most")

    mount.show(tables[1])
    pods.end()

    assert [said.count(" on ") >= 4 for said in pods.said] == [True, True]


def test_the_table_of_modelarts(cluster: Cluster, tmp_path: Path) -> None:
    """RANK_TABLE_FILE may be the folder; HCCL orders the servers by their ids."""
    mount = Mount(tmp_path / "config", "jobstart_hccl.json")
    mount.show(by_modelarts([2, 1], filled=False))
    pods = Pods(cluster, "--wait", "60", RANK_TABLE_FILE=str(mount.folder))
    pods.wait_for("0 of 2 instances are listed, 2 missing")

    mount.show(by_modelarts([2, 1]))
    pods.end()

    for said, lines in zip(pods.said, ranks_of(cluster, 1), strict=True):
        assert all(line in said for line in lines), said


def test_a_pod_that_is_not_in_the_table(cluster: Cluster, tmp_path: Path) -> None:
    """After a pod has moved to another node, kubelet may show the table of the pods before for a minute."""
    mount = Mount(tmp_path / "config", "hccl.json")
    table = by_ascend_operator([1, 2])
    table["server_list"][1].update(host_ip="10.77.0.9", container_ip="10.77.0.9")
    for device in table["server_list"][1]["device"]:
        device["device_ip"] = device["device_ip"].replace(".2", ".9")
    mount.show(table)
    machine = cluster.machines[1]

    done = cluster.second.run(
        [
            sys.executable,
            "-m",
            "hccl_tools",
            "launch",
            "--rank-table",
            str(mount.file),
            "--wait",
            "5",
            *PROGRAM,
        ],
        env={
            **os.environ,
            "PATH": f"{machine.bin}:{os.environ['PATH']}",
            "HCCL_TOOLS_ROOT": str(machine.root),
        },
    )

    assert done.returncode == 125
    assert "none of the table's servers is this host" in done.stderr
