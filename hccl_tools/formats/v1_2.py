"""Version 1.2: 1.0 with ``super_device_id`` and ``super_pod_list``, for A3 super pods.

HCCL reads ``super_pod_list`` only on an A3 in super-pod mode. Rules, not the structure checks, report
its faults; a list that cannot be read leaves ``RankTable.super_pods`` None.

Source: rank_table_config_a3.md; hcomm topoinfo_ranktableConcise.cc:835-1044.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.formats import v1_0
from hccl_tools.formats.v1_0 import device_path, server_path
from hccl_tools.formats.writing import write_document
from hccl_tools.table.model import RankTable, SuperPod

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["device_path", "read", "server_path", "write"]

_TEXTS = v1_0.TEXTS | {"super_device_id"}
_POD_KEYS = frozenset({"super_pod_id", "server_list"})


def read(value: dict[str, Any]) -> RankTable:
    """Read a 1.2 document; see ``formats.FormatModule``."""
    table = v1_0.read_servers(value, "1.2", _TEXTS)
    if "super_pod_list" in value:
        table.super_pods = _super_pods(value["super_pod_list"])
        if table.super_pods is None:
            table.declared["super_pod_list"] = value["super_pod_list"]
    return table


def _super_pods(entries: Any) -> list[SuperPod] | None:
    try:
        pods = [
            SuperPod(
                pod["super_pod_id"],
                [server["server_id"] for server in pod["server_list"]],
                {key: pod[key] for key in pod if key not in _POD_KEYS},
            )
            for pod in entries
        ]
    except (KeyError, TypeError):
        return None
    names = [pod.super_pod_id for pod in pods] + [server for pod in pods for server in pod.server_ids]
    well_formed = pods and all(pod.server_ids for pod in pods) and set(map(type, names)) == {str}
    return pods if well_formed and type(entries) is list else None


def write(table: RankTable) -> Iterator[str]:
    """Write a 1.2 document; see ``formats.FormatModule``."""
    head = {"version": table.format, "server_count": str(len(table.servers))}
    pods = table.super_pods or []
    entries = [
        {
            "super_pod_id": pod.super_pod_id,
            "server_list": [{"server_id": server_id} for server_id in pod.server_ids],
            **pod.fields,
        }
        for pod in pods
    ]
    extra = {"super_pod_list": entries} if entries else {}
    return write_document(head, "server_list", v1_0.server_texts(table), {**extra, **v1_0.tail(table)})
