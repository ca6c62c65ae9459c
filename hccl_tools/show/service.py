"""The output of ``show`` for service tables (``server_group_list``), as a tree or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.formats import service
from hccl_tools.notation import screen
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped, stdout_is_ascii
from hccl_tools.show import tree
from hccl_tools.show.description import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.table.service_table import ServiceTable

_PORTS = ("predict_port", "mgmt_port", "metric_port", "inter_comm_port")


def lines(report: Report, value: dict[str, Any], *, unfold: bool) -> Iterator[str]:
    """Yield the lines of the tree, each with its line end: groups, servers, and devices of few servers.

    Args:
        value: The document; it may have faults.
        unfold: Whether to list every device of every server.
    """
    table = service.read(value)
    ascii_only = stdout_is_ascii()
    style = tree.Style(screen.width(), ascii_only, None, unfold)
    sizes = [count(len(table.instances), "instance"), count(len(table.servers), "server")]
    sizes.append(count(len(table.devices), "device"))
    head = f"{report.file}: service table of {report.reader}, {', '.join(sizes)}"
    status = value.get("status")
    if isinstance(status, str) and status != "completed":
        head += f", status {status}"
    yield escaped(head, ascii_only=ascii_only) + "\n"
    with_devices = sum(bool(server.rows) for server in table.servers)
    is_folded = with_devices > tree.UNFOLDED and not unfold
    nodes = [_group(table, index, folded=is_folded) for index in range(len(table.groups))]
    yield from (line + "\n" for line in tree.drawn(nodes, "", style))


def _group(table: ServiceTable, index: int, *, folded: bool) -> tree.Node:
    group = table.groups[index]
    parts = [f"group {group.name}", group.role]
    if group.role == "instance" and _are_apart(table):
        parts[1] = count(len(table.instances), "instance")
    elif group.role == "instance":
        parts.append(f"ranks {_numbers(table.rank_numbers, table.rows(group.servers))}")
    deploy = group.entry.get("deploy_server")
    if isinstance(deploy, str) and deploy != "0":
        parts.append(f"deploy_server {deploy}")
    pods = table.super_pods(index)
    return tree.Node("  ".join(parts), [_server(table, one, pods, folded=folded) for one in group.servers])


def _are_apart(table: ServiceTable) -> bool:
    """Whether each server of the only group of instances is an instance."""
    return len(table.instances) > 1 and table.instances[0].group == table.instances[-1].group


def _server(table: ServiceTable, index: int, pods: dict[str, str], *, folded: bool) -> tree.Node:
    server = table.servers[index]
    host = server.text("server_id")
    parts = [server.text("server_ip") or "no server_ip"]
    parts += [f"host {host}"] if host is not None else []
    if server.rows:
        parts.append(f"ranks {_numbers(table.rank_numbers, server.rows)}")
        parts.append(f"devices {_numbers(table.device_numbers, server.rows)}")
    parts += [f"super pod {pods[host]}"] if host in pods else []
    ports = [
        f"{key.removesuffix('_port')} {server.text(key)}" for key in _PORTS if server.text(key) is not None
    ]
    parts += [f"ports {', '.join(ports)}"] if ports else []
    devices = [] if folded else [tree.Node(_device(table, row), []) for row in server.rows]
    return tree.Node("  ".join(parts), devices)


def _numbers(numbers: list[int | None], rows: range) -> str:
    known = [number for number in numbers[rows.start : rows.stop] if number is not None]
    return fold(known) or "none"


def _device(table: ServiceTable, row: int) -> str:
    rank, device = table.rank_numbers[row], table.device_numbers[row]
    entry = table.devices[row]
    parts = [f"rank {'?' if rank is None else rank}", f"device {'?' if device is None else device}"]
    address = entry.get("device_ip")
    parts.append(address if isinstance(address, str) else "no address")
    for key, name in (("device_logical_id", "logical id"), ("super_device_id", "SDID")):
        parts += [f"{name} {entry[key]}"] if isinstance(entry.get(key), str) else []
    return "  ".join(parts)


def as_json(report: Report, value: dict[str, Any]) -> str:
    """Return the JSON text; keys that the file does not have are left out.

    Numbers that cannot be read are left out as well.
    """
    table = service.read(value)
    shown = {
        "schema_version": SCHEMA_VERSION, "file": report.file, "format": report.format,
        "reader": report.reader, "version": value.get("version"), "status": value.get("status"),
        "instance_count": len(table.instances), "server_count": len(table.servers),
        "device_count": len(table.devices),
        "groups": [_group_facts(table, index) for index in range(len(table.groups))],
    }  # fmt: skip
    return json.dumps(shown, indent=4) + "\n"


def _group_facts(table: ServiceTable, index: int) -> dict[str, Any]:
    group, pods = table.groups[index], table.super_pods(index)
    facts = {
        "group_id": group.entry.get("group_id"), "role": group.role,
        "deploy_server": group.entry.get("deploy_server"),
        "servers": [_server_facts(table, one, pods) for one in group.servers],
    }  # fmt: skip
    return _present(facts)


def _server_facts(table: ServiceTable, index: int, pods: dict[str, str]) -> dict[str, Any]:
    server = table.servers[index]
    host = server.text("server_id")
    facts: dict[str, Any] = {"server_id": host, "server_ip": server.text("server_ip")}
    facts |= {"super_pod_id": pods.get(host or "")}
    facts |= {key: server.text(key) for key in ("hardware_type", *_PORTS)}
    facts["devices"] = [_device_facts(table, row) for row in server.rows]
    return _present(facts)


def _device_facts(table: ServiceTable, row: int) -> dict[str, Any]:
    entry = table.devices[row]
    facts = {"rank": table.rank_numbers[row], "device_id": table.device_numbers[row]}
    texts = ("device_ip", "device_logical_id", "super_device_id")
    return _present({**facts, **{key: entry.get(key) for key in texts}})


def _present(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if value is not None}
