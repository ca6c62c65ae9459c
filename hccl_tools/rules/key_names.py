"""The keys of tables, shared by rules on misspelt ones. This module declares no rules."""

from __future__ import annotations

#: Keys that HCCL reads in 1.x and group_list tables: the keys of the schemas (a test compares them).
READ_KEYS = frozenset(
    {
        "version", "status", "server_count", "server_list", "server_id", "host_ip", "device", "device_id", "rank_id",
        "device_ip", "device_port", "host_port", "net_position", "net_protocol", "super_device_id", "super_pod_list",
        "cluster_list", "group_count", "group_list", "group_name", "device_count", "instance_count", "instance_list",
        "pod_name", "devices",
    }
)  # fmt: skip
