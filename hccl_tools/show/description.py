"""The facts of a table by server, for ``show -f json`` and the tree."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hccl_tools.host.recognition import listed_addresses
from hccl_tools.table.model import super_pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.table.model import RankTable

#: Increased when a key of the JSON output changes its meaning or is removed.
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class RankFacts:
    """The facts of one rank.

    ``rank`` and ``device_id`` are None if HCCL cannot read them. ``local_rank`` numbers the devices of a
    server by ascending device id. ``addresses`` covers all network ports or, in 2.0, all levels.
    """

    rank: int | None
    device_id: int | None
    local_rank: int
    addresses: list[str]
    super_device_id: str | None = None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server and its ranks in ascending order."""

    index: int
    server_id: str
    host_ip: str | None
    super_pod_id: str | None
    pod_name: str | None
    ranks: list[RankFacts]

    @property
    def rank_ids(self) -> list[int]:
        """The readable ranks, ascending."""
        return [one.rank for one in self.ranks if one.rank is not None]

    @property
    def device_ids(self) -> list[int]:
        """The readable device ids, ascending."""
        return sorted(one.device_id for one in self.ranks if one.device_id is not None)


def servers(table: RankTable, indices: Sequence[int] | None = None) -> list[ServerFacts]:
    """Return the facts of the servers with the given indices, by default of all servers."""
    pods = super_pods(table)
    return [
        _server(table, index, pods) for index in (range(len(table.servers)) if indices is None else indices)
    ]


def _server(table: RankTable, index: int, pods: dict[str, str]) -> ServerFacts:
    server = table.servers[index]
    ranks, devices = table.rank_numbers, table.device_numbers
    local = {
        row: place for place, row in enumerate(sorted(server.rows, key=lambda row: (devices[row] or 0, row)))
    }
    own = [
        RankFacts(
            ranks[row],
            devices[row],
            local[row],
            [text for _, text in listed_addresses(table, row)],
            _text(table, "super_device_id", row),
        )
        for row in sorted(server.rows, key=lambda row: (ranks[row] is None, ranks[row] or 0))
    ]
    pod_name = server.fields.get("pod_name")
    return ServerFacts(
        index,
        server.server_id,
        server.host_ip,
        pods.get(server.server_id),
        pod_name if isinstance(pod_name, str) else None,
        own,
    )


def _text(table: RankTable, key: str, row: int) -> str | None:
    column = table.columns.get(key)
    value = column[row] if column is not None else None
    return value if isinstance(value, str) else None


def as_json(server: ServerFacts) -> dict[str, Any]:
    """Return a server as JSON, without values that are None."""
    value = {key: item for key, item in asdict(server).items() if item is not None}
    value["ranks"] = [
        {key: item for key, item in rank.items() if item is not None} for rank in value["ranks"]
    ]
    return value
