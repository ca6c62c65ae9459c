"""The root info of an Ascend 950 host: the right finding for each damage, and what HCCL makes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from hccl_tools.cli import cli
from hccl_tools.errors import HcclToolsError, TableError
from hccl_tools.validation.checker import validate
from hccl_tools.validation.loading import load
from tests.support.host_files import root_info, topology, write_endpoint_files, write_root_info
from tests.support.hosts import described, make_host
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def found(path: Path) -> list[str]:
    return sorted({one.rule.id for one in validate(path).findings})


def rank(value: Any, row: int = 0) -> Any:
    return value["rank_list"][row]


def address(value: Any, layer: int = 0) -> Any:
    return rank(value)["level_list"][layer]["rank_addr_list"][0]


#: A change of the root info, and the rules that find it.
DAMAGES: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "left-over 1.0": (lambda v: v.update(version="1.0"), ["HCC842"]),
    "left-over 1.2": (lambda v: v.update(version="1.2"), ["HCC842"]),
    "a number as version": (lambda v: v.update(version=2.0), ["HCC843"]),
    "no topology file": (lambda v: v.pop("topo_file_path"), ["HCC843"]),
    "no rank_count": (lambda v: v.pop("rank_count"), ["HCC843"]),
    "no devices": (lambda v: v.update(rank_list=[], rank_count=0), ["HCC843"]),
    "no rank_list": (lambda v: v.pop("rank_list"), ["HCC843"]),
    "a text as device": (lambda v: v["rank_list"].append("x"), ["HCC843"]),
    "a text as device_id": (lambda v: rank(v).update(device_id="0"), ["HCC843"]),
    "no local_id": (lambda v: rank(v).pop("local_id"), ["HCC843"]),
    "no ports": (lambda v: address(v).update(ports=[]), ["HCC843"]),
    "a wrong count": (lambda v: v.update(rank_count=7), ["HCC844"]),
    "a device_id twice": (lambda v: rank(v, 1).update(device_id=0), ["HCC845"]),
    "a local_id twice": (lambda v: rank(v, 1).update(local_id=0), ["HCC675", "HCC845"]),
    "an EID twice": (
        lambda v: rank(v, 1)["level_list"].__setitem__(1, rank(v)["level_list"][1]), ["HCC846"]
    ),
    "a short EID": (lambda v: address(v).update(addr="df"), ["HCC456"]),
    "an EID with colons": (lambda v: address(v).update(addr="0000:" * 7 + "0001"), ["HCC456"]),
    "a lower-case type": (lambda v: address(v).update(addr_type="eid"), ["HCC455"]),
    "a device_id above all": (lambda v: rank(v).update(device_id=70), ["HCC302"]),
    "a local_id above all": (lambda v: rank(v).update(local_id=70), ["HCC331", "HCC675", "HCC848"]),
    "levels out of order": (lambda v: rank(v)["level_list"].reverse(), ["HCC451"]),
    "an empty instance": (lambda v: rank(v)["level_list"][1].update(net_instance_id=""), ["HCC452"]),
    "an address less": (
        lambda v: rank(v)["level_list"][1]["rank_addr_list"].pop(), ["HCC454"]
    ),
    "a local_id of no peer": (lambda v: rank(v).update(local_id=40), ["HCC675", "HCC848"]),
    "the local_id of another": (
        lambda v: [rank(v).update(local_id=1), rank(v, 1).update(local_id=0)], ["HCC675"]
    ),
    "a port that links nothing": (lambda v: address(v).update(ports=["1/8"]), ["HCC849", "HCC850"]),
    "no such topology file": (lambda v: v.update(topo_file_path="/none/topo.json"), ["HCC676"]),
    "standard input as topology": (lambda v: v.update(topo_file_path="-"), ["HCC676"]),
}  # fmt: skip

#: A change of the topology file, and the rules that find it.
TOPOLOGY_DAMAGES: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "another version": (lambda v: v.update(version="1.0"), ["HCC847"]),
    "a wrong count of peers": (lambda v: v.update(peer_count=9), ["HCC847"]),
    "a wrong count of edges": (lambda v: v.update(edge_count=1), ["HCC847"]),
    "a peer twice": (lambda v: v["peer_list"][1].update(local_id=0), ["HCC847"]),
    "too many peers": (lambda v: v.update(peer_list=[{"local_id": n} for n in range(66)]), ["HCC847"]),
    "a link to no peer": (lambda v: v["edge_list"][0].update(local_b=40), ["HCC847"]),
    "no edges": (lambda v: v.pop("edge_list"), ["HCC847"]),
    "a text as port list": (lambda v: v["edge_list"][0].update(local_a_ports="0/0"), ["HCC847"]),
    "another port": (lambda v: v["edge_list"][0].update(local_a_ports=["1/8"]), ["HCC849", "HCC850"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_has_its_finding(name: str, tmp_path: Path) -> None:
    change, rules = DAMAGES[name]
    value = root_info()
    change(value)

    assert found(write_root_info(tmp_path, value)) == rules


@pytest.mark.parametrize("with_layers", [True, False])
@pytest.mark.parametrize("name", TOPOLOGY_DAMAGES)
def test_each_damage_of_the_topology_has_its_finding(name: str, with_layers: bool, tmp_path: Path) -> None:
    change, rules = TOPOLOGY_DAMAGES[name]
    value = topology(with_layers=with_layers)
    change(value)

    assert found(write_root_info(tmp_path, topo=value)) == rules


@pytest.mark.parametrize("with_layers", [True, False])
def test_a_sound_root_info(tmp_path: Path, with_layers: bool) -> None:
    file = write_root_info(tmp_path, topo=topology(with_layers=with_layers))

    result = CliRunner().invoke(cli, ["validate", str(file)])

    assert result.exit_code == 0
    assert "no findings: HCCL accepts this root info" in result.output


def test_a_topology_file_that_is_not_json(tmp_path: Path) -> None:
    path = write_root_info(tmp_path)
    (tmp_path / "topo.json").write_text("{")

    assert found(path) == ["HCC847"]


def test_the_root_info_of_older_mindcluster_tools(tmp_path: Path) -> None:
    value = root_info()
    del value["topo_file_path"], value["rank_count"]
    path = tmp_path / "any_name.json"
    path.write_text(json.dumps(value))

    report = validate(path)

    assert report.format == "rootinfo"
    assert [one.message for one in report.findings] == [
        '"topo_file_path" is missing', '"rank_count" is missing'
    ]  # fmt: skip
    assert report.verdict == "refused"


def test_a_directory_in_place_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "hccl_rootinfo.json"
    path.mkdir()

    result = CliRunner().invoke(cli, ["validate", str(path)])

    assert result.exit_code == 1
    assert "error[HCC841]: this is a directory, not a file" in result.output
    assert "docker run -v" in CliRunner().invoke(cli, ["rules", "HCC841"]).output


def test_a_rank_table_stays_a_rank_table(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(json.dumps({**table("2.0"), "topo_file_path": "/topo.json"}))

    report = validate(path)

    assert (report.format, report.findings) == ("2.0", ())


def test_a_root_info_is_no_table_for_a_job(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="cannot be used: it is a root info, not a rank table"):
        load(write_root_info(tmp_path))


@pytest.mark.parametrize(
    "command",
    [
        ["convert", "{}", "--to", "1.0"],
        ["merge", "{}"],
        ["diff", "{}", "{}"],
        ["env", "{}", "--target", "torch"],
        ["launch", "--rank-table", "{}", "--dry-run", "train.py"],
    ],
)
def test_commands_that_need_a_table_name_the_file(command: list[str], tmp_path: Path) -> None:
    path = str(write_root_info(tmp_path))

    result = CliRunner().invoke(cli, [word.format(path) for word in command])

    assert isinstance(result.exception, HcclToolsError)
    assert "it is a root info, not a rank table" in result.exception.message


@pytest.mark.slow
def test_many_devices_cost_little(tmp_path: Path) -> None:
    value = root_info()
    value["rank_list"] *= 2_000
    value["rank_count"] = len(value["rank_list"])

    report = validate(write_root_info(tmp_path, value), limit=10)

    assert {one.rule.id for one in report.findings} == {"HCC845", "HCC846"}


def test_show(tmp_path: Path) -> None:
    path = write_root_info(tmp_path)

    lines = CliRunner().invoke(cli, ["show", str(path)]).output.splitlines()
    shown = json.loads(CliRunner().invoke(cli, ["show", str(path), "-f", "json"]).output)

    assert lines[0].endswith(f"root info, version 2.0, 8 devices, topology file {tmp_path / 'topo.json'}")
    assert lines[8] == "  device_id 7  local_id 7  layer 0 (127.0.0.1): 7 addresses, layer 1 (0): 2 addresses"
    assert shown["format"] == "rootinfo"
    assert shown["devices"][7]["levels"][1]["addresses"][0]["ports"] == ["0/4", "0/5", "0/6", "0/7"]


def test_show_a_damaged_one(tmp_path: Path) -> None:
    value = root_info()
    del rank(value, 0)["local_id"]
    rank(value, 1)["device_id"] = "x" * 100_000

    out = CliRunner().invoke(cli, ["show", str(write_root_info(tmp_path, value))]).output

    assert "local_id ?" in out
    assert "None" not in out
    assert len(out) < 10_000


def test_local_compares_with_the_devices_of_this_host(tmp_path: Path) -> None:
    made = make_host(tmp_path / "host", described("a5"), nodes=range(8))
    value = root_info()
    address(value).update(addr="000000000000002000100000dfdf1001")
    rank(value, 7).update(device_id=9)
    write_root_info(made.work, value)

    done = made.run("validate", "--local", "-f", "concise", "hccl_rootinfo.json")

    assert done.returncode == 1
    assert "compared with the devices of this host" in done.stderr
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["HCC851", "HCC852", "HCC677"]
    assert "no entry for device 7 of this host" in done.stdout
    assert "there is no device 9 here: no /dev/davinci9" in done.stdout


def test_local_on_a_host_without_devices(tmp_path: Path) -> None:
    made = make_host(tmp_path / "host", described("a5"), tools=())
    write_root_info(made.work)

    done = made.run("validate", "--local", "hccl_rootinfo.json")

    assert done.returncode == 0
    assert "hccl_rootinfo.json: not compared: this host has no Ascend device" in done.stderr


def test_local_of_the_files_of_this_host(tmp_path: Path) -> None:
    made = make_host(tmp_path / "host", described("a5"), nodes=range(8))
    write_root_info(made.work)
    write_endpoint_files(made.work)

    done = made.run("validate", "--local", "hccl_rootinfo.json", "ub_endpoint_npu_5.json")

    assert done.returncode == 0, done.stdout
    assert done.stdout.count("no findings") == 2
