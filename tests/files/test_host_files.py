"""``gen --rootinfo-out`` and ``--endpoints``: round trips, what no source states, and all files or none."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.document.writing import write_together
from hccl_tools.errors import WriteError
from hccl_tools.formats.endpoint_file import files_in
from hccl_tools.host import eid, simulated
from hccl_tools.table.products import PRODUCTS
from hccl_tools.validation.checker import validate
from tests.support.host_files import endpoint_file, port_to, root_info, topology, write_root_info
from tests.support.hosts import StandInHost, described, make_host

if TYPE_CHECKING:
    from pathlib import Path

DEVICES = range(8)


def host(folder: Path, **differs: Any) -> StandInHost:
    """Return a stand-in host of eight devices with the topology file of a full mesh."""
    made = make_host(folder / "host", {**described("a5"), **differs}, nodes=DEVICES)
    (made.work / "topo.json").write_text(json.dumps(topology()))
    return made


def pod(folder: Path) -> StandInHost:
    """Return the second host of a chassis: device 0 is local_id 8."""
    devices: dict[str, Any] = {}
    for device_id, told in described("a5")["devices"].items():
        eids = [eid.read(text) for text in told["eids"]]
        moved = [
            eid.make(one.layer or 0, one.local_id + 8, one.die, one.port, chassis=1, super_pod=2)
            for one in eids if one is not None
        ]  # fmt: skip
        devices[device_id] = {**told, "eids": moved}
    made = host(folder, devices=devices)
    (made.work / "topo.json").write_text(json.dumps(topology(0, 64)))
    return made


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def rules(path: Path) -> set[str]:
    return {one.rule.id for one in validate(path).findings}


@pytest.mark.parametrize("with_layers", [True, False])
def test_a_single_host_from_its_tools(tmp_path: Path, with_layers: bool) -> None:
    made = host(tmp_path)
    (made.work / "topo.json").write_text(json.dumps(topology(with_layers=with_layers)))
    (made.work / "ep").mkdir()

    done = made.gen("--rootinfo-out", "root.json", "--endpoints", "ep", "--topology", "topo.json")

    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert made.tables() == ["ep", "root.json", "topo.json"]
    assert read(made.work / "root.json") == {
        **json.loads(json.dumps(root_info()).replace("127.0.0.1", "10.0.0.5")),
        "topo_file_path": str(made.work / "topo.json"),
    }
    for number in DEVICES:
        path = made.work / "ep" / f"ub_endpoint_npu_{number}.json"
        assert read(path)["net_instance_id"] == "0"
        assert {one["comm_id"]: one for one in read(path)["endpoint_list"]} == {
            one["comm_id"]: one for one in endpoint_file(number)["endpoint_list"]
        }
        assert rules(path) == set()
    assert rules(made.work / "root.json") == set()
    assert (made.work / "root.json").read_text().startswith('{\n    "version": "2.0",\n')


def test_a_host_of_a_pod(tmp_path: Path) -> None:
    made = pod(tmp_path)
    (made.work / "ep").mkdir()

    done = made.gen("--rootinfo-out", "root.json", "--endpoints", "ep", "--topology", "topo.json")

    assert done.returncode == 0, done.stderr
    ranks = read(made.work / "root.json")["rank_list"]
    assert [(rank["device_id"], rank["local_id"]) for rank in ranks] == [(n, n + 8) for n in DEVICES]
    assert {rank["level_list"][0]["net_instance_id"] for rank in ranks} == {"2_1"}
    files = [made.work / file for file in files_in(str(made.work / "ep"))]
    assert [path.name for path in files] == [f"ub_endpoint_npu_{n}.json" for n in DEVICES]
    assert {read(path)["net_instance_id"] for path in files} == {"2"}
    assert [rules(path) for path in [*files, made.work / "root.json"]] == [set()] * 9


@pytest.mark.parametrize(
    ("others", "note"),
    [(0, ""), (1, "note: 1 IP address left out: "), (2, "note: 2 IP addresses left out: ")],
)
def test_endpoint_files_from_a_root_info(tmp_path: Path, others: int, note: str) -> None:
    made = host(tmp_path)
    etc = made.root / "etc"
    etc.mkdir(exist_ok=True)
    value = {**root_info(), "topo_file_path": "/etc/topo.json"}
    for rank in value["rank_list"][:others]:
        addresses = rank["level_list"][1]["rank_addr_list"]
        addresses.append({**addresses[0], "addr_type": "IPV4", "addr": f"10.9.0.{rank['local_id'] + 1}"})
    write_root_info(etc, value)
    (made.work / "ep").mkdir()

    done = made.gen("--endpoints", "ep")

    assert done.returncode == 0, done.stderr
    assert note in done.stderr
    assert ("left out" in done.stderr) == bool(note)
    assert read(made.work / "ep" / "ub_endpoint_npu_3.json")["net_instance_id"] == "0"
    assert all(rules(made.work / file) == set() for file in files_in(str(made.work / "ep")))


def test_the_root_info_is_read_back_as_it_was_found(tmp_path: Path) -> None:
    made = host(tmp_path)
    made.gen("--rootinfo-out", "root.json", "--topology", "topo.json")

    first = made.gen("-o", "first.json")
    second = made.gen("-o", "second.json", "--rootinfo", "root.json")

    assert (first.returncode, second.returncode) == (0, 0)
    assert read(made.work / "first.json") == read(made.work / "second.json")


def test_a_simulated_machine(tmp_path: Path) -> None:
    made = host(tmp_path)

    done = made.run("gen", "--simulate", "a5", "--rootinfo-out", "root.json", "--topology", "topo.json")

    assert done.returncode == 0, done.stderr
    levels = [list(one.levels) for one in simulated.devices(PRODUCTS["a5"])]
    assert [one["level_list"] for one in read(made.work / "root.json")["rank_list"]] == levels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--rootinfo-out", "r.json"], 1, "no source states the topology file"),
        (["--endpoints", "."], 1, "no source states the topology file"),
        (["--endpoints", ".", "--topology", "none.json"], 2, "no such file: "),
        (
            ["--endpoints", "none", "--topology", "topo.json"],
            1,
            "its folder does not exist; no file is changed",
        ),
        (["--endpoints", ".", "--topology", "topo.json", "--devices", "0-3"], 1, "not among the devices"),
        (["--endpoints", ".", "-o", "t.json"], 2, "--endpoints and --output exclude each other"),
        (["--endpoints", ".", "--hosts", "a,b"], 2, "--endpoints and --hosts exclude each other"),
        (["--rootinfo-out", "-", "--topology", "topo.json"], 2, "--rootinfo-out - is not a path"),
        (["--topology", "topo.json"], 2, "--topology is for --rootinfo-out and --endpoints"),
        (["--endpoints", ".", "--product", "910a"], 2, "root infos and endpoint files are for Ascend 950"),
    ],
)
def test_what_is_refused(tmp_path: Path, args: list[str], code: int, message: str) -> None:
    made = host(tmp_path)
    made.conf("".join(f"address_{n}=192.168.1.{n + 1}\n" for n in DEVICES))

    done = made.gen(*args)

    assert message in done.stderr
    assert done.returncode == code
    assert made.tables() == ["topo.json"]


def test_no_root_info_is_made_from_a_root_info(tmp_path: Path) -> None:
    made = host(tmp_path)
    etc = made.root / "etc"
    etc.mkdir(exist_ok=True)
    write_root_info(etc)

    done = made.gen("--rootinfo-out", "r.json", "--topology", "topo.json")

    assert done.returncode == 1
    assert (
        f"a root info is not made from a root info: the levels are from {etc}/hccl_rootinfo.json"
        in done.stderr
    )
    assert made.tables() == ["topo.json"]


def damaged(change: str) -> Any:
    value = topology()
    first = value["edge_list"][0]
    if change == "no link":
        first["local_a_ports"] = ["1/8"]
    elif change == "no protocol":
        first["protocols"] = ["UB_MEM"]
    elif change == "no other end":
        first["local_b_ports"] = []
    elif change == "a peer without EID":
        first["local_b_ports"] = ["1/8"]
    elif change == "a peer elsewhere":
        value["peer_list"].append({"local_id": 40})
        value["peer_count"] += 1
        first["local_b"] = 40
    return value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("no link", f"has no link of layer 0 with UB_CTP or UB_TP for port {port_to(0, 1)} of local_id 0"),
        (
            "no protocol",
            f"has no link of layer 0 with UB_CTP or UB_TP for port {port_to(0, 1)} of local_id 0",
        ),
        ("no other end", "does not state to which port 0/0 of local_id 0 leads"),
        ("a peer without EID", "leads to port 1/8 of device 1, for which no source has an EID"),
        ("a peer elsewhere", "leads to port 0/0 of local_id 40, which is not among the devices"),
    ],
)
def test_a_peer_that_no_source_states(tmp_path: Path, change: str, message: str) -> None:
    made = host(tmp_path)
    (made.work / "topo.json").write_text(json.dumps(damaged(change)))

    done = made.gen("--endpoints", ".", "--topology", "topo.json")

    assert message in done.stderr
    assert done.returncode == 1
    assert made.tables() == ["topo.json"]


def test_existing_files_are_replaced_only_with_force(tmp_path: Path) -> None:
    made = host(tmp_path)
    made.gen("--endpoints", ".", "--topology", "topo.json")
    again = made.gen("--endpoints", ".", "--topology", "topo.json")
    (made.work / "ub_endpoint_npu_3.json").write_text("{}")
    (made.work / "ub_endpoint_npu_9.json").write_text("{}")

    refused = made.gen("--endpoints", ".", "--topology", "topo.json")
    kept = (made.work / "ub_endpoint_npu_3.json").read_text()
    forced = made.gen("--endpoints", ".", "--topology", "topo.json", "--force")

    assert "8 files already up to date" in again.stderr
    assert (refused.returncode, kept) == (1, "{}")
    assert "ub_endpoint_npu_3.json exists with other contents" in refused.stderr
    assert "ub_endpoint_npu_9.json is for a device that is not in this call" in refused.stderr
    assert forced.returncode == 0
    assert read(made.work / "ub_endpoint_npu_3.json")["version"] == "1.3"


def test_all_files_or_none(tmp_path: Path) -> None:
    made = host(tmp_path)
    (made.work / "ub_endpoint_npu_0.json").write_text("old")
    (made.work / "ub_endpoint_npu_7.json").mkdir()

    done = made.gen("--endpoints", ".", "--topology", "topo.json", "--force")

    assert done.returncode == 1
    assert "ub_endpoint_npu_7.json cannot be written: it is a directory" in done.stderr
    assert made.tables() == ["topo.json", "ub_endpoint_npu_0.json", "ub_endpoint_npu_7.json"]
    assert (made.work / "ub_endpoint_npu_0.json").read_text() == "old"


def test_replaced_files_are_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / name for name in ("a.json", "b.json", "c.json")]
    paths[0].write_text("old")
    replace = __import__("os").replace

    def fails(source: str, target: str, **folders: int) -> None:
        if target == paths[2].name:
            raise OSError(28, "no space left")
        replace(source, target, **folders)

    monkeypatch.setattr("os.replace", fails)

    with pytest.raises(WriteError, match=r"c\.json cannot be written: the disk is full; no file is changed"):
        write_together({str(path): "new" for path in paths})

    assert paths[0].read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_new_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def late(source: str, target: str, **folders: Any) -> None:
        if target == "b.json":
            (tmp_path / target).write_text("another program's")
        link(source, target, **folders)

    monkeypatch.setattr(os, "link", late)

    with pytest.raises(WriteError, match=r"b\.json cannot be written: .* meanwhile; no file is changed"):
        write_together({str(tmp_path / name): "new" for name in ("a.json", "b.json")}, create=True)

    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]
    assert (tmp_path / "b.json").read_text() == "another program's"
