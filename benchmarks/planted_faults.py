"""Faults of three stand-in hosts: those of the tests of ``doctor``, and more.

``benchmarks.beside_msprechecker`` measures them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.beds import test_doctor_on_three_hosts as tested
from tests.beds.test_doctor_on_three_hosts import DEVICES, Bed, address
from tests.beds.three_hosts import ADDRESSES
from tests.support.hosts import conf_text, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

HOSTS = (0, 1, 2)
ROUTER = "System Description TLV\n\tHuawei Versatile Routing Platform Software\n"
VNIC = "vnic link status: UP\nvnic ipaddr: 192.168.2.{}\nvnic netmask: 255.255.255.0\n"
HCCS_PING = "3 packets transmitted, 3 received, 0.00% packets loss\nCmd executed successfully!\n"


class Fault(NamedTuple):
    """A fault, and how it is measured.

    Attributes:
        plant: Puts it on the sound hosts, and returns what takes it away again if that is more than files.
        doctor: Further options of ``doctor``.
        runs: How often msprechecker is run.
        hosts: The hosts that msprechecker is run on, by index.
        parallel: Whether ``hccn_tool`` refuses parallel calls, or has them wait for each other.
        dump_table: Whether ``dump`` gets the table.
    """

    plant: Callable[[Bed], AbstractContextManager[Any] | None]
    doctor: tuple[str, ...] = ()
    runs: int = 1
    hosts: tuple[int, ...] = HOSTS
    parallel: bool = False
    dump_table: bool = False


def settle(bed: Bed) -> None:
    """Lose the pings to addresses of no device, of a device whose link is down, and of the other family."""
    alive: set[str] = set()
    asked: set[str] = set()
    for number in HOSTS:
        devices = bed.machines[number].description["devices"].values()
        alive |= {device["ip"] for device in devices if device.get("link") != "DOWN"}
        asked |= set(re.findall(r'"device_ip": "([^"]+)"', bed.file(number, "table.json").read_text()))
    for number in HOSTS:
        for device, told in bed.machines[number].description["devices"].items():
            away = {one for one in asked if one not in alive or (":" in one) != (":" in told["ip"])}
            bed.differ(number, int(device), lost={**dict.fromkeys(away, 3), **told.get("lost", {})})


def complete(bed: Bed) -> None:
    """Have the tools also say that a switch is at the other end of the cable, and what vnic is."""
    for number in HOSTS:
        description = bed.machines[number].description
        answers = {"hccn_tool -i 0 -lldp -g": {"stdout": ROUTER}, **description.get("answers", {})}
        if description["product"] != "910a":
            for device in description["devices"]:
                answers[f"hccn_tool -i {device} -vnic -g"] = {"stdout": VNIC.format(199 - int(device))}
        bed.differ(number, answers=answers)


def nothing(_bed: Bed) -> None:
    """Leave the hosts sound."""


def sound_910a(bed: Bed) -> None:
    for number in HOSTS:
        bed.differ(number, product="910a")


def a3_without_roce(bed: Bed) -> None:
    """One A3 host, whose job stays inside its super pod. None of its RoCE ports is in use."""
    machine = bed.machines[0]
    description = described("a3")
    devices = description["devices"]
    addresses = [one for told in devices.values() for one in (*told["ip"], told["vnic"])]
    for told in devices.values():
        told["link"] = "DOWN"
    pings = [f"hccn_tool -i {device} -hccs_ping -g address {one}" for device in devices for one in addresses]
    machine.describe({**description, "answers": {ping: {"stdout": HCCS_PING} for ping in pings}})
    machine.nodes(map(int, devices))
    machine.conf(conf_text({int(device): told["ip"][0] for device, told in devices.items()}))
    table = bed.file(0, "table.json")
    table.unlink()
    done = machine.run("gen", "--server_ip", ADDRESSES[0], "-o", str(table))
    assert done.returncode == 0, done.stderr


def tls_everywhere(bed: Bed) -> None:
    for number in HOSTS:
        for device in DEVICES:
            bed.differ(number, device, tls=1)


def net_health_init(bed: Bed) -> None:
    bed.differ(1, 1, health="Init")


def some_packets_lost(bed: Bed) -> None:
    bed.differ(1, 0, lost={address(3, 0): 1})


def device_lost(bed: Bed) -> None:
    """Have no ping come from a device, or arrive at it."""
    own = address(2, 1)
    others = {address(number + 1, device) for number in HOSTS for device in DEVICES} - {own}
    for number in HOSTS:
        for device in DEVICES:
            is_own = address(number + 1, device) == own
            bed.differ(number, device, lost=dict.fromkeys(others if is_own else {own}, 3))


def rail_lost(bed: Bed) -> None:
    for number in HOSTS:
        others = [address(other + 1, 1) for other in HOSTS if other != number]
        bed.differ(number, 1, lost=dict.fromkeys(others, 3))


def pair_lost(bed: Bed) -> None:
    bed.differ(0, 0, lost={address(3, 1): 3})
    bed.differ(2, 1, lost={address(1, 0): 3})


def other_product(bed: Bed) -> None:
    bed.differ(2, product="910a")


def other_family(bed: Bed) -> None:
    ips = [f"fd00:1::{device + 1}" for device in DEVICES]
    for device in DEVICES:
        bed.differ(2, device, ip=ips[device])
    bed.machines[2].conf(conf_text(ips))
    bed.write_table(rank_4=ips[0], rank_5=ips[1])


def logical_ids(bed: Bed) -> None:
    """Give the second host the devices 4 and 5, which the table calls 0 and 1."""
    machine = bed.machines[1]
    devices = {str(int(device) + 4): told for device, told in machine.description["devices"].items()}
    bed.differ(1, devices=devices)
    for device in DEVICES:
        (machine.root / "dev" / f"davinci{device}").unlink()
    machine.nodes(map(int, devices))
    machine.conf(conf_text({int(device): told["ip"] for device, told in devices.items()}))


def no_tool(bed: Bed) -> None:
    (bed.machines[2].bin / "hccn_tool").unlink()


def link_answer(**told: Any) -> Callable[[Bed], None]:
    def plant(bed: Bed) -> None:
        bed.differ(1, answers={"hccn_tool -i 1 -link -g": told})

    return plant


def running_job(bed: Bed) -> None:
    bed.differ(1, processes=[[device, 4000 + device, "python3.9", 900] for device in DEVICES])


@contextmanager
def host_down(bed: Bed) -> Iterator[None]:
    bed.hosts.hosts[2].cut_off()
    try:
        yield
    finally:
        bed.hosts.hosts[2].reconnect()


def no_key(bed: Bed) -> AbstractContextManager[None]:
    return tested.rewritten(bed.hosts.hosts[2].folder / "authorized_keys", "")


def taken_port(port: int) -> Callable[[Bed], AbstractContextManager[None]]:
    @contextmanager
    def plant(bed: Bed) -> Iterator[None]:
        command = [sys.executable, "-c", tested.LISTEN, str(port)]
        with bed.hosts.hosts[1].start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as listener:
            assert listener.stdout is not None
            listener.stdout.readline()
            yield
            listener.communicate("")

    return plant


FAULTS = {
    "sound A2": Fault(nothing, runs=3),
    "sound A2, parallel calls refused": Fault(nothing, runs=5, parallel=True),
    "sound A2, dump with the table": Fault(nothing, runs=10, dump_table=True),
    "sound 910A": Fault(sound_910a, ("--product", "910a", "--ignore", "HCD002")),
    "sound A3 without RoCE": Fault(a3_without_roce, hosts=(0,)),
    "TLS on everywhere": Fault(tls_everywhere),
    "wrong address in the table": Fault(tested.wrong_address_in_the_table),
    "wrong address in hccn.conf": Fault(tested.wrong_address_in_hccn_conf),
    "wrong address on the device": Fault(tested.wrong_address_on_the_device),
    "table differs": Fault(tested.other_table),
    "TLS differs on a device": Fault(tested.tls_on_one_device),
    "TLS differs on a host": Fault(tested.tls_on_one_host),
    "link down": Fault(tested.link_down),
    "net_health Init": Fault(net_health_init),
    "npu-smi health": Fault(tested.bad_health),
    "ping lost one way": Fault(tested.one_way_lost, runs=10),
    "ping lost of a device": Fault(device_lost),
    "ping lost of a rail": Fault(rail_lost, runs=10),
    "ping lost of a pair": Fault(pair_lost, ("--full",), runs=10),
    "ping loses some packets": Fault(some_packets_lost, runs=10),
    "hccn_tool missing": Fault(no_tool),
    "hccn_tool hanging": Fault(link_answer(hang=True), ("--check-timeout", "2")),
    "hccn_tool garbage": Fault(link_answer(stdout="\x00\x7fgarbage\n")),
    "hccn_tool exit code 1": Fault(link_answer(status=1, stdout="link status: UP\n")),
    "device node missing": Fault(tested.no_device_node),
    "logical ids": Fault(logical_ids),
    "rootinfo a directory": Fault(tested.rootinfo_is_a_folder),
    "mixed products": Fault(other_product, ("--ignore", "HCD002")),
    "mixed families": Fault(other_family, ("--ignore", "HCD002")),
    "host down": Fault(host_down, ("--gather-timeout", "10"), hosts=(0, 1)),
    "no ssh key": Fault(no_key, ("--gather-timeout", "10")),
    "start port taken": Fault(taken_port(18555), ("--start-port", "18555")),
    "port 60000 taken": Fault(taken_port(60000)),
    "port 16666 taken": Fault(taken_port(16666)),
    "running job": Fault(running_job),
    "clock": Fault(tested.clock_ahead),
    "no such interface": Fault(tested.no_such_interface),
    "other variable": Fault(tested.other_variable),
    "locked memory": Fault(tested.little_locked_memory),
    "open files": Fault(tested.few_open_files),
}
