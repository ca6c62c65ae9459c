"""Rules on ``cluster_list``, MindSpore's extension of 1.0 tables across clusters.

HCCL ignores it. MindSpore reports a mistake only after the start of the job.

Source: MindSpore tutorials, rank_table.md, "Cross Cluster".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.rules.registry import Finding, Subject, rule
from hccl_tools.table.addresses import family

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = "MindSpore rank_table.md, Cross Cluster"
_OK = '[{"cluster_id": "c0", "network_type": "ROCE", "az_id": "az0", "server_list": [{"server_id": "10.0.0.1"}]}]'
#: The required keys of a cluster, each with a message and a hint.
_NEEDED = {
    key: (f"{key} is missing, empty or not a string", f'add "{key}"')
    for key in ("cluster_id", "az_id", "network_type")
}


def _clusters(subject: Subject) -> list[tuple[int, dict[str, Any]]]:
    entries = subject.table.fields.get("cluster_list")
    if not isinstance(entries, list):
        return []
    return [(index, entry) for index, entry in enumerate(entries) if isinstance(entry, dict)]


def _server_ids(cluster: dict[str, Any]) -> list[tuple[int, str]]:
    entries = cluster.get("server_list")
    if not isinstance(entries, list):
        return []
    ids = [(index, entry.get("server_id")) for index, entry in enumerate(entries) if isinstance(entry, dict)]
    return [(index, name) for index, name in ids if isinstance(name, str)]


def listed_servers(subject: Subject) -> list[str]:
    """Return the server_ids in the clusters of a table."""
    return [name for _, cluster in _clusters(subject) for _, name in _server_ids(cluster)]


@rule("HCC541", "cluster-structure", "fails-later", source=_SOURCE)
def cluster_structure(subject: Subject) -> Iterator[Finding]:
    """cluster_list is empty, or a cluster has no cluster_id, az_id, network_type or server_list.

    Example: /cluster_list = [{"cluster_id": "c0"}]
    Instead: /cluster_list = [{"cluster_id": "c0", "network_type": "ROCE", "az_id": "az0", "server_list": [{"server_id": "10.0.0.1"}]}]
    Hint: add "az_id"
    """
    if "cluster_list" not in subject.table.fields:
        return
    entries = subject.table.fields["cluster_list"]
    if not isinstance(entries, list) or not entries:
        yield Finding(
            "cluster_list is not a list with entries",
            ("cluster_list",),
            "list the clusters, or omit cluster_list",
        )
        return
    for index, entry in enumerate(entries):
        path = ("cluster_list", index)
        if not isinstance(entry, dict):
            yield Finding("a cluster is not an object", path, f"write it as {_OK[1:-1]}")
            continue
        for key, (message, hint) in _NEEDED.items():
            value = entry.get(key)
            if not isinstance(value, str) or not value:
                yield Finding(message, (*path, key) if key in entry else path, hint)
        if not _server_ids(entry):
            yield Finding(
                "the cluster has no servers",
                (*path, *(("server_list",) if "server_list" in entry else ())),
                'list the servers: [{"server_id": "10.0.0.1"}]',
            )


@rule("HCC542", "network-type", "fails-later", source=_SOURCE)
def network_type(subject: Subject) -> Iterator[Finding]:
    """A cluster's network_type is not "ROCE", the only supported one.

    Example: /cluster_list = [{"cluster_id": "c0", "network_type": "TCP", "az_id": "az0", "server_list": [{"server_id": "10.0.0.1"}]}]
    Instead: /cluster_list = [{"cluster_id": "c0", "network_type": "ROCE", "az_id": "az0", "server_list": [{"server_id": "10.0.0.1"}]}]
    Hint: write "ROCE"
    """
    for index, cluster in _clusters(subject):
        value = cluster.get("network_type")
        if isinstance(value, str) and value and value != "ROCE":
            yield Finding(
                f'network_type "{value}" is not supported',
                ("cluster_list", index, "network_type"),
                'write "ROCE"',
            )


@rule("HCC543", "duplicate-cluster-id", "fails-later", source=_SOURCE)
def duplicate_cluster_id(subject: Subject) -> Iterator[Finding]:
    """Two clusters have the same cluster_id.

    Base: 2x8
    Example: /cluster_list = [{"cluster_id": "c", "network_type": "ROCE", "az_id": "a", "server_list": [{"server_id": "10.0.0.1"}]}, {"cluster_id": "c", "network_type": "ROCE", "az_id": "a", "server_list": [{"server_id": "10.0.0.2"}]}]
    Instead: table
    Hint: give every cluster its own id
    """
    first: dict[str, int] = {}
    for index, cluster in _clusters(subject):
        name = cluster.get("cluster_id")
        if isinstance(name, str) and (seen := first.setdefault(name, index)) != index:
            related = (Related(("cluster_list", seen, "cluster_id"), "first used here"),)
            yield Finding(
                f'cluster_id "{name}" is used twice',
                ("cluster_list", index, "cluster_id"),
                "give every cluster its own id",
                related,
            )


@rule("HCC544", "cluster-servers", "fails-later", needs=("server_id",), source=_SOURCE)
def cluster_servers(subject: Subject) -> Iterator[Finding]:
    """A server is not in exactly one cluster, or a cluster has a server that is not in server_list.

    Base: 2x8
    Example: /cluster_list = [{"cluster_id": "c0", "network_type": "ROCE", "az_id": "az0", "server_list": [{"server_id": "10.0.0.1"}]}]
    Instead: /cluster_list = [{"cluster_id": "c0", "network_type": "ROCE", "az_id": "az0", "server_list": [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.2"}]}]
    Hint: add the server to the server_list of a cluster
    """
    clusters = _clusters(subject)
    known = {server.server_id for server in subject.table.servers}
    first: dict[str, tuple[int, int]] = {}
    for index, cluster in clusters:
        for number, name in _server_ids(cluster):
            path = ("cluster_list", index, "server_list", number, "server_id")
            if name not in known:
                yield Finding(
                    f'the cluster has server "{name}", which is not in server_list',
                    path,
                    "write the server_id as in server_list",
                )
            elif (seen := first.setdefault(name, (index, number))) != (index, number):
                related = (
                    Related(
                        ("cluster_list", seen[0], "server_list", seen[1], "server_id"), "first listed here"
                    ),
                )
                yield Finding(
                    f'server "{name}" is in two clusters', path, "list every server in one cluster", related
                )
    for index, server in enumerate(subject.table.servers):
        if clusters and server.server_id not in first:
            yield Finding(
                f'server "{server.server_id}" is not in any cluster',
                subject.server_path(index, "server_id"),
                "add the server to the server_list of a cluster",
            )


@rule("HCC545", "cluster-addresses", "fails-later", source=_SOURCE)
def cluster_addresses(subject: Subject) -> Iterator[Finding]:
    """A server_ip or dpu_ip is not an IP address.

    Example: /server_list/0/server_ip = "node-1"; /cluster_list = [{"cluster_id": "c0", "network_type": "ROCE", "az_id": "az0", "server_list": [{"server_id": "10.0.0.1"}]}]
    Instead: /server_list/0/server_ip = "10.0.0.1"; /cluster_list = [{"cluster_id": "c0", "network_type": "ROCE", "az_id": "az0", "server_list": [{"server_id": "10.0.0.1"}]}]
    Hint: write the host's address
    """
    if "cluster_list" not in subject.table.fields:
        return
    for index, server in enumerate(subject.table.servers):
        value = server.fields.get("server_ip")
        if value is not None and not (isinstance(value, str) and family(value)):
            yield Finding(
                f'server_ip "{value}" is not an IP address',
                subject.server_path(index, "server_ip"),
                "write the host's address",
            )
    for row, value in enumerate(subject.table.columns.get("dpu_ip", ())):
        if value is not None and not (isinstance(value, str) and family(value)):
            yield Finding(
                f'dpu_ip "{value}" is not an IP address',
                subject.device_path(row, "dpu_ip"),
                "write the device's address in the tenant network",
            )
