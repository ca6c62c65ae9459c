"""``gen`` beyond the plain 1.0 table: every product's host, frameworks' demands, pods, rare fields."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.hosts import StandInHost, described, make_host

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

#: Each test starts processes, or takes a second or more.
pytestmark = pytest.mark.slow

PRODUCTS = ("910a", "a2", "a3", "300i", "a5")
COUNTS = {"a3": 16, "300i": 4}


@pytest.fixture
def host(tmp_path: Path) -> StandInHost:
    return make_host(tmp_path / "host", nodes=range(8))


def made(folder: Path, product: str, **differs: Any) -> StandInHost:
    return make_host(folder / "host", {**described(product), **differs}, nodes=range(COUNTS.get(product, 8)))


def printed(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def sentence(host: StandInHost, done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one sentence of a refusal; nothing was written."""
    assert (done.returncode, host.tables()) == (code, []), done.stderr
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


@pytest.mark.slow
@pytest.mark.parametrize("product", PRODUCTS)
def test_a_host_with_tools_gives_the_table_of_the_simulated_one(tmp_path: Path, product: str) -> None:
    host = made(tmp_path, product)
    arguments = ("gen", "--server_ip", "127.0.0.1", "-o", "-")

    real = host.run(*arguments)

    assert real.stdout == host.run(*arguments, "--simulate", product).stdout
    assert printed(real)
    (host.work / "table.json").write_text(real.stdout)
    report = host.run("validate", "--local", "-f", "json", "table.json")
    (file,) = json.loads(report.stdout)["files"]
    assert (file["product"], file["verdict"], file["findings"]) == (product, "accepted", [])


def test_the_file_of_an_ascend_950_bears_the_host_s_name(tmp_path: Path) -> None:
    host = made(tmp_path, "a5")

    done = host.run("gen", "--devices", "3,2", "--server_ip", "10.0.0.5")

    assert done.returncode == 0, done.stderr
    assert host.tables() == ["hccl_2p_23_10.0.0.5.json"]
    assert "hccl_rootinfo.json does not exist: layer 0 is named 10.0.0.5 after the EIDs" in done.stderr
    assert "device 3: addresses: 7 on layer 0, 2 on layer 1 (hccn_tool -dev_info)" in done.stderr
    table = json.loads((host.work / host.tables()[0]).read_text())
    assert [(one["rank_id"], one["local_id"], one["device_id"]) for one in table["rank_list"]] == [
        (0, 3, 3), (1, 2, 2),
    ]  # fmt: skip
    again = host.run("gen", "--devices", "3,2", "--server_ip", "10.0.0.5")
    assert "already up to date" in again.stderr


def test_another_host_s_2_0_table_is_found_out(tmp_path: Path) -> None:
    host = made(tmp_path, "a5")
    table = host.run("gen", "--server_ip", "10.0.0.5", "-o", "-").stdout
    (host.work / "table.json").write_text(table.replace("dfdf000a", "dfdf00b0"))

    done = host.run("validate", "--local", "-f", "concise", "table.json")

    assert done.returncode == 1
    assert "HCC431 device 0 has" in done.stdout
    assert 'not "000000000000002000100000dfdf00b0"' in done.stdout


@pytest.mark.slow
def test_two_hosts_of_one_chassis(tmp_path: Path) -> None:
    """Layer 0 spans both, and each counts its devices from 0."""
    hosts = [make_host(tmp_path / name, described("a5"), nodes=range(8)) for name in ("one", "two")]
    for board, host in enumerate(hosts):
        devices = {
            key: {**value, "eids": [f"{eid[:29]}{board}{eid[30:]}" for eid in value["eids"]]}
            for key, value in described("a5")["devices"].items()
        }
        host.describe({"product": "a5", "devices": devices})
    second = printed(hosts[1].gen("-o", "-"))
    level = second["rank_list"][0]["level_list"][0]
    assert (level["net_instance_id"], second["rank_list"][0]["local_id"]) == ("0_0", 8)
    both = printed(hosts[0].gen("-o", "-"))
    for rank in both["rank_list"]:
        rank["level_list"][0]["net_instance_id"] = "0_0"
    for rank in second["rank_list"]:
        both["rank_list"].append({**rank, "rank_id": rank["rank_id"] + 8})
    both["rank_count"] = 16

    for host in hosts:
        (host.work / "table.json").write_text(json.dumps(both))
        done = host.run("validate", "--local", "-f", "concise", "table.json")
        assert (done.returncode, done.stdout) == (0, "")


class TestTargets:
    def test_mindie(self, host: StandInHost) -> None:
        done = host.gen("--target", "mindie", "--product", "a2")

        path = host.work / "hccl_8p_01234567_10.0.0.5.json"
        assert done.stdout.splitlines() == [
            f"export RANK_TABLE_FILE={path}",
            f"export RANKTABLEFILE={path}",
            "export MIES_CONTAINER_IP=10.0.0.5",
        ]
        assert path.stat().st_mode & 0o777 == 0o640
        (server,) = json.loads(path.read_text())["server_list"]
        assert server["container_ip"] == "10.0.0.5"

    def test_mindie_in_a_pod(self, host: StandInHost) -> None:
        done = host.run("gen", "--target", "mindie", POD_IP="172.17.0.9", HOST_IP="10.0.0.7")

        assert done.returncode == 0, done.stderr
        (server,) = json.loads((host.work / "hccl_8p_01234567_10.0.0.7.json").read_text())["server_list"]
        assert (server["server_id"], server["container_ip"]) == ("10.0.0.7", "172.17.0.9")
        assert "export MIES_CONTAINER_IP=172.17.0.9" in done.stdout

    def test_the_shell_takes_the_variables(self, host: StandInHost) -> None:
        gen = f"'{sys.executable}' -m hccl_tools gen --target torch --server_ip 10.0.0.5 -o 'a b.json'"
        command = f'eval "$({gen})"'
        done = subprocess.run(
            ["/bin/sh", "-c", f'{command}; echo "$RANK_TABLE_FILE"'],
            check=True, capture_output=True, text=True, cwd=host.work, env=host.environ(),
        )  # fmt: skip

        assert done.stdout == f"{host.work / 'a b.json'}\n"

    def test_torch_refuses_links(self, host: StandInHost) -> None:
        real = host.folder / "real.json"
        (host.work / "link.json").symlink_to(real)

        done = host.gen("--target", "torch", "-o", "link.json")

        assert done.returncode == 2
        assert "error: link.json is a symbolic link, which torch_npu refuses to open" in done.stderr
        assert not real.exists()
        followed = host.gen("--target", "mindspore", "-o", "link.json")
        assert followed.stdout == f"export RANK_TABLE_FILE={real}\n"

    def test_what_cannot_be(self, host: StandInHost) -> None:
        assert "-o - writes no file" in sentence(host, host.gen("--target", "torch", "-o", "-"), 2)
        done = host.gen("--target", "mindie", "--format", "group_list")
        assert "a group_list table has no container_ip" in sentence(host, done, 2)

    def test_a_mode_that_was_asked_for_stays(self, host: StandInHost) -> None:
        host.gen("--target", "mindie", "--mode", "600", "-o", "x.json")

        assert (host.work / "x.json").stat().st_mode & 0o777 == 0o600


class TestWhatOnlySomeTablesSay:
    def test_host_ip_container_ip_device_port(self, host: StandInHost) -> None:
        options = ("--host-ip", "auto", "--container-ip", "172.17.0.2", "--device-port", "16667")

        table = printed(host.gen(*options, "--product", "a2", "-o", "-"))

        (server,) = table["server_list"]
        assert (server["host_ip"], server["container_ip"]) == ("10.0.0.5", "172.17.0.2")
        assert {device["device_port"] for device in server["device"]} == {"16667"}

    def test_device_port_of_an_ascend_950(self, tmp_path: Path) -> None:
        table = printed(made(tmp_path, "a5").gen("--device-port", "16700", "-o", "-"))

        assert {rank["device_port"] for rank in table["rank_list"]} == {16700}

    def test_what_a_table_cannot_say(self, host: StandInHost) -> None:
        done = host.gen("--format", "group_list", "--device-port", "16666")
        assert "a group_list table has no device_port" in sentence(host, done, 2)
        done = host.gen("--host-ip", "node7")
        assert '--host-ip "node7" is not an IP address' in sentence(host, done, 2)
        assert "--vnic requires a 1.2 table" in sentence(host, host.gen("--vnic"), 2)


class TestPods:
    """A pod with a network of its own reaches the world by an address that is not its host's."""

    @pytest.mark.parametrize("variable", ["HOST_IP", "MA_CURRENT_HOST_IP"])
    def test_the_host_s_address_is_what_the_platform_states(self, host: StandInHost, variable: str) -> None:
        done = host.run("gen", **{variable: "10.0.0.7"})

        assert host.tables() == ["hccl_8p_01234567_10.0.0.7.json"]
        assert f"server_id 10.0.0.7 ({variable})" in done.stderr

    def test_a_stated_address_that_is_none(self, host: StandInHost) -> None:
        done = host.run("gen", HOST_IP="somewhere")

        assert 'HOST_IP "somewhere" is not an IP address' in sentence(host, done, 2)

    def test_two_pods_of_one_host_are_no_two_servers(self, host: StandInHost) -> None:
        for name, devices in (("a", "0-3"), ("b", "4-7")):
            done = host.run("gen", "--devices", devices, "-o", f"{name}.json", HOST_IP="10.0.0.7")
            assert done.returncode == 0, done.stderr

        done = host.run("merge", "a.json", "b.json")

        assert done.returncode == 1
        assert "10.0.0.7" in done.stderr


def test_vnic_addresses_inside_a_super_pod(tmp_path: Path) -> None:
    host = made(tmp_path, "a3")

    done = host.gen("--vnic", "-o", "-")

    devices = printed(done)["server_list"][0]["device"]
    assert [device["device_ip"] for device in devices[:2]] == ["192.168.2.199", "192.168.2.198"]
    assert "other machines may have the same addresses" in done.stderr


def test_no_vnic(tmp_path: Path) -> None:
    devices = {key: {**value, "vnic": None} for key, value in described("a3")["devices"].items()}

    said = sentence(host := made(tmp_path, "a3", devices=devices), host.gen("--vnic"), 1)

    assert "no vnic address for device 0" in said
    assert "not supported on this product" in said


@pytest.mark.parametrize("option", ["--rootinfo", "--hccn-conf", "--hccn-tool"])
def test_a_simulated_machine_has_no_source(command_line: CommandLine, option: str) -> None:
    done = command_line("gen", "--simulate", "a5", option, "nothing", "-o", "t.json")

    assert (done.code, command_line.names) == (2, [])
    assert f"--simulate and {option} exclude each other" in done.err
