"""Ascend 950: levels from the root info, from ``hccn_tool -g -dev_info``, and the two compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import DiscoveryError, InputError
from hccl_tools.host import dev_info, eid, levels, simulated
from hccl_tools.host.site_defaults import Site
from hccl_tools.table.products import PRODUCTS
from tests.support.hosts import StandInHost, described, make_host

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.host.facts import DeviceFacts

#: As the manual prints it for a card of one NPU.
MANUAL = """\
+---------+---------+---------------------+-----------+-------------+------------+
| UDie ID | Port ID | Speed Ability(Gbps) | Port Type | Link Status | Media Type |
+---------+---------+---------------------+-----------+-------------+------------+
| 0       | 4       | 400                 | UB        | UP          | Electrical |
| 0       | 5       | 400                 | UB        | UP          | Electrical |
| 0       | 6       | 400                 | UB        | UP          | Electrical |
+---------+---------+---------------------+-----------+-------------+------------+
+-----------------+--------------------------------------------+--------------------------------------------+-----------+-----------------+
| Interface Name  | IP Address                                 | Netmask                                    | Bond Mode | Slaves          |
+-----------------+--------------------------------------------+--------------------------------------------+-----------+-----------------+
| end0v0          | 192.168.2.199                              | 255.255.255.0                              | NA        | NA              |
+-----------------+--------------------------------------------+--------------------------------------------+-----------+-----------------+
| ipourma0        | ::10:0:dfdf:51                             | ffff:ffff:ffff:ffff::                      | NA        | NA              |
|                 | ::10:0:dfdf:30                             | ffff:ffff:ffff:ffff::                      |           |                 |
+-----------------+--------------------------------------------+--------------------------------------------+-----------+-----------------+
+-----------------+-----------+-----------------------------------------+
| Name            | EID Index | EID                                     |
+-----------------+-----------+-----------------------------------------+
| udma1           | 0         | 0000:0000:0000:0000:0010:0000:dfdf:0020 |
|                 | 1         | 0000:0000:0000:0000:0010:0000:dfdf:0028 |
+-----------------+-----------+-----------------------------------------+
"""  # noqa: E501


def host(folder: Path, **differs: Any) -> StandInHost:
    return make_host(folder / "host", {**described("a5"), **differs}, nodes=range(8))


def site(host: StandInHost, **more: Any) -> Site:
    return Site(environ=host.environ(), **more)


def found(host: StandInHost, *device_ids: int, **more: Any) -> list[DeviceFacts]:
    return levels.find_levels(
        device_ids or range(8), site(host), nodes=range(8), server_id="127.0.0.1", **more
    )[0]  # fmt: skip


def root_info(host: StandInHost, change: str = "") -> None:
    """Write the root info that fits the simulated machine, with another name for layer 0."""
    ranks = []
    for device in simulated.devices(PRODUCTS["a5"]):
        own = json.loads(json.dumps(device.levels))
        own[0]["net_instance_id"] = "rack7"
        if change and device.device_id == 3:
            own[0]["rank_addr_list"][0]["addr"] = change
        ranks.append({"device_id": device.device_id, "local_id": device.device_id + 8, "level_list": own})
    path = host.root / "etc" / "hccl_rootinfo.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"version": "2.0", "topo_file_path": "/topo.json", "rank_list": ranks}))


def test_the_manual_s_three_tables() -> None:
    info = dev_info.parse(MANUAL)

    assert [(port.die, port.number) for port in info.ports] == [(0, 4), (0, 5), (0, 6)]
    assert {(port.kind, port.link) for port in info.ports} == {("UB", "UP")}
    assert info.ips == ("192.168.2.199", "::10:0:dfdf:51", "::10:0:dfdf:30")
    assert info.eids == ("0000000000000000001000" + "00dfdf0020", "0000000000000000001000" + "00dfdf0028")


def test_the_simulated_machine_is_what_its_tools_show(tmp_path: Path) -> None:
    made = host(tmp_path)

    shown = found(made)

    assert [(one.device_id, one.local_id, one.levels) for one in shown] == [
        (one.device_id, one.local_id, one.levels) for one in simulated.devices(PRODUCTS["a5"])
    ]
    assert made.calls() == [f"hccn_tool -g -dev_info -i {device}" for device in range(8)]


def test_levels_and_planes() -> None:
    inner, outer = simulated.devices(PRODUCTS["a5"])[2].levels

    assert (inner["net_layer"], inner["net_type"]) == (0, "TOPO_FILE_DESC")
    assert inner["net_instance_id"] == "127.0.0.1"
    assert [one["ports"] for one in inner["rank_addr_list"]] == [
        ["0/0"], ["0/1"], ["0/2"], ["0/3"], ["1/0"], ["1/1"], ["1/2"],
    ]  # fmt: skip
    assert (outer["net_layer"], outer["net_type"], outer["net_instance_id"]) == (1, "CLOS", "0")
    assert [(one["plane_id"], one["ports"]) for one in outer["rank_addr_list"]] == [
        ("0", ["0/4", "0/5", "0/6", "0/7"]), ("1", ["1/4", "1/5", "1/6", "1/7"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "layer", "die", "port"),
    [  # of public 2.0 tables, with the ports that those give
        ("000000000000002000100000df000401", 0, 0, 0),
        ("000000000000000000000000df000002", 1, 0, 1),
        ("000000000000000000000000df00000b", 1, 1, 1),
        ("000000000000000000000000df00000f", 1, 1, 5),
    ],
)
def test_eids_of_public_tables(text: str, layer: int, die: int, port: int) -> None:
    read = eid.read(text)

    assert read is not None
    assert (read.layer, read.die, read.port) == (layer, die, port)


def test_eids_come_back_as_made() -> None:
    for local_id in (0, 7, 8, 63):
        for layer in (0, 1):
            for die in (0, 1):
                for port in (0, 8, None):
                    text = eid.make(layer, local_id, die, port, chassis=3, super_pod=9)
                    assert eid.read(text) == eid.Eid(text, layer, local_id, die, port, 3, 9)


def test_the_tool_counts_within_the_container(tmp_path: Path) -> None:
    devices = described("a5")["devices"]
    inside = {str(n): devices[str(n + 4)] for n in range(4)}
    made = make_host(tmp_path / "host", {**described("a5"), "devices": inside}, nodes=range(4, 8))

    shown, _ = levels.find_levels((6, 4), site(made), nodes=(4, 5, 6, 7), server_id="h")

    assert [(one.device_id, one.local_id) for one in shown] == [(6, 6), (4, 4)]
    assert made.calls() == ["hccn_tool -g -dev_info -i 2", "hccn_tool -g -dev_info -i 0"]


def test_the_root_info_first(tmp_path: Path) -> None:
    made = host(tmp_path)
    root_info(made)

    shown = found(made)

    assert [one.local_id for one in shown] == list(range(8, 16))
    assert shown[0].levels[0]["net_instance_id"] == "rack7"
    assert shown[0].source.endswith("/etc/hccl_rootinfo.json")


def test_addresses_without_ports_are_left_out_and_said(tmp_path: Path) -> None:
    """Root infos list the RoCE addresses of a host so, and HCCL refuses them in a table."""
    made = make_host(tmp_path / "host", described("a5"), tools=())
    root_info(made)
    path = made.root / "etc" / "hccl_rootinfo.json"
    value = json.loads(path.read_text())
    roce = {"addr_type": "IPV4", "addr": "10.1.1.1", "ports": [], "plane_id": "CLUSTER"}
    level = {"net_layer": 3, "net_instance_id": "CLUSTER", "net_type": "CLOS", "net_attr": ""}
    value["rank_list"][0]["level_list"].append({**level, "rank_addr_list": [roce]})
    path.write_text(json.dumps(value))

    (device,), (warning,) = levels.find_levels([0], site(made), nodes=range(8), server_id="h")

    assert [one["net_layer"] for one in device.levels] == [0, 1]
    assert "1 address is omitted from layer 3" in warning


def test_the_root_info_alone(tmp_path: Path) -> None:
    made = make_host(tmp_path / "host", described("a5"), tools=())
    root_info(made)

    assert len(found(made)) == 8


def test_sources_that_disagree(tmp_path: Path) -> None:
    made = host(tmp_path)
    root_info(made, change=eid.make(0, 3, 0, 8))

    with pytest.raises(DiscoveryError, match="the sources disagree about device 3") as caught:
        found(made)
    assert "--prefer hccn_tool" in (caught.value.hint or "")
    assert found(made, prefer="hccn_tool")[3].source == "hccn_tool -dev_info"
    assert found(made, prefer="rootinfo")[3].local_id == 11


def test_an_eid_that_does_not_fit_the_ports_is_no_guess(tmp_path: Path) -> None:
    """The manual's own card: its EIDs follow another layout."""
    made = host(tmp_path, answers={"hccn_tool -g -dev_info -i 0": {"stdout": MANUAL}})

    with pytest.raises(DiscoveryError, match="belong to several NPUs") as caught:
        found(made, 0)
    assert "--rootinfo PATH" in (caught.value.hint or "")
    one = MANUAL.replace("|                 | 1         | 0000:0000:0000:0000:0010:0000:dfdf:0028 |\n", "")
    made.describe({**described("a5"), "answers": {"hccn_tool -g -dev_info -i 0": {"stdout": one}}})
    with pytest.raises(DiscoveryError, match="is for port 1/4, which hccn_tool does not list"):
        found(made, 0)
    odd = one.replace("dfdf:0020", "abcd:0020")
    made.describe({**described("a5"), "answers": {"hccn_tool -g -dev_info -i 0": {"stdout": odd}}})
    with pytest.raises(DiscoveryError, match="does not contain a port"):
        found(made, 0)


@pytest.mark.parametrize(
    ("differs", "said"),
    [
        ({"denied": True}, "permission denied"),
        ({"answers": {"hccn_tool -g -dev_info -i 0": {"stdout": ""}}}, "nothing"),
        ({"busy": 1000}, "stays busy"),
        ({"product": "910a"}, "Command execute failed"),
    ],
)
def test_no_answer_says_why(tmp_path: Path, differs: dict[str, Any], said: str) -> None:
    made = host(tmp_path, **differs)

    with pytest.raises(DiscoveryError, match="no addresses for device 0") as caught:
        levels.find_levels([0], site(made, tool_timeout=2), nodes=range(8), server_id="h")
    assert said in caught.value.message
    assert "hccl_rootinfo.json does not exist" in caught.value.message


def test_a_busy_tool_is_asked_again(tmp_path: Path) -> None:
    assert len(found(host(tmp_path, busy=2), 0)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"rank_list": [1]}', '{"rank_list": [{"device_id": 0}]}',
        '{"rank_list": [{"device_id": 0, "level_list": [{"net_layer": 0, "rank_addr_list": [{}]}]}]}',
        '{"rank_list": [{"device_id": 0, "level_list": [{"net_layer": "0", "rank_addr_list": []}]}]}',
        '{"rank_list": [{"device_id": 1e999, "level_list": [{"net_layer": 0, "rank_addr_list": []}]}]}',
        '{"rank_list": [{"device_id": 0, "local_id": 1e999, "level_list": [{"rank_addr_list": []}]}]}',
    ],
)  # fmt: skip
def test_a_named_root_info_must_be_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "root.json"
    path.write_text(text)

    with pytest.raises(InputError, match="--rootinfo"):
        levels.load_root_info(Site(environ={}, rootinfo=str(path)))
    with pytest.raises(InputError, match="does not exist"):
        levels.load_root_info(Site(environ={}, rootinfo=str(tmp_path / "none")))
