"""How the devices of a table communicate: by product, server, super pod, or network level.

A table states neither the PCIe topology nor, for an Ascend 950, the topology file. What it does not state is
``UNKNOWN``.

Sources: the link types that HCCL distinguishes between devices (hcomm topoinfo_parse.cc,
hccl_communicator_attrs_host.cc: SIO, HCCS, PCIe, RoCE; Ascend 950: UB); the words are those of
``npu-smi info -t topo``.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from hccl_tools.table.model import super_pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.table.model import RankTable, Server
    from hccl_tools.table.products import Product

SELF, SIO, HCCS, UB, ROCE, UNKNOWN = "X", "SIO", "HCCS", "UB", "RoCE", "?"
#: The words of a matrix and their meanings, in the order of a legend. A table never states the three that
#: are ways over PCIe.
MEANINGS = {
    SELF: "the device itself",
    HCCS: "Huawei cache coherence system, between the NPUs of a server or of a super pod",
    SIO: "serial input/output, between the two dies of one NPU",
    UB: "unified bus",
    "PIX": "PCIe, at most one switch",
    "PHB": "PCIe and the host bridge of a CPU",
    "SYS": "PCIe and the link between NUMA nodes",
    ROCE: "RDMA over Ethernet, between the network ports of the NPUs",
    UNKNOWN: "the table does not state it",
}
_ORDER = tuple(MEANINGS)


class Links:
    """The links between the devices of a table, for one product.

    A link depends on few properties of a device, its key: in 1.x the super pod and whether it has an address,
    in 2.0 the network instances of its levels.
    """

    def __init__(self, table: RankTable, product: Product) -> None:
        self._table = table
        self._product = product
        self._kinds: dict[tuple[Any, Any], str] = {}

    @cached_property
    def _keys(self) -> list[Any]:
        """The key of each row."""
        table = self._table
        if table.format == "2.0":
            return [_level_key(levels) for levels in table.columns["level_list"]]
        pods = super_pods(table) if self._product.super_pods and table.format == "1.2" else {}
        of_server = [pods.get(server.server_id) for server in table.servers]
        ips = table.device_ips
        return [(of_server[index], bool(ips[row])) for row, index in enumerate(table.server_of_row)]

    def within(self, rows: Sequence[int]) -> list[list[str]]:
        """Return the links between devices of one server, a row per device."""
        numbers, keys = self._table.device_numbers, self._keys
        return [
            [
                SELF if first == second
                else self._by_levels(keys[first], keys[second]) if self._table.format == "2.0"
                else self._by_device(numbers[first], numbers[second])
                for second in rows
            ]
            for first in rows
        ]  # fmt: skip

    def inner_key(self, rows: Sequence[int]) -> tuple[Any, ...]:
        """Return what the links between devices of one server depend on; equal servers have equal keys."""
        numbers = tuple(self._table.device_numbers[row] for row in rows)
        if self._table.format != "2.0":
            return numbers
        keys = [self._keys[row] for row in rows]
        different = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        kinds = tuple(self._by_levels(one, other) for one in different for other in different)
        return numbers, tuple(map(different.__getitem__, keys)), kinds

    def between(self, first: Any, second: Any) -> str:
        """Return the links between two different servers of the given ``server_key``.

        If they differ from device to device, all are named: ``RoCE/?``.
        """
        found = {self.across(one, other) for one in first for other in second}
        return "/".join(sorted(found, key=_ORDER.index)) or UNKNOWN

    def server_key(self, server: Server) -> tuple[Any, ...]:
        """Return what the links of a server to other servers depend on; equal servers have equal keys."""
        return tuple(sorted(set(map(self.outer_key, server.rows)), key=repr))

    def outer_key(self, row: int) -> Any:
        """Return what the links of a device to other servers depend on; see ``across``."""
        key = self._keys[row]
        return key[1:] if self._table.format == "2.0" else key  # the first level is the server's own

    def across(self, first: Any, second: Any) -> str:
        """Return the link between devices of two different servers, by their ``outer_key``."""
        if self._table.format == "2.0":
            return self._by_levels(first, second)
        (pod, has_address), (other_pod, other_has_address) = first, second
        if pod is not None and pod == other_pod:
            return HCCS
        return ROCE if has_address and other_has_address else UNKNOWN

    def _by_device(self, first: int | None, second: int | None) -> str:
        """Return the link between devices of one server, by their ids."""
        product = self._product
        if first is None or second is None:
            return UNKNOWN
        if product.dies_per_npu > 1 and first // product.dies_per_npu == second // product.dies_per_npu:
            return SIO
        size = product.hccs_size
        return HCCS if size is not None and first // size == second // size else UNKNOWN

    def _by_levels(self, first: Any, second: Any) -> str:
        """Return the link on the lowest level on which both devices belong to one network instance."""
        known = self._kinds.get((first, second))
        if known is None:
            instances = {level[:2]: level[2] for level in second}
            common = ((level[2], instances[level[:2]]) for level in first if level[:2] in instances)
            known = next((one if one == other else UNKNOWN for one, other in common), UNKNOWN)
            self._kinds[first, second] = known
        return known


def _level_key(levels: Iterable[dict[str, Any]]) -> tuple[tuple[Any, str, str], ...]:
    return tuple(
        (level["net_layer"], level["net_instance_id"], _medium(level["rank_addr_list"])) for level in levels
    )


def _medium(addresses: Sequence[dict[str, Any]]) -> str:
    """Return the link of a level: an EID is an address of the unified bus, the others are of Ethernet."""
    kinds = {UB if address["addr_type"] == "EID" else ROCE for address in addresses}
    return kinds.pop() if len(kinds) == 1 else UNKNOWN
