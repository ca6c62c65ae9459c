"""Small valid tables of every format, for tests that change one thing."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


def table(table_format: str = "1.0", servers: int = 1, devices: int = 2, pods: int = 1) -> JSON:
    """Return a parsed table that no rule finds fault with for its format's own product."""
    make = {
        "1.0": _v1, "1.2": _v1_2, "2.0": _v2, "group_list": _group_list, "lab": _lab,
        "server_group_list": _service,
    }[table_format]  # fmt: skip
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


def _service(servers: int, devices: int, _pods: int) -> JSON:
    """Return a service table of MindIE-Motor: two instances with so many servers; version 1.2 with pods."""
    roles = [
        {"group_id": str(group), "server_count": "1", "server_list": [{"server_ip": f"10.1.0.{group + 8}"}]}
        for group in range(2)
    ]
    instances = [_instance(group, servers, devices) for group in range(2)]
    return {"version": "1.0", "status": "completed", "server_group_list": [*roles, *instances]}


def _instance(number: int, servers: int, devices: int) -> JSON:
    entries = []
    for place in range(servers):
        host = number * servers + place + 1
        own = [
            {
                "device_id": str(device), "device_ip": f"10.20.{host - 1}.{device + 1}",
                "device_logical_id": str(device), "rank_id": str(place * devices + device),
            }
            for device in range(devices)
        ]  # fmt: skip
        entries.append(
            {
                "server_id": f"10.0.0.{host}", "server_ip": f"192.168.3.{host}", "predict_port": "1025",
                "mgmt_port": "1026", "metric_port": "1027", "inter_comm_port": "1121", "device": own,
            }
        )  # fmt: skip
    return {
        "group_id": str(number + 2), "deploy_server": "0", "server_count": str(servers),
        "server_list": entries,
    }  # fmt: skip


def super_pod_service(servers: int = 1, devices: int = 2) -> JSON:
    """Return a service table of version 1.2: each instance in a super pod of its own."""
    value = {**_service(servers, devices, 1), "version": "1.2"}
    for number, group in enumerate(value["server_group_list"][2:]):
        for place, server in enumerate(group["server_list"]):
            for device in server["device"]:
                device["super_device_id"] = str(place * 65536 + int(device["device_id"]))
        names = [{"server_id": server["server_id"]} for server in group["server_list"]]
        group["super_pod_list"] = [{"super_pod_id": str(number), "server_list": names}]
    return value


def omni_service(servers: int = 1, devices: int = 2) -> JSON:
    """Return a merged service table of omni-infer: groups from 0, server_count as a number."""
    value = _service(servers, devices, 1)
    value["server_group_list"] = value["server_group_list"][2:]
    for number, group in enumerate(value["server_group_list"]):
        group.update(group_id=str(number), server_count=servers)
        del group["deploy_server"]
        for server in group["server_list"]:
            for key in ("predict_port", "mgmt_port", "metric_port", "inter_comm_port"):
                del server[key]
            for device in server["device"]:
                del device["device_logical_id"]
    return value
