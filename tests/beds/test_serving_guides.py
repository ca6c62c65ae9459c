"""The steps of the guide for MindIE and xLLM on several hosts, typed on the first of two hosts."""

from __future__ import annotations

import json
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from tests.beds.three_hosts import ADDRESSES
from tests.support.hosts import conf_text, described, make_host

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.beds.three_hosts import ThreeHosts

    Typed = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.bed

HOSTS = ADDRESSES[:2]


@pytest.fixture
def table(three_hosts: ThreeHosts) -> Path:
    for number, host in enumerate(three_hosts.hosts[:2], 1):
        description = described("a2", number)
        ips = {int(device): one["ip"][0] for device, one in description["devices"].items()}
        make_host(host.folder / "ascend", description, nodes=range(8), conf=conf_text(ips))
    return three_hosts.hosts[0].disk / "rank_table.json"


@pytest.fixture
def typed(three_hosts: ThreeHosts) -> Typed:
    first = three_hosts.hosts[0]

    def run(*args: str, on: int = 0) -> subprocess.CompletedProcess[str]:
        folder = three_hosts.hosts[on].folder / "ascend"
        words = [
            "env",
            f"PATH={folder / 'bin'}:/usr/bin:/bin",
            f"HCCL_TOOLS_ROOT={folder / 'root'}",
            "HOME=/tmp",
        ]
        done = three_hosts.hosts[on].run(
            [*words, sys.executable, "-m", "hccl_tools", *args], cwd=str(first.folder)
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


def over_ssh(hosts: ThreeHosts) -> list[str]:
    return ["--engine", "ssh", "--ssh", str(hosts.ssh)]


def prepare(three_hosts: ThreeHosts, table: Path, typed: Typed, target: str) -> None:
    """The first three steps of both guides."""
    how = over_ssh(three_hosts)
    typed("gen", "--hosts", ",".join(HOSTS), "--target", target, "-o", str(table), *how)
    typed("doctor", str(table), "--target", target, "--strict", "--ignore", "HCD507,HCD3,HCD4,HCD001", *how)
    done = typed("distribute", str(table), "--target", target, "--write", *how)
    assert "2 hosts" in done.stdout + done.stderr


def test_mindie(three_hosts: ThreeHosts, table: Path, typed: Typed) -> None:
    prepare(three_hosts, table, typed, "mindie")

    printed = typed(
        "launch", "--rank-table", str(table), "--product", "a2", "--no-python", "--emit", "mindie", "sh"
    ).stdout

    copies = [host.folder / "disk" / table.name for host in three_hosts.hosts[:2]]
    assert [stat.S_IMODE(copy.stat().st_mode) for copy in copies] == [0o640, 0o640]
    assert printed.count("eval ") == 2
    second = typed("env", str(table), "--target", "mindie", "--product", "a2", on=1)
    assert second.stdout.splitlines() == [
        f"export RANK_TABLE_FILE={table}",
        f"export RANKTABLEFILE={table}",
        f"export MIES_CONTAINER_IP={HOSTS[1]}",
        f"export MASTER_IP={HOSTS[0]}",
        "export MASTER_PORT=18118",
        "export HCCL_CONNECT_TIMEOUT=7200",
    ]
    assert "worldSize 8, npuDeviceIds [[0,1,2,3,4,5,6,7]]" in second.stderr


def test_xllm(three_hosts: ThreeHosts, table: Path, typed: Typed) -> None:
    prepare(three_hosts, table, typed, "xllm")

    printed = typed(
        "launch", "--rank-table", str(table), "--product", "a2", "--no-python",
        "--emit", "xllm", "sh", "--model", "/m", "--port", "18000",
    ).stdout  # fmt: skip

    first, second = (host.folder / "disk" / table.name for host in three_hosts.hosts[:2])
    assert json.loads(first.read_text()) == json.loads(second.read_text())
    commands = [line for line in printed.splitlines() if line.startswith("sh ")]
    assert [f"--node_rank={rank} " in line for rank, line in enumerate(commands)] == [True] * 16
    assert all(f"--host={HOSTS[1]} " in line for line in commands[8:])
