"""The pods of ``launch --emit vcjob|acjob``: the nodes that they are for, their number, and their devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError, LaunchError, UsageError
from hccl_tools.formats.kubernetes import writing
from hccl_tools.launch.planning import table_file, table_source
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple
from hccl_tools.table.product_names import machine, read_name
from hccl_tools.table.products import PRODUCTS, NodeLabels, Product

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.launch.model.request import LaunchRequest

#: The products whose names in Kubernetes are known.
SUPPORTED = tuple(name for name, one in PRODUCTS.items() if one.nodes)


class Place(NamedTuple):
    """Where the pods run.

    Attributes:
        product: The product of the devices, as the pods must understand the table of the cluster manager.
        node: The node in Kubernetes.
        note: What the user should know about this choice, if anything.
    """

    product: Product
    node: NodeLabels
    note: str | None = None


class Size(NamedTuple):
    """The number of pods, each on a node of its own, and of the devices of each."""

    pods: int
    devices: int


def place(name: str) -> Place:
    """Return the nodes for the name of a product, chip or machine.

    Raises:
        LaunchError: The label of the nodes is not known.
        UsageError: No product has the name.
    """
    product = read_name(name).product
    if not product.nodes:
        raise LaunchError(
            f"--emit does not know the names of {product.title} in Kubernetes",
            hint=f"it knows those of {', '.join(SUPPORTED)}",
        )
    named = machine(name)
    if named is None:
        return Place(product, product.nodes[0])
    for other in PRODUCTS.values():
        for node in other.nodes:
            if named in node.machines:
                note = f'nodes "{name}" have the label {node.server}: the pods use --product {other.name}'
                return Place(other, node, note if other is not product else None)
    like = ", ".join(f"--product {words} if it is {node.server}" for words, node in _nodes_like(product))
    raise LaunchError(
        f'--emit does not know the label accelerator-type of the node "{name}"',
        hint=f"look at `kubectl get nodes -L accelerator-type`, and use {like}",
    )


def _nodes_like(product: Product) -> Iterator[tuple[str, NodeLabels]]:
    """Yield the nodes with devices of the same type, each with the value of ``--product`` that means it."""
    for one in PRODUCTS.values():
        if one.device_type == product.device_type:
            for node in one.nodes:
                yield one.name if node is one.nodes[0] else f'"{node.machines[0]}"', node


def size(request: LaunchRequest, place: Place) -> Size:
    """Return the number of pods and devices that the options ask for; by default one whole node.

    Raises:
        UsageError: The ranks cannot be divided evenly.
    """
    devices, pods = request.devices, request.hosts.node_count
    whole = place.node.devices
    if devices.per_node is not None or devices.ranks is None:
        return Size(pods or 1, devices.per_node or whole)
    if pods is None:
        pods = max(1, devices.ranks // whole)
    if devices.ranks % pods:
        raise UsageError(
            f"{devices.ranks} ranks cannot be divided evenly among {count(pods, 'node')}",
            hint="give --nnodes and --nproc-per-node",
        )
    return Size(pods, devices.ranks // pods)


def size_options(request: LaunchRequest) -> str | None:
    """Return the options for a job as large as the table of a request; ``None`` if it cannot be used."""
    try:
        located = table_source.locate(request.table, {})
        loaded = table_file.load_file(located[0], request.table, {}) if located else None
    except HcclToolsError:
        return None
    if loaded is None:
        return None
    return f"`-n {len(loaded.table)} --nnodes {len(loaded.table.servers)} --product {loaded.product}`"


def check(size: Size, place: Place) -> None:
    """Refuse numbers of devices that HCCL or the scheduler of the cluster refuses.

    Raises:
        UsageError: They do so.
    """
    product, whole = place.product, place.node.devices
    if size.devices > whole:
        raise UsageError(
            f"{size.devices} devices in a pod: a node has {whole} ({product.title})",
            hint="spread the ranks over more nodes with --nnodes",
        )
    allowed = product.counts_per_server
    if allowed is not None and size.devices not in allowed:
        raise UsageError(
            f"{size.devices} devices in a pod: HCCL's guide allows {', '.join(map(str, allowed))} "
            f"on {product.title}"
        )
    if size.pods > 1 and product.cluster_count not in (None, size.devices):
        raise UsageError(
            f"{size.devices} devices in each of {size.pods} pods: a job on several nodes of {product.title} "
            f"uses all {product.cluster_count} of each"
        )
    if not _is_scheduled(size, place.node):
        raise _not_scheduled(size, place)


def _counts(size: Size, node: NodeLabels) -> tuple[int, ...] | None:
    return (size.pods > 1 and node.cluster_counts) or node.counts


def _is_scheduled(size: Size, node: NodeLabels) -> bool:
    counts = _counts(size, node)
    return counts is None or size.devices in counts


def _not_scheduled(size: Size, place: Place) -> UsageError:
    """Return the error for a number of devices with which MindCluster's scheduler leaves the pods pending."""
    node, total = place.node, size.pods * size.devices
    counts = _counts(size, node) or ()
    where = f" in each of {size.pods} pods" if size.pods > 1 else " in a pod"
    several = "a job with several pods" if size.pods > 1 else "a pod"
    allowed = f"all {node.devices} of each node" if counts == (node.devices,) else ", ".join(map(str, counts))
    ways = [
        f"--product {words}, if the label of your nodes is {other.server}"
        for words, other in _nodes_like(place.product)
        if other is not node and other.devices >= size.devices and _is_scheduled(size, other)
    ]
    if size.pods > 1 and total % node.devices == 0:
        ways.insert(0, f"--nnodes {total // node.devices} --nproc-per-node {node.devices}")
    return UsageError(
        f"{count(size.devices, 'device')}{where}: for nodes with the label {node.server}, MindCluster's "
        f"scheduler gives {several} only {allowed}",
        hint=f"use {'; or '.join(ways)}" if ways else None,
    )


def pinned(request: LaunchRequest, place: Place, nodes: Sequence[str]) -> tuple[Size, str]:
    """Return the size and the text of a table whose servers are the given nodes.

    Raises:
        LaunchError: Kubernetes would give the pods other devices than the table, or the table is too large.
        UsageError: No table was found, or it has other nodes.
    """
    located = table_source.locate(request.table, {})
    if located is None:
        raise UsageError("--pin-nodes is for a table that is fixed", hint="add --rank-table FILE")
    if request.devices.ranks or request.devices.per_node or request.hosts.node_count:
        raise UsageError("--pin-nodes: the table has the numbers of nodes and ranks", hint="leave them out")
    loaded = table_file.load_file(located[0], request.table._replace(product=place.product.name), {})
    servers = loaded.table.servers
    if len(servers) != len(nodes):
        raise UsageError(
            f"--pin-nodes: {count(len(nodes), 'node')}, but the table has {count(len(servers), 'server')}",
            hint="name the node of each server, as `kubectl get nodes` does",
        )
    whole = place.node.devices
    if any(len(server.rows) != whole for server in servers):
        raise LaunchError(
            f"--pin-nodes needs all {whole} devices of each node in the table",
            hint="Kubernetes chooses the devices of a pod that uses some of them: leave --rank-table and "
            "--pin-nodes out",
        )
    if len(loaded.data) > writing.DATA_LIMIT:
        raise LaunchError(
            f"the table has {len(loaded.data):,} bytes; a ConfigMap has at most {writing.DATA_LIMIT:,}"
        )
    return Size(len(servers), whole), loaded.data.decode()
