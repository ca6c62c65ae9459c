"""Check that a spare server can replace another one."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import TableError
from hccl_tools.notation.phrases import and_more, count, did_you_mean
from hccl_tools.table.addresses import family
from hccl_tools.transform.address_layout import networks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.table.model import RankTable, Server


#: Servers that are compared with a name that is none of theirs.
_MOST_COMPARED = 1024


@dataclass(frozen=True)
class Pair:
    """The failed server and the spare, each with its table, and the rows of their devices by device id."""

    table: RankTable
    index: int
    spare: RankTable
    rows: list[tuple[int, int]]

    @property
    def old(self) -> Server:
        """The failed server."""
        return self.table.servers[self.index]

    @property
    def new(self) -> Server:
        """The spare."""
        return self.spare.servers[0]


def index_of(table: RankTable, server_id: str) -> int:
    """Return the index of a server by its server_id.

    Raises:
        TableError: The server does not exist; the hint has the servers, one that is misspelt first.
    """
    names = [server.server_id for server in table.servers]
    if server_id in names:
        return names.index(server_id)
    raise TableError(f'the table has no server "{server_id}"', hint=_servers(server_id, names))


def _servers(wanted: str, names: Sequence[str]) -> str:
    """Return the servers of a table; the most similar one if no other is as similar."""
    listed = f"its servers are {and_more(names)}"
    ratios = sorted(
        (SequenceMatcher(None, wanted, one).ratio() for one in names[:_MOST_COMPARED]), reverse=True
    )
    is_clear = len(ratios) == 1 or ratios[:1] != ratios[1:2]
    guess = did_you_mean(wanted, names) if is_clear and len(names) <= _MOST_COMPARED else ""
    return f"{guess} {listed}".lstrip()


def pair_with_spare(table: RankTable, index: int, spare: RankTable) -> Pair:
    """Return a server and the only server of a spare's table, with their devices paired by ascending id.

    Raises:
        TableError: The tables differ in format or device count, or the spare is already in the table.
    """
    old = table.servers[index]
    if spare.format != table.format:
        raise TableError(
            f"the spare's table has format {spare.format}, this table has format {table.format}",
            hint=f"convert the spare's table first: `hccl-tools convert SPARE --to {table.format}`",
        )
    if len(spare.servers) != 1:
        raise TableError(
            f"the spare's table has {len(spare.servers)} servers, not one",
            hint="select one: `hccl-tools subset SPARE --servers ID`",
        )
    new = spare.servers[0]
    names = [server.server_id for server in table.servers]
    if new.server_id != old.server_id and new.server_id in names:
        raise TableError(
            f"the spare {new.server_id} is already in the table", hint="use a server that is not in it"
        )
    if len(new.rows) != len(old.rows):
        raise TableError(
            f"the spare {new.server_id} has {count(len(new.rows), 'device')}, "
            f"{old.server_id} has {len(old.rows)}",
            hint="use a spare with the same number of devices, or make a new table",
        )
    ids, spare_ids = table.device_numbers, spare.device_numbers
    rows = zip(
        sorted(old.rows, key=lambda row: ids[row] or 0),
        sorted(new.rows, key=lambda row: spare_ids[row] or 0),
        strict=True,
    )
    return Pair(table, index, spare, list(rows))


def check_kind(pair: Pair) -> None:
    """Refuse a spare of another product or address family.

    Raises:
        TableError: The spare has another product or address family.
    """
    old, new = pair.old.fields.get("hardware_type"), pair.new.fields.get("hardware_type")
    if old is not None and new is not None and old != new:
        raise TableError(
            f"the spare {pair.new.server_id} is another product: hardware_type is {new}, not {old}",
            hint="use a spare of the same kind",
        )
    ours, theirs = pair.table.device_ips, pair.spare.device_ips
    for row, other in pair.rows:
        old, new = _family(ours[row]), _family(theirs[other])
        if old is not None and new is not None and old != new:
            raise TableError(
                f"device_ip {theirs[other]} of the spare {pair.new.server_id} and {ours[row]} of "
                f"{pair.old.server_id} are of different families, IPv4 and IPv6",
                hint="give the spare's devices addresses of the same family",
            )


def _family(value: Any) -> int | None:
    return family(value.partition(",")[0]) if isinstance(value, str) and value else None


def network_warning(pair: Pair) -> str | None:
    """Return a warning if the spare has addresses in more or fewer networks than all servers."""
    table = pair.table
    usual = {networks(table, server) for server in table.servers if len(server.rows) == len(pair.new.rows)}
    own = networks(pair.spare, pair.new)
    if len(usual) > 1 or None in usual or own is None or own in usual:
        return None
    return (
        f"the device addresses of the spare {pair.new.server_id} are in {count(own, 'network')} (/24), "
        f"the addresses of {pair.old.server_id} in {usual.pop()}: check that both are the same product"
    )


def check_super_pod(pair: Pair) -> None:
    """Refuse a spare of another super pod.

    Raises:
        TableError: The spare is in another super pod.
    """
    old, new = _super_pod(pair.table, pair.old), _super_pod(pair.spare, pair.new)
    if old != new:
        raise TableError(
            f"the spare {pair.new.server_id} is in {_named_pod(new)}, {pair.old.server_id} is in "
            f"{_named_pod(old)}",
            hint="use a spare of the same super pod, or make a new table",
        )


def _super_pod(table: RankTable, server: Server) -> tuple[Any, ...]:
    """Return the identity of a server's super pod: its id, or in 2.0 the networks above the server."""
    if table.format == "2.0":
        levels = [level for row in server.rows for level in table.columns["level_list"][row][1:]]
        return tuple(sorted({(level["net_layer"], level["net_instance_id"]) for level in levels}))
    return tuple(pod.super_pod_id for pod in table.super_pods or () if server.server_id in pod.server_ids)


def _named_pod(pod: tuple[Any, ...]) -> str:
    names = ", ".join(str(part[1]) if isinstance(part, tuple) else str(part) for part in pod)
    return f"super pod {names}" if names else "no super pod"
