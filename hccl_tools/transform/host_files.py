"""Make the root info and the endpoint files of an Ascend 950 host from the facts about its devices.

A field that no source states is an error: the peer of a port is in the topology file or nowhere.

Source: hcomm rank_info_detect_client.cc (root info); hixl endpoint_generator.cc and endpoint_matcher.h.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import TableError
from hccl_tools.formats import endpoint_file
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.formats.topology_file import Edge, TopologyFile
    from hccl_tools.host.facts import DeviceFacts

Entry = dict[str, Any]
#: The names of the protocols with EIDs in a topology file and in an endpoint file, the preferred one first.
_PROTOCOLS = {"UB_CTP": "ub_ctp", "UB_TP": "ub_tp"}
_TOPOLOGY_HINT = "specify the topology file of this machine with --topology FILE"


class _Port(NamedTuple):
    local_id: int
    name: str


class EndpointFiles(NamedTuple):
    """The endpoint files by device_id, and how many addresses are left out because they are not EIDs."""

    values: dict[int, Entry]
    left_out: int


def root_info(devices: Sequence[DeviceFacts], topology: TopologyFile) -> Entry:
    """Return the root info of a host; the path of the topology file must be absolute."""
    ranks = [
        {"device_id": one.device_id, "local_id": one.local_id, "level_list": list(one.levels)}
        for one in sorted(devices, key=lambda one: one.device_id)
    ]
    return {"version": "2.0", "topo_file_path": topology.path, "rank_count": len(ranks), "rank_list": ranks}


def text(value: Entry) -> str:
    """Return the text of a root info or an endpoint file."""
    return json.dumps(value, indent=4) + "\n"


def endpoint_files(devices: Sequence[DeviceFacts], topology: TopologyFile) -> EndpointFiles:
    """Return the endpoint files of all devices of a host.

    Raises:
        TableError: The topology file, the levels or the other devices do not state a field.
    """
    maker = _Maker(devices, topology)
    values = {one.device_id: maker.value(one) for one in sorted(devices, key=lambda one: one.device_id)}
    return EndpointFiles(values, maker.left_out)


class _Maker:
    """Makes the endpoint files of the devices of one host."""

    def __init__(self, devices: Iterable[DeviceFacts], topology: TopologyFile) -> None:
        self.topology = topology
        self.left_out = 0
        #: The address of each port of layer 0. A port of its own goes before a group of ports.
        self.addresses: dict[_Port, Entry] = {}
        self.devices: dict[int, DeviceFacts] = {}
        for one in devices:
            local_id = _local_id(one)
            self.devices[local_id] = one
            for address in _addresses(one, 0):
                for name in address["ports"]:
                    known = self.addresses.setdefault(_Port(local_id, name), address)
                    if len(address["ports"]) < len(known["ports"]):
                        self.addresses[_Port(local_id, name)] = address

    def value(self, device: DeviceFacts) -> Entry:
        """Return the endpoint file of a device."""
        entries: list[Entry] = []
        for level in device.levels:
            for address in level["rank_addr_list"]:
                if address["addr_type"] != "EID":
                    self.left_out += 1
                elif level["net_layer"] != 0:
                    entries.append(self._switched(device, level["net_layer"], address))
                elif any(
                    self.addresses[_Port(_local_id(device), name)] is address for name in address["ports"]
                ):
                    entries.append(self._direct(device, address))
        if not entries:
            raise TableError(f"device {device.device_id} has no EID, so it has no endpoint")
        return {
            "version": endpoint_file.VERSION,
            "net_instance_id": _instance(device),
            "endpoint_list": entries,
        }

    def _direct(self, device: DeviceFacts, address: Entry) -> Entry:
        """Return the endpoint of an address of layer 0: one end of a link, or a switched network."""
        local_id = _local_id(device)
        edges = {name: self._edge(device, 0, [name]) for name in address["ports"]}
        if all(edge.b is None for edge in edges.values()):
            return self._switched(device, 0, address)
        ends = {_other_end(edge, _Port(local_id, name)) for name, edge in edges.items()}
        peers = [self.addresses.get(end) for end in sorted(ends)]
        found = {peer["addr"] for peer in peers if peer is not None}
        if None in peers:
            raise self._no_peer(device, address, min(end for end in ends if end not in self.addresses))
        if len(found) != 1:
            names = ", ".join(address["ports"])
            raise TableError(
                f"device {device.device_id}: the EID {address['addr']} has the ports {names}, which lead to "
                "several devices; an endpoint has one peer",
                hint="use the EIDs of single ports",
            )
        entry = _entry(address, _protocol(edges.values()))
        return {**entry, "dst_eid": found.pop()}

    def _switched(self, device: DeviceFacts, layer: int, address: Entry) -> Entry:
        edge = self._edge(device, layer, address["ports"])
        plane = address.get("plane_id")
        if not plane:
            raise TableError(
                f"device {device.device_id}: no source states the plane of the EID {address['addr']}",
                hint="add plane_id to the root info, or let gen ask hccn_tool",
            )
        return {**_entry(address, _protocol([edge])), "plane": plane}

    def _edge(self, device: DeviceFacts, layer: int, names: Sequence[str]) -> Edge:
        """Return the first edge of some ports whose protocols use EIDs."""
        ports = self.topology.ports(_local_id(device), layer)
        for name in names:
            for edge in ports.get(name, ()):
                if not _PROTOCOLS.keys().isdisjoint(edge.protocols):
                    return edge
        raise TableError(
            f"device {device.device_id}: {self.topology.path} has no link of layer {layer} with UB_CTP or "
            f"UB_TP for port {names[0]} of local_id {_local_id(device)}",
            hint=_TOPOLOGY_HINT,
        )

    def _no_peer(self, device: DeviceFacts, address: Entry, end: _Port) -> TableError:
        if end.local_id in self.devices:
            why = f"of device {self.devices[end.local_id].device_id}, for which no source has an EID"
        else:
            why = f"of local_id {end.local_id}, which is not among the devices"
        return TableError(
            f"device {device.device_id}: port {address['ports'][0]} leads to port {end.name} {why}; the "
            "dst_eid of its endpoint is unknown",
            hint="omit options that select devices; links to other hosts are not supported",
        )


def _local_id(device: DeviceFacts) -> int:
    if device.local_id is None:
        raise TableError(f"device {device.device_id}: no source states its local_id")
    return device.local_id


def _addresses(device: DeviceFacts, layer: int) -> list[Entry]:
    return [
        address
        for level in device.levels
        if level["net_layer"] == layer
        for address in level["rank_addr_list"]
        if address["addr_type"] == "EID"
    ]


def _instance(device: DeviceFacts) -> str:
    """Return the instance in which UB joins devices: that of layer 1, else that of layer 0."""
    names = {level["net_layer"]: level["net_instance_id"] for level in device.levels}
    found = names.get(1, names.get(0))
    if not isinstance(found, str):
        raise TableError(f"device {device.device_id}: no source states the network instance of layer 0 or 1")
    return found


def _other_end(edge: Edge, port: _Port) -> _Port:
    """Return the port at the other end of a link; the port lists of an edge correspond by position."""
    if edge.b is None or len(edge.a_ports) != len(edge.b_ports):
        raise TableError(
            f"the topology file does not state to which port {port.name} of local_id {port.local_id} leads",
            hint=_TOPOLOGY_HINT,
        )
    if edge.a == port.local_id and port.name in edge.a_ports:
        return _Port(edge.b, edge.b_ports[edge.a_ports.index(port.name)])
    return _Port(edge.a, edge.a_ports[edge.b_ports.index(port.name)])


def _protocol(edges: Iterable[Edge]) -> str:
    """Return the preferred protocol that all edges have; each has at least one."""
    listed = [set(edge.protocols) for edge in edges]
    common = set.intersection(*listed)
    for key, name in _PROTOCOLS.items():
        if key in common:
            return name
    raise TableError("the ports of one EID have different protocols in the topology file")


def _entry(address: Entry, protocol: str) -> Entry:
    return {"protocol": protocol, "comm_id": address["addr"], "placement": "device"}
