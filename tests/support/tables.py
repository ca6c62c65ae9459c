"""Small valid tables of every format, for tests that change one thing."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


def table(table_format: str = "1.0", servers: int = 1, devices: int = 2, pods: int = 1) -> JSON:
    """Return a parsed table that no rule finds fault with for its format's own product."""
    make = {"1.0": _v1, "1.2": _v1_2, "2.0": _v2, "group_list": _group_list, "lab": _lab}[table_format]
    return make(servers, devices, pods)


def _device(server: int, device: int, rank: int) -> JSON:
    return {"device_id": str(device), "device_ip": f"192.168.{server}.{100 + device}", "rank_id": str(rank)}


def _v1(servers: int, devices: int, _pods: int) -> JSON:
    entries = [
        {
            "server_id": f"10.0.0.{server + 1}",
            "device": [_device(server, device, server * devices + device) for device in range(devices)],
            "host_nic_ip": "reserve",
        }
        for server in range(servers)
    ]
    return {"version": "1.0", "server_count": str(servers), "server_list": entries, "status": "completed"}


def _v1_2(servers: int, devices: int, pods: int) -> JSON:
    value = {**_v1(servers, devices, pods), "version": "1.2"}
    for server, entry in enumerate(value["server_list"]):
        for device in entry["device"]:
            device["super_device_id"] = str(server * 65536 + int(device["device_id"]))
    per_pod = servers // pods
    value["super_pod_list"] = [
        {
            "super_pod_id": str(pod),
            "server_list": [
                {"server_id": f"10.0.0.{server + 1}"} for server in range(pod * per_pod, (pod + 1) * per_pod)
            ],
        }
        for pod in range(pods)
    ]
    return value


def _group_list(servers: int, devices: int, _pods: int) -> JSON:
    instances = [
        {
            "pod_name": f"job{server}",
            "server_id": f"10.0.0.{server + 1}",
            "devices": [
                {"device_id": str(device), "device_ip": f"192.168.{server}.{100 + device}"}
                for device in range(devices)
            ],
        }
        for server in range(servers)
    ]
    group = {
        "group_name": "g0",
        "device_count": str(servers * devices),
        "instance_count": str(servers),
        "instance_list": instances,
    }
    return {"status": "completed", "group_count": "1", "group_list": [group]}


def _lab(servers: int, devices: int, _pods: int) -> JSON:
    count = servers * devices
    instances = [
        {
            "rank_id": str(rank),
            "server_id": f"10.0.0.{rank // devices + 1}",
            "devices": [_lab_device(rank, devices)],
        }
        for rank in range(count)
    ]
    group = {
        "group_name": "g0", "instance_count": str(count), "device_num": str(count),
        "server_num": str(servers), "instance_list": instances,
    }  # fmt: skip
    return {
        "status": "completed", "deploy_mode": "lab", "para_plane_nic_location": "device", "group_count": "1",
        "group_list": [group],
    }  # fmt: skip


def _lab_device(rank: int, devices: int) -> JSON:
    return {"device_id": str(rank % devices), "device_ip": f"192.168.0.{100 + rank}"}


def _v2(servers: int, devices: int, _pods: int) -> JSON:
    ranks = [
        {
            "rank_id": rank, "local_id": rank % devices, "device_id": rank % devices,
            "level_list": [_level(rank // devices, rank)],
        }
        for rank in range(servers * devices)
    ]  # fmt: skip
    return {"version": "2.0", "status": "completed", "rank_count": len(ranks), "rank_list": ranks}


def _level(node: int, rank: int) -> JSON:
    address = {"addr_type": "IPV4", "addr": f"10.0.{node}.{rank + 1}", "ports": ["0/4"], "plane_id": "plane0"}
    return {
        "net_layer": 0, "net_instance_id": f"node{node}", "net_type": "TOPO_FILE_DESC", "net_attr": "",
        "rank_addr_list": [address],
    }  # fmt: skip
