"""Write a large table, valid or wrong in every device: ``python -m benchmarks.tables 1.0 8192 FILE``."""

from __future__ import annotations

import json
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.model import Group, RankTable, Server, SuperPod

if TYPE_CHECKING:
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import Column

PER_SERVER = 8
DEVICES_FROM, SERVERS_FROM = int(IPv4Address("10.0.0.0")), int(IPv4Address("172.16.0.0"))


def large_table(table_format: Format, servers: int, *, wrong: bool = False) -> RankTable:
    """Return a table of servers with 8 devices each; ``wrong`` spoils the address of every device."""
    count = servers * PER_SERVER
    make = {"1.0": _columns_1_0, "group_list": _columns_1_0, "1.2": _columns_1_2, "2.0": _columns_2_0}
    columns = make[table_format](count)
    if wrong:
        columns["device_ip"] = [f"10.0.0.256.{row}" for row in range(count)]
    table = RankTable(table_format, _servers(table_format, servers), columns)
    if table_format == "1.2":
        table.super_pods = [SuperPod("0", [server.server_id for server in table.servers])]
    if table_format == "group_list":
        table.groups = [Group("group", range(servers), {"device_count": str(count)})]
    return table


def large_service(instances: int) -> dict[str, Any]:
    """Return a service table of MindIE-Motor with a server of 8 devices per instance."""
    groups: list[dict[str, Any]] = [
        {"group_id": str(group), "server_count": "1", "server_list": [{"server_ip": f"10.255.0.{group + 1}"}]}
        for group in range(2)
    ]
    for index in range(instances):
        first = DEVICES_FROM + index * PER_SERVER
        devices = [
            {
                "device_id": str(place), "device_ip": str(IPv4Address(first + place)),
                "device_logical_id": str(place), "rank_id": str(place),
            }
            for place in range(PER_SERVER)
        ]  # fmt: skip
        address = str(IPv4Address(SERVERS_FROM + index))
        server = {"server_id": address, "server_ip": address, "mgmt_port": "1026", "device": devices}
        groups.append(
            {
                "group_id": str(index + 2), "deploy_server": "0", "server_count": "1",
                "server_list": [server],
            }
        )  # fmt: skip
    return {"version": "1.0", "status": "completed", SERVICE: groups}


def _servers(table_format: str, servers: int) -> list[Server]:
    fields: list[dict[str, Any]] = [
        {"pod_name": f"job{index}"} if table_format == "group_list" else {"host_nic_ip": "reserve"}
        for index in range(servers)
    ]
    return [
        Server(
            str(IPv4Address(SERVERS_FROM + index)),
            range(index * PER_SERVER, (index + 1) * PER_SERVER),
            fields=own,
        )
        for index, own in enumerate(fields)
    ]


def _columns_1_0(count: int) -> dict[str, Column]:
    return {
        "device_id": [str(row % PER_SERVER) for row in range(count)],
        "device_ip": [str(IPv4Address(DEVICES_FROM + row)) for row in range(count)],
        "rank_id": [str(row) for row in range(count)],
    }


def _columns_1_2(count: int) -> dict[str, Column]:
    numbers = [str(row // PER_SERVER * 65536 + row % PER_SERVER) for row in range(count)]
    return {**_columns_1_0(count), "super_device_id": numbers}


def _columns_2_0(count: int) -> dict[str, Column]:
    local = [row % PER_SERVER for row in range(count)]
    return {
        "rank_id": list(range(count)),
        "local_id": local,
        "device_id": local,
        "level_list": _levels(count),
    }


def _levels(count: int) -> Column:
    return [
        [
            {
                "net_layer": 0,
                "net_instance_id": f"node{row // PER_SERVER}",
                "net_type": "TOPO_FILE_DESC",
                "net_attr": "",
                "rank_addr_list": [
                    {
                        "addr_type": "IPV4",
                        "addr": str(IPv4Address(DEVICES_FROM + row)),
                        "ports": ["0/4"],
                        "plane_id": "plane0",
                    }
                ],
            }
        ]
        for row in range(count)
    ]


def main() -> None:
    """Write the table that the command line names: FORMAT SERVERS FILE [wrong]."""
    table_format, servers, target, *rest = sys.argv[1:]
    if table_format == SERVICE:
        Path(target).write_text(json.dumps(large_service(int(servers)), indent=2), encoding="utf-8")
        return
    table = large_table(table_format, int(servers), wrong="wrong" in rest)  # type: ignore[arg-type]
    Path(target).write_text("".join(formats.write(table)), encoding="utf-8")


if __name__ == "__main__":
    main()
