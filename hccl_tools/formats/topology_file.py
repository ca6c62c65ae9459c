"""Read the topology file of an Ascend 950 host: which ports of its devices are linked.

Devices are named by local_id and ports as ``die/port``. A root info names the file as ``topo_file_path``.

Source: hcomm topo_info.cc, TopoInfo::Deserialize; sample topology files in the tests of hcomm.
"""

from __future__ import annotations

from typing import Any

from hccl_tools.document.document import Document
from hccl_tools.document.reading import is_stream, read_file
from hccl_tools.errors import InputError, TableError
from hccl_tools.records import NamedTuple

VERSION = "2.0"
#: hcomm topo_info.cc, MAX_PEER_COUNT.
MOST_PEERS = 65


class Edge(NamedTuple):
    """A link of a layer from the ports of ``a`` to those of ``b``; ``b`` is None for a switched network.

    ``layer`` is None in files of newer drivers: HCCL has not read it since August 2026.
    """

    layer: int | None
    a: int
    a_ports: tuple[str, ...]
    b: int | None
    b_ports: tuple[str, ...]
    protocols: tuple[str, ...]

    def may_be_of(self, layer: int) -> bool:
        """Whether the link may be of a layer; without a layer, a link of two devices is of layer 0."""
        if self.layer is None:
            return layer == 0 or self.b is None
        return self.layer == layer


class TopologyFile(NamedTuple):
    """The devices of a topology file by local_id, and its edges."""

    path: str
    peers: frozenset[int]
    edges: tuple[Edge, ...]

    def ports(self, local_id: int, layer: int) -> dict[str, list[Edge]]:
        """Return the edges of each port of a device on a layer."""
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            if edge.may_be_of(layer):
                own = (
                    *(edge.a_ports if edge.a == local_id else ()),
                    *(edge.b_ports if edge.b == local_id else ()),
                )
                for port in own:
                    found.setdefault(port, []).append(edge)
        return found


class TopologyError(TableError):
    """A topology file cannot be used."""


def load(path: str) -> TopologyFile:
    """Read a topology file.

    Raises:
        InputError: The file cannot be read.
        TopologyError: HCCL refuses the file.
    """
    if is_stream(path):
        raise InputError(f"{path} is a stream, not a file")
    document = Document.parse(read_file(path), path)
    if document.problem is not None:
        raise TopologyError(f"{path} is not JSON: {document.problem.message}")
    value = document.value
    if not isinstance(value, dict):
        raise TopologyError(f"{path} is not a topology file: it is not an object")
    if value.get("version") != VERSION:
        raise TopologyError(f'{path} is not a topology file: its version is not "{VERSION}"')
    peers, edges = _peers(value, path), _edges(value, path)
    for edge in edges:
        if not {edge.a, edge.a if edge.b is None else edge.b} <= peers:
            raise TopologyError(f"{path} links local_id {edge.a} and {edge.b}, but not both are in peer_list")
    return TopologyFile(path, peers, tuple(edges))


def _peers(value: dict[str, Any], path: str) -> frozenset[int]:
    listed = [_number(one, "local_id", path) for one in _objects(value, "peer_list", path)]
    if not 0 < len(listed) <= MOST_PEERS:
        raise TopologyError(f"{path} lists {len(listed):,} devices; HCCL reads 1 to {MOST_PEERS}")
    if len(set(listed)) < len(listed):
        raise TopologyError(f"{path} lists a local_id twice")
    _check_count(value, "peer_count", len(listed), path)
    return frozenset(listed)


def _edges(value: dict[str, Any], path: str) -> list[Edge]:
    entries = _objects(value, "edge_list", path)
    _check_count(value, "edge_count", len(entries), path)
    found = []
    for entry in entries:
        other = None if entry.get("local_b") is None else _number(entry, "local_b", path)
        layer = _number(entry, "net_layer", path) if "net_layer" in entry else None
        found.append(
            Edge(
                layer, _number(entry, "local_a", path),
                _texts(entry, "local_a_ports", path), other, _texts(entry, "local_b_ports", path),
                _texts(entry, "protocols", path),
            )
        )  # fmt: skip
    return found


def _objects(value: dict[str, Any], key: str, path: str) -> list[dict[str, Any]]:
    entries = value.get(key)
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise TopologyError(f"{path} is not a topology file: {key} is not a list of objects")
    return entries


def _number(entry: dict[str, Any], key: str, path: str) -> int:
    number = entry.get(key)
    if type(number) is not int or number < 0:
        raise TopologyError(f"{path} is not a topology file: a {key} is not a number from 0")
    return number


def _texts(entry: dict[str, Any], key: str, path: str) -> tuple[str, ...]:
    texts = entry.get(key)
    if texts is None:
        return ()
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TopologyError(f"{path} is not a topology file: {key} is not a list of strings")
    return tuple(texts)


def _check_count(value: dict[str, Any], key: str, number: int, path: str) -> None:
    if value.get(key) != number or type(value.get(key)) is not int:
        raise TopologyError(f"{path}: {key} is not {number}, the number of entries")
