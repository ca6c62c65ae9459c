"""Spares of hosts with devices, which are queried at the start: the table gets the spare's own addresses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.three_hosts import ADDRESSES, isolate
from tests.support.hosts import conf_text, make_host
from tests.support.jobs import LONG
from tests.support.mpiruns import Ssh
from tests.support.spare_jobs import OnThreeHosts, SpareJob
from tests.support.spares import ONCE_AGAIN
from tests.support.three_by import environ

if TYPE_CHECKING:
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.hosts import StandInHost
    from tests.support.mpiruns import Mpirun

pytestmark = [pytest.mark.bed, pytest.mark.slow, pytest.mark.usefixtures("own_directory")]

DEVICES = range(2)
PROGRAM = ["--max-restarts", "1", "--start", "torch", "--no-python", "sh", "-c", ONCE_AGAIN]
ALL = ["--hosts", "10.0.0.[1-3]", "--spares", "1"]
TABLE = ["--rank-table", "table.json", "--spare-hosts", ADDRESSES[2]]


def device_ips(host: int) -> list[str]:
    """Return the addresses of a host's devices."""
    return [f"192.168.{100 + device}.{host + 1}" for device in DEVICES]


class OnAscendHosts(OnThreeHosts):
    """Jobs without ``--cpu`` on three A2 hosts, started on the first, by default over ssh."""

    def __init__(self, bed: ThreeHosts, engine: Mpirun | Ssh | None = None) -> None:
        super().__init__(bed, engine or Ssh())
        self.machines: list[StandInHost] = []
        for number, host in enumerate(bed.hosts):
            devices = {str(device): {"ip": ip} for device, ip in enumerate(device_ips(number))}
            conf = conf_text(device_ips(number))
            self.machines.append(
                make_host(host.folder / "ascend", product="a2", devices=devices, nodes=DEVICES, conf=conf)
            )

    def start(self, *argv: str) -> subprocess.Popen[str]:
        first = self.machines[0]
        own = {"PATH": f"{first.bin}:{os.environ['PATH']}", "HCCL_TOOLS_ROOT": str(first.root)}
        options = [
            "--ignore",
            "HCC2,HCC4,HCC5,HCC6",
            "--grace",
            "1",
            "--host-timeout",
            "3",
            *self.engine.for_launch,
        ]
        return self.hosts[0].start(
            [sys.executable, "-m", "hccl_tools", "launch", *options, *argv],
            env=environ(self.bed) | own, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


@pytest.fixture
def place(three_hosts: ThreeHosts) -> OnAscendHosts:
    return OnAscendHosts(three_hosts)


def write_table(*hosts: str) -> None:
    """Write the table of two hosts, by default the first two in namespaces."""
    servers = [
        {
            "server_id": address,
            "device": [
                {"device_id": str(device), "device_ip": ip, "rank_id": str(2 * host + device)}
                for device, ip in enumerate(device_ips(host))
            ],
            "host_nic_ip": "reserve",
        }
        for host, address in enumerate(hosts or ADDRESSES[:2])
    ]
    table = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
    Path("table.json").write_text(json.dumps(table))


def addresses() -> dict[str, list[str]]:
    """Return the device addresses of each server in the table of the last run."""
    table: dict[str, Any] = json.loads(Path("log/latest/rank_table.json").read_text())
    return {
        server["server_id"]: [device["device_ip"] for device in server["device"]]
        for server in table["server_list"]
    }


@pytest.mark.parametrize("options", [ALL, TABLE], ids=["hosts", "table"])
def test_the_table_gets_the_devices_of_the_spare(place: OnAscendHosts, options: list[str]) -> None:
    write_table()
    job = SpareJob(place, *options, *PROGRAM, own_table=True)
    assert job.waits_for(*(f"up_{rank}" for rank in range(4))), job.launcher.communicate(timeout=LONG)[0]
    assert addresses() == {ADDRESSES[host]: device_ips(host) for host in (0, 1)}
    job.kill()

    code, said, report = job.end()

    assert code == 0, said
    assert [(one["host"], one["spare"], one["ranks"]) for one in report["replaced"]] == [
        (ADDRESSES[1], ADDRESSES[2], [2, 3])
    ]
    assert addresses() == {ADDRESSES[host]: device_ips(host) for host in (0, 2)}


def test_a_spare_has_the_place_of_a_host_that_does_not_answer_at_the_start(place: OnAscendHosts) -> None:
    with place.bed.impaired(*isolate(place.hosts[1])):
        job = SpareJob(place, *ALL, *PROGRAM, own_table=True)
        assert job.waits_for(*(f"up_{rank}" for rank in range(4))), job.launcher.communicate(timeout=LONG)[0]

        assert addresses() == {ADDRESSES[host]: device_ips(host) for host in (0, 2)}
        job.launcher.terminate()
        code, said, report = job.end()

    assert (code, report["replaced"]) == (143, []), said
    assert f"{ADDRESSES[1]} is left out: it did not answer: " in said


def test_a_spare_that_does_not_answer_at_the_start_is_left_out(place: OnAscendHosts) -> None:
    write_table()
    spares = ["--rank-table", "table.json", "--spare-hosts", f"10.0.0.9,{ADDRESSES[2]}"]

    job = SpareJob(place, *spares, *PROGRAM, own_table=True)
    assert job.waits_for(*(f"up_{rank}" for rank in range(4))), job.launcher.communicate(timeout=LONG)[0]
    job.launcher.terminate()
    code, said, _ = job.end()

    assert code == 143, said
    assert "spare 10.0.0.9 is left out: " in said
    assert f"1 spare host: {ADDRESSES[2]}" in said


def test_a_job_whose_only_spare_does_not_answer_at_the_start_is_refused(place: OnAscendHosts) -> None:
    write_table()
    (place.machines[2].bin / "hccn_tool").unlink()
    (place.machines[2].root / "etc" / "hccn.conf").unlink()

    job = SpareJob(place, *TABLE, *PROGRAM, own_table=True)
    said = job.launcher.communicate(timeout=LONG)[0]

    assert job.launcher.returncode == 125
    assert "error: no spare can be used: " in said
    assert ADDRESSES[2] in said
    assert not Path("log").exists()


def test_a_restart_checks_the_table_for_the_product_of_the_hosts(place: OnAscendHosts) -> None:
    """A 910A would need eight devices on each host."""
    write_table()

    job = SpareJob(place, *TABLE, *PROGRAM[:-1], '[ "$HCCL_TOOLS_RESTART" != 0 ]', own_table=True)
    code, said, report = job.end()

    assert (code, report["restarts"], report["replaced"]) == (0, 1, []), said
