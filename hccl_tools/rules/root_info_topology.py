"""Rules that compare a root info with the topology file that it names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import InputError
from hccl_tools.formats.topology_file import TopologyError, TopologyFile, load
from hccl_tools.rules.registry import Finding, Input, rule, shared
from hccl_tools.rules.root_info import devices
from hccl_tools.table.hccl_numbers import read_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATH = ("topo_file_path",)


@shared
def _loaded(subject: Input) -> TopologyFile | TopologyError | InputError:
    """Return the topology file, or why it cannot be used."""
    try:
        return load(subject.value["topo_file_path"])
    except (TopologyError, InputError) as error:
        return error


@rule(
    "HCC676", "topology-file-absent", "advice", source="hcomm rank_info_detect_client.cc, CheckTopoFilePath"
)
def topology_file_absent(subject: Input) -> Iterator[Finding]:
    """The topology file cannot be read here. On the host of the root info, HCCL then refuses the root info.

    Base: rootinfo
    Example: /topo_file_path = "/usr/local/Ascend/driver/topo/none.json"
    Instead: table
    Hint: on its host: mount the file at this path, or correct the path
    """
    found = _loaded(subject)
    if isinstance(found, InputError):
        hint = "on its host: mount the file at this path, or correct the path"
        yield Finding(f"not compared with the topology: {found.message}", _PATH, hint)
    elif not os.path.isabs(subject.value["topo_file_path"]):  # noqa: PTH117
        hint = "write the absolute path: HCCL reads it relative to the folder in which a job starts"
        yield Finding("topo_file_path is not absolute", _PATH, hint)


@rule("HCC847", "topology-file", "refused", source="hcomm topo_info.cc, TopoInfo::Deserialize")
def topology_file(subject: Input) -> Iterator[Finding]:
    """HCCL refuses the topology file: it is not JSON of version 2.0, or its counts are wrong.

    Base: rootinfo
    Example: topology /peer_count = 7
    Instead: topology /peer_count = 8
    Hint: use the topology file of this machine, usually in /usr/local/Ascend/driver/topo
    """
    found = _loaded(subject)
    if isinstance(found, TopologyError):
        hint = "use the topology file of this machine, usually in /usr/local/Ascend/driver/topo"
        yield Finding(found.message, _PATH, hint)


@rule(
    "HCC848",
    "local-id-not-in-topology",
    "fails-later",
    source="hccl_rules, device counts on Ascend 950: local_id must be in the topology file",
)
def local_id_not_in_topology(subject: Input) -> Iterator[Finding]:
    """The topology file has no device with the local_id of an entry.

    Base: rootinfo
    Example: /rank_list/0/local_id = 40
    Instead: /rank_list/0/local_id = 0
    Hint: write the number of the device in the topology file, or name another file
    """
    found = _loaded(subject)
    if isinstance(found, TopologyFile):
        for row, rank in enumerate(devices(subject)):
            if read_integer(rank["local_id"]) not in found.peers:
                yield Finding(
                    f"{found.path} has no device with local_id {rank['local_id']}",
                    ("rank_list", row, "local_id"),
                    "write the number of the device in the topology file, or name another file",
                )


@rule(
    "HCC849",
    "port-not-in-topology",
    "fails-later",
    source="topology file: edge_list, local_a_ports, local_b_ports",
)
def port_not_in_topology(subject: Input) -> Iterator[Finding]:
    """A port of layer 0 is on no edge of the device in the topology file, so the address links nothing.

    Base: rootinfo
    Example: /rank_list/0/level_list/0/rank_addr_list/0/ports = ["1/8"]
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/ports = ["0/0"]
    Hint: compare the ports with edge_list, or name the topology file of this machine
    """
    found = _loaded(subject)
    if not isinstance(found, TopologyFile):
        return
    by_device = {local_id: found.ports(local_id, 0) for local_id in found.peers}
    for row, rank in enumerate(devices(subject)):
        local_id = read_integer(rank["local_id"])
        if local_id is None or local_id not in found.peers:
            continue
        linked = by_device[local_id]
        for number, level in enumerate(rank["level_list"]):
            if read_integer(level["net_layer"]) != 0:
                continue
            for index, address in enumerate(level["rank_addr_list"]):
                absent = [port for port in address["ports"] if port not in linked]
                if absent:
                    path = ("rank_list", row, "level_list", number, "rank_addr_list", index, "ports")
                    yield Finding(
                        f"port {absent[0]} is on no edge of local_id {local_id} in {found.path}",
                        path,
                        "compare the ports with edge_list, or name the topology file of this machine",
                    )


@rule("HCC850", "edge-without-eid", "fails-later", source="topology file: edge_list; hixl, GenerateD2DEdges")
def edge_without_eid(subject: Input) -> Iterator[Finding]:
    """A link between two devices of the root info ends at a port without an address.

    Base: rootinfo
    Example: remove /rank_list/0/level_list/0/rank_addr_list/0
    Instead: table
    Hint: make the root info again, or name the topology file of this machine
    """
    found = _loaded(subject)
    if not isinstance(found, TopologyFile):
        return
    rows = {read_integer(rank["local_id"]): row for row, rank in enumerate(devices(subject))}
    ports = {local_id: _ports_of_layer_0(subject, row) for local_id, row in rows.items()}
    for edge in found.edges:
        if edge.b is None or not edge.may_be_of(0) or edge.a not in rows or edge.b not in rows:
            continue
        for local_id, own in ((edge.a, edge.a_ports), (edge.b, edge.b_ports)):
            absent = [port for port in own if port not in ports[local_id]]
            if absent:
                yield Finding(
                    f"port {absent[0]} has no address, but links local_id {edge.a} and {edge.b} in {found.path}",
                    ("rank_list", rows[local_id], "level_list"),
                    "make the root info again, or name the topology file of this machine",
                )


def _ports_of_layer_0(subject: Input, row: int) -> set[str]:
    levels = devices(subject)[row]["level_list"]
    addresses = [
        one for level in levels if read_integer(level["net_layer"]) == 0 for one in level["rank_addr_list"]
    ]
    return {port for address in addresses for port in address["ports"]}
