"""``doctor`` on three hosts of each product, with the table that ``gen --hosts`` makes of them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.three_hosts import ADDRESSES
from tests.support.hosts import conf_text, described, make_host

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.beds.three_hosts import ThreeHosts
    from tests.support.hosts import StandInHost

pytestmark = pytest.mark.bed

PRODUCTS = ("910a", "a2", "a3", "a5")


class Bed:
    """Three sound hosts of one product, with the same table on each."""

    def __init__(self, hosts: ThreeHosts, product: str) -> None:
        self.hosts = hosts
        self.machines: list[StandInHost] = []
        for number, host in enumerate(hosts.hosts, 1):
            description = described(product, number)
            devices = description["devices"]
            ips = {int(device): one["ip"][0] for device, one in devices.items() if one["ip"]}
            self.machines.append(
                make_host(
                    host.folder / "ascend", description, nodes=map(int, devices), conf=conf_text(ips) or None
                )
            )
        self.table = hosts.hosts[0].disk / "table.json"
        made = self.run("gen", "--hosts", ",".join(ADDRESSES), "-o", str(self.table))
        assert made.returncode == 0, made.stderr
        text = (hosts.hosts[0].folder / "disk" / "table.json").read_text()
        for host in hosts.hosts[1:]:
            (host.folder / "disk" / "table.json").write_text(text)

    def run(self, command: str, *args: str) -> subprocess.CompletedProcess[str]:
        first = self.machines[0]
        words = ["env", f"PATH={first.bin}", f"HCCL_TOOLS_ROOT={first.root}", "HOME=/tmp"]
        words += [sys.executable, "-m", "hccl_tools", command, *args]
        words += ["--engine", "ssh", "--ssh", str(self.hosts.ssh)]
        return self.hosts.hosts[0].run(words, cwd=str(self.hosts.hosts[0].folder))

    def differ(self, number: int, device: int, **fields: Any) -> None:
        description = self.machines[number].description
        description["devices"][str(device)].update(fields)
        self.machines[number].describe(description)

    def findings(self, *args: str) -> list[tuple[str, list[str], str]]:
        """Return the check, the hosts and the message of all findings above a note."""
        done = self.run("doctor", str(self.table), "-f", "json", *args)
        assert done.stdout, done.stderr
        assert "Traceback" not in done.stderr
        found = json.loads(done.stdout)["findings"]
        return [(one["check"], one["hosts"], one["message"]) for one in found if one["consequence"] != "note"]


@pytest.fixture
def ready(three_hosts: ThreeHosts) -> Iterator[Callable[[str], Bed]]:
    yield lambda product: Bed(three_hosts, product)
    for host in three_hosts.hosts:
        for path in (host.folder / "disk").iterdir():
            path.unlink()


@pytest.mark.parametrize("product", PRODUCTS)
def test_sound_hosts(ready: Callable[[str], Bed], product: str) -> None:
    assert ready(product).findings() == []


@pytest.mark.parametrize("product", ["910a", "a2"])
def test_a_link_that_is_down_stops_a_job_between_hosts(ready: Callable[[str], Bed], product: str) -> None:
    bed = ready(product)
    bed.differ(1, 3, link="DOWN")

    found = bed.findings()

    assert [(check, hosts) for check, hosts, _ in found] == [("HCD202", [ADDRESSES[1]])]
    assert "device 3 is DOWN" in found[0][2]


def test_a_link_that_is_down_inside_a_super_pod_is_a_note(ready: Callable[[str], Bed]) -> None:
    bed = ready("a3")
    bed.differ(1, 3, link="DOWN")

    assert bed.findings() == []


def test_a_device_that_its_super_pod_does_not_reach(ready: Callable[[str], Bed]) -> None:
    bed = ready("a3")
    second, third = (bed.machines[number].description["devices"] for number in (1, 2))
    bed.differ(0, 5, lost_over_hccs={second["5"]["vnic"]: 3})
    bed.differ(1, 5, lost_over_hccs={third["5"]["vnic"]: 3})

    found = bed.findings()

    assert [(check, hosts) for check, hosts, _ in found] == [("HCD604", [ADDRESSES[1]])]
    assert "over HCCS, device 5 reaches no other device of the super pod" in found[0][2]


def test_the_matrix_of_a_super_pod(ready: Callable[[str], Bed]) -> None:
    bed = ready("a3")
    second = bed.machines[1].description["devices"]
    bed.differ(0, 5, lost_over_hccs={second["5"]["vnic"]: 1})

    done = bed.run("doctor", str(bed.table), "-f", "matrix")

    assert "pinging 16 devices of other servers from each host over HCCS, about 48 s" in done.stderr
    rows = [line.split() for line in done.stdout.partition("pings answered\n")[2].splitlines()]
    assert [row[:4] for row in rows[1:4]] == [
        ["S0", "X", "16/16", "-"],
        ["S1", "-", "X", "16/16"],
        ["S2", "16/16", "-", "X"],
    ]
    assert rows[12][:7] == ["NPU5", "-", "-", "-", "-", "-", "2/3"]
