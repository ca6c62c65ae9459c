"""``validate --local``: tables against hosts with stand-in tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.host import simulated
from hccl_tools.table.products import PRODUCTS
from tests.support.hosts import IPS_910A, StandInHost, conf_text, make_host
from tests.support.tables import table

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

#: Each test starts processes, or takes a second or more.
pytestmark = pytest.mark.slow

LOOPBACK = "127.0.0.1"


@pytest.fixture
def host(tmp_path: Path) -> StandInHost:
    """A 910A machine with its eight devices, and a table of them."""
    return with_table(make_host(tmp_path / "host", nodes=range(8), conf=conf_text(IPS_910A)))


def with_table(host: StandInHost, *options: str) -> StandInHost:
    done = host.run("gen", "--server_ip", LOOPBACK, "-o", "table.json", *options)
    assert done.returncode == 0, done.stderr
    return host


def change(host: StandInHost, **changes: Any) -> None:
    """Change the description of the host."""
    host.describe({**host.description, **changes})


def checked(host: StandInHost, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    done = host.run("validate", "--local", "-f", "concise", *options, "table.json", **environ)
    assert "Traceback" not in done.stderr
    return done


def found(done: subprocess.CompletedProcess[str]) -> set[str]:
    return {word for word in done.stdout.split() if word.startswith("HCC")}


def edit(host: StandInHost, old: str, new: str) -> None:
    path = host.work / "table.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_table_of_this_host(host: StandInHost) -> None:
    done = checked(host)

    assert (done.returncode, done.stdout) == (0, "")
    assert 'table.json: this host is server "127.0.0.1", by the addresses of its devices' in done.stderr


def test_the_product_is_this_host_s(tmp_path: Path) -> None:
    devices = {str(n): {"ip": f"10.1.0.{n + 1}"} for n in range(3)}
    host = with_table(make_host(tmp_path / "host", product="a2", devices=devices, nodes=range(3)))

    done = host.run("validate", "--local", "table.json")

    assert done.returncode == 0
    assert "product a2 (the product of this host, by lspci: device d802)" in done.stdout
    told = host.run("validate", "--local", "--product", "910a", "table.json")
    assert "product 910a (as given)" in told.stdout


def test_an_address_that_is_not_the_device_s(host: StandInHost) -> None:
    edit(host, '"192.168.103.101"', '"192.168.103.77"')

    done = checked(host)

    assert done.returncode == 1
    assert found(done) == {"HCC431"}
    assert 'device 3 has 192.168.103.101, not "192.168.103.77"' in done.stdout
    (file,) = json.loads(host.run("validate", "--local", "-f", "json", "table.json").stdout)["files"]
    assert file["verdict"] == "accepted"
    assert file["findings"][0]["hccl_code"] == "EI0014"
    assert file["findings"][0]["pointer"] == "/server_list/0/device/3/device_ip"
    assert file["findings"][0]["line"] > 1


def test_a_table_made_from_a_stale_file(host: StandInHost) -> None:
    """One of the devices was given another address since the file was written."""
    devices = {str(n): {"ip": ip} for n, ip in enumerate(IPS_910A)}
    change(host, devices={**devices, "5": {"ip": "192.168.101.200"}})

    done = host.run("validate", "--local", "table.json")

    assert done.returncode == 1
    assert "device 5 has 192.168.101.200" in done.stdout
    assert f"{host.root}/etc/hccn.conf has this address, but is out of date" in done.stdout
    assert "warning[HCC641]" in done.stdout
    assert done.stdout.endswith("HCCL accepts this table, but the job fails later\n")


def test_a_stale_file_alone_is_a_warning(host: StandInHost) -> None:
    host.conf(conf_text([*IPS_910A[:7], "192.168.103.9"]))

    done = checked(host)

    assert done.returncode == 0
    assert found(done) == {"HCC641"}
    assert "gives device 7 192.168.103.9, but the device has 192.168.103.100" in done.stdout


def test_devices_that_are_not_here(host: StandInHost) -> None:
    for device in (6, 7):
        (host.root / "dev" / f"davinci{device}").unlink()

    done = host.run("validate", "--local", "table.json")

    assert done.returncode == 1
    assert "this host has no device 7: no /dev/davinci7" in done.stdout
    assert "this host has devices 0,1,2,3,4,5; make a new table" in done.stdout
    assert "2 errors: HCCL accepts this table, but not on this host" in done.stdout


def test_logical_ids_in_a_container(tmp_path: Path) -> None:
    conf = conf_text({device: IPS_910A[device] for device in (0, 1)})
    host = with_table(make_host(tmp_path / "host", nodes=(0, 1), conf=conf, tools=()))
    for device in (0, 1):
        (host.root / "dev" / f"davinci{device}").rename(host.root / "dev" / f"davinci{device + 4}")

    done = host.run("validate", "--local", "table.json")

    assert done.returncode == 1
    assert "this host has devices 4,5, and the table their logical ids; make a new table" in done.stdout


def test_devices_that_only_the_tool_knows(tmp_path: Path) -> None:
    host = with_table(make_host(tmp_path / "host", tools=("hccn_tool",)), "--devices", "0,1")
    change(host, devices={"0": {"ip": IPS_910A[0]}})

    done = checked(host)

    assert found(done) == {"HCC341"}
    assert 'this host has no device 1: hccn_tool printed "The device is not exist!"' in done.stdout


def test_the_table_of_another_host(host: StandInHost, tmp_path: Path) -> None:
    other = make_host(tmp_path / "other", product="910a", devices={"0": {"ip": "10.1.1.1"}}, nodes=[0])
    assert other.run("gen", "--server_ip", "192.0.2.7", "-o", "table.json").returncode == 0
    (host.work / "table.json").write_text((other.work / "table.json").read_text())

    done = checked(host)

    assert done.returncode == 1
    assert found(done) == {"HCC551"}
    assert 'the table lists "192.0.2.7"' in done.stdout
    assert "this host matches none of its servers" in done.stderr


def test_a_server_id_that_is_another_machine_s(host: StandInHost) -> None:
    edit(host, '"127.0.0.1"', '"192.0.2.7"')

    done = checked(host)

    assert (done.returncode, found(done)) == (0, {"HCC642"})
    assert 'this host is server "192.0.2.7", by the addresses of its devices' in done.stderr


def test_the_same_machine_twice(host: StandInHost) -> None:
    table = json.loads((host.work / "table.json").read_text())
    (server,) = table["server_list"]
    again = json.loads(json.dumps(server))
    for entry, name in ((server, "a"), (again, "b")):
        entry["server_id"], entry["host_ip"] = name, LOOPBACK.replace("0.1", "0.9")
        for device in entry["device"]:
            device["device_ip"] = device["device_ip"].replace("192.168", "10.10" if name == "a" else "10.11")
    for device in again["device"]:
        device["rank_id"] = str(int(device["rank_id"]) + 8)
    table |= {"server_list": [server, again], "server_count": "2"}
    (host.work / "table.json").write_text(json.dumps(table))

    assert found(checked(host)) == {"HCC551"}  # a loopback address tells nothing in a table of two

    done = checked(host, HOST_IP="127.0.0.9")

    assert found(done) == {"HCC552"}
    assert 'servers "a" and "b" are both this host, by an address in a platform variable' in done.stdout


def test_without_the_right_to_ask(host: StandInHost) -> None:
    change(host, denied=True)

    done = checked(host)

    assert done.returncode == 0
    assert found(done) == {"HCC643"}
    assert "the address of devices 0,1,2,3,4,5,6,7 is not compared: " in done.stdout
    assert 'hccn_tool printed "permission denied' in done.stdout
    assert checked(host, "--strict").returncode == 1


@pytest.mark.parametrize(
    ("table_format", "options", "words"),
    [
        ("1.0", (), "product a2 (the product of this host, by lspci: device d802)"),
        ("2.0", (), "product a5 (assumed for format 2.0)"),
        ("2.0", ("--local",), "product a2 (the product of this host, by lspci: device d802)"),
    ],
)
def test_the_product_of_this_host_counts_if_it_reads_the_format(
    tmp_path: Path, table_format: str, options: tuple[str, ...], words: str
) -> None:
    host = make_host(tmp_path / "host", product="a2", devices={"0": {"ip": "10.1.0.1"}}, nodes=range(1))
    (host.work / "table.json").write_text(json.dumps(table(table_format)))

    assert words in host.run("validate", *options, "table.json").stdout


def test_a_machine_without_devices_says_that_nothing_was_compared(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", tools=())
    assert host.run("gen", "--simulate", "910a", "-o", "table.json").returncode == 0

    assert "no hccn_tool" in checked(host).stdout


def a3(folder: Path, **differs: Any) -> StandInHost:
    machine = simulated.devices(PRODUCTS["a3"])
    devices = {str(one.device_id): {"ip": one.ips[0], "sdid": one.super_device_id} for one in machine}
    return make_host(folder / "host", product="a3", devices=devices, nodes=range(16), **differs)


@pytest.mark.slow
def test_super_device_ids_after_a_swap(tmp_path: Path) -> None:
    host = with_table(a3(tmp_path))
    assert (checked(host).returncode, found(checked(host))) == (0, set())
    swapped = {
        str(one.device_id): {"ip": one.ips[0], "sdid": (one.super_device_id or 0) + (1 << 22)}
        for one in simulated.devices(PRODUCTS["a3"])
    }
    change(host, devices=swapped, server_index=1)

    done = checked(host)

    assert found(done) == {"HCC553"}
    assert 'device 0 has the super_device_id 4194304, not "0"' in done.stdout


def test_a_host_is_not_asked_for_super_device_ids_that_the_table_does_not_have(tmp_path: Path) -> None:
    host = with_table(a3(tmp_path))
    value = json.loads((host.work / "table.json").read_text())
    for device in value["server_list"][0]["device"]:
        del device["super_device_id"]
    (host.work / "table.json").write_text(json.dumps(value))

    asked = sum("spod-info" in call for call in host.calls())
    checked(host)

    assert sum("spod-info" in call for call in host.calls()) == asked > 0


def test_a_left_over_table_of_another_generation(host: StandInHost) -> None:
    """A 1.0 table on an Ascend 950: HCCL only says EI0014, every job of several cards is dead."""
    change(host, product="a5")

    done = host.run("validate", "--local", "table.json")

    assert done.returncode == 1
    assert "product a5 (the product of this host, by lspci: device d806)" in done.stdout
    assert "HCCL refuses this table" in done.stdout
    assert "2.0" in done.stdout


def test_a_group_list_whose_pods_share_the_host(host: StandInHost) -> None:
    pods = [
        {
            "pod_name": str(pod),
            "server_id": LOOPBACK,
            "devices": [{"device_id": str(n), "device_ip": IPS_910A[n]} for n in ids],
        }
        for pod, ids in enumerate((range(4), range(4, 8)))
    ]
    group = {"group_name": "", "device_count": "8", "instance_count": "2", "instance_list": pods}
    table = {"status": "completed", "group_count": "1", "group_list": [group]}
    (host.work / "table.json").write_text(json.dumps(table))

    done = checked(host, "--select", "HCC34,HCC43,HCC55,HCC64")

    assert (done.returncode, found(done)) == (0, set())


def test_many_files_ask_the_tools_once(host: StandInHost) -> None:
    (host.work / "two.json").write_text((host.work / "table.json").read_text())
    before = len(host.calls())

    done = host.run("validate", "--local", "*.json")

    assert done.returncode == 0
    assert len([call for call in host.calls()[before:] if "-ip -g" in call]) == 8


def test_a_file_that_is_no_table(host: StandInHost) -> None:
    (host.work / "table.json").write_text("{}")

    done = checked(host)

    assert done.returncode == 1
    assert "not compared with this host" in done.stderr
