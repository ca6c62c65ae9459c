"""Small valid files of an Ascend 950 host of eight devices: topology file, root info, endpoint files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.formats.file_kinds import ROOT_INFO_NAME
from hccl_tools.host import simulated
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

JSON = dict[str, Any]
DEVICES = 8
#: The place of the topology file in a root info before it is written to a folder.
TOPOLOGY_PLACE = "/topo.json"
_INNER = ("0/0", "0/1", "0/2", "0/3", "1/0", "1/1", "1/2")
_OUTER = {die: [f"{die}/{port}" for port in (4, 5, 6, 7)] for die in (0, 1)}


def port_to(here: int, there: int) -> str:
    """Return the port of a device that leads to another device of the full mesh."""
    return _INNER[there - 1 if there > here else there]


def topology(first: int = 0, count: int = DEVICES, *, with_layers: bool = True) -> JSON:
    """Return the topology file of a full mesh of eight devices per host, with two planes above it.

    Newer drivers write no layers.
    """
    edges = []
    for board in range(first, first + count, DEVICES):
        for a in range(DEVICES):
            edges += [
                _edge(0, board + a, [port_to(a, b)], board + b, [port_to(b, a)])
                for b in range(a + 1, DEVICES)
            ]
            edges += [_edge(1, board + a, ports, None, None) for ports in _OUTER.values()]
    for edge in edges if not with_layers else ():
        del edge["net_layer"]
    return {
        "version": "2.0", "hardware_type": "Atlas 950", "peer_count": count,
        "peer_list": [{"local_id": one} for one in range(first, first + count)],
        "edge_count": len(edges), "edge_list": edges,
    }  # fmt: skip


def _edge(layer: int, a: int, a_ports: list[str], b: int | None, b_ports: list[str] | None) -> JSON:
    return {
        "net_layer": layer, "link_type": "PEER2PEER" if layer == 0 else "PEER2NET",
        "topo_type": "1DMESH" if layer == 0 else "CLOS", "topo_instance_id": 0, "topo_attr": "",
        "local_a": a, "local_a_ports": a_ports, "local_b": b, "local_b_ports": b_ports,
        "protocols": ["UB_CTP", "UB_MEM"], "position": "DEVICE",
    }  # fmt: skip


def root_info() -> JSON:
    """Return the root info of the simulated machine; its topology file is at ``TOPOLOGY_PLACE``."""
    ranks = [
        {
            "device_id": one.device_id,
            "local_id": one.local_id,
            "level_list": json.loads(json.dumps(one.levels)),
        }
        for one in simulated.devices(PRODUCTS["a5"])
    ]
    return {"version": "2.0", "topo_file_path": TOPOLOGY_PLACE, "rank_count": len(ranks), "rank_list": ranks}


def endpoint_file(device: int = 0) -> JSON:
    """Return the endpoint file of a device of the simulated machine."""
    ranks = root_info()["rank_list"]
    eids = [{port: one["addr"] for one in _addresses(rank, 0) for port in one["ports"]} for rank in ranks]
    direct = [
        {
            "protocol": "ub_ctp", "comm_id": eids[device][port_to(device, peer)], "placement": "device",
            "dst_eid": eids[peer][port_to(peer, device)],
        }
        for peer in range(DEVICES) if peer != device
    ]  # fmt: skip
    switched = [
        {"protocol": "ub_ctp", "comm_id": one["addr"], "placement": "device", "plane": one["plane_id"]}
        for one in _addresses(ranks[device], 1)
    ]
    return {"version": "1.3", "net_instance_id": "0", "endpoint_list": [*direct, *switched]}


def _addresses(rank: JSON, layer: int) -> list[JSON]:
    found: list[JSON] = rank["level_list"][layer]["rank_addr_list"]
    return found


def write_endpoint_files(folder: Path, devices: Iterable[int] = range(DEVICES)) -> list[Path]:
    """Write the endpoint files of devices and return their paths."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"ub_endpoint_npu_{device}.json" for device in devices]
    for device, path in zip(devices, paths, strict=True):
        path.write_text(json.dumps(endpoint_file(device), indent=2))
    return paths


def write_root_info(folder: Path, value: JSON | None = None, topo: JSON | None = None) -> Path:
    """Write a root info and its topology file and return the path of the root info."""
    (folder / "topo.json").write_text(json.dumps(topology() if topo is None else topo))
    value = root_info() if value is None else value
    if value.get("topo_file_path") == TOPOLOGY_PLACE:
        value["topo_file_path"] = str(folder / "topo.json")
    path = folder / ROOT_INFO_NAME
    path.write_text(json.dumps(value, indent=2))
    return path
