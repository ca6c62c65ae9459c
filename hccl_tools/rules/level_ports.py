"""Advice on the ports, planes and local ids of ranks of a 2.0 table. HCCL accepts such a table."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import and_more
from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.level_exchanges import exchanged_ports, exchanged_ports_finding
from hccl_tools.rules.levels import level_addresses, local_numbers, port_lists
from hccl_tools.rules.moved_entries import exchanged
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.table.hccl_numbers import read_integer
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.rules.registry import Found

#: The fewest ranks that agree for a finding on one that does not, and the most such ranks.
_LEAST_OTHERS, _MOST_ODD = 3, 4
#: The most ports that a message names.
_MOST_NAMED = 8


@shared
def _are_alike(subject: Subject) -> bool:
    """Whether all ranks have the same ports and planes in the same order; no call per rank."""
    entries, ranks = level_addresses(subject), len(subject.table)
    size, rest = divmod(len(entries), ranks) if ranks else (0, 1)
    if rest or not size:
        return not entries
    columns = [[entry.get("plane_id") for entry in entries]]
    if len(port_lists(subject)) > 1:
        columns.append([tuple(entry["ports"]) for entry in entries])
    return (
        all(len(set(column[place::size])) == 1 for column in columns for place in range(size))
        and len(set(map(len, subject.table.column("level_list")))) == 1
    )


def _gen(subject: Subject, row: int) -> str:
    node = subject.table.servers[subject.table.server_of_row[row]].server_id[:64]
    return f"`hccl-tools gen` on {shown_host(node)} prints this entry"


@rule(
    "HCC646",
    "port-of-two-addresses",
    "advice",
    source="a port belongs to one address of a layer (rank_table_config_a5.md, `ports`); HCCL does not compare them",
)
def port_of_two_addresses(subject: Subject) -> Iterator[Found]:
    """A rank has a port in two addresses of one layer, or twice in one address.

    Base: 2.0 1x2
    Example: /rank_list/0/level_list/0/rank_addr_list = [{"addr_type": "IPV4", "addr": "10.0.0.1", "ports": ["0/0"], "plane_id": "0"}, {"addr_type": "IPV4", "addr": "10.0.0.2", "ports": ["0/0"], "plane_id": "0"}]
    Instead: table
    Hint: write the port of this address: `hccl-tools gen` on node0 prints this entry
    """
    rows = range(1 if _are_alike(subject) else len(subject.table))
    left_out = {} if len(rows) == 1 else exchanged_ports(subject)  # HCC647 reports these ranks.
    for row in rows if len(subject.table) else ():
        for index, level in enumerate(() if row in left_out else subject.table.column("level_list")[row]):
            entries = level["rank_addr_list"]
            times = Counter(chain.from_iterable(entry["ports"] for entry in entries))
            seen = set[str]()
            for place, entry in enumerate(entries if times and max(times.values()) > 1 else ()):
                hint = _right_ports(subject, row, index, place)  # For all its ports, which can be many.
                for number, port in enumerate(entry["ports"]):
                    if port in seen:
                        yield partial(_second_port, subject, (row, index, place, number), port, hint)
                    seen.add(port)


def _right_ports(subject: Subject, row: int, index: int, place: int) -> str:
    """Return the hint to write the ports of an address, with those that the other ranks have there."""
    entries = subject.table.column("level_list")[row][index]["rank_addr_list"]
    usual = _usual(subject, row, index)
    right = usual[place][0] if usual is not None and len(usual) == len(entries) else None
    if right is not None and right != tuple(entries[place]["ports"]):
        return f'write "ports": {_list(right)}, as the other ranks have: {_gen(subject, row)}'
    return f"write the port of this address: {_gen(subject, row)}"


def _second_port(subject: Subject, at: tuple[int, int, int, int], port: str, hint: str) -> Finding:
    row, index, place, number = at
    level = subject.table.column("level_list")[row][index]
    return Finding(
        f"{subject.rank_name(row)} has port {quoted(port)} twice in layer {level['net_layer']}: a port belongs to one address",
        ("rank_list", row, "level_list", index, "rank_addr_list", place, "ports", number),
        hint,
    )


def _list(ports: Sequence[str]) -> str:
    return f"[{', '.join(quoted(port) for port in ports)}]"


def _of_level(level: dict[str, Any]) -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple((tuple(entry["ports"]), entry.get("plane_id") or "") for entry in level["rank_addr_list"])


@shared
def _usual_ports(subject: Subject) -> dict[tuple[int | None, int], tuple[Any, ...]]:
    """Return the ports and planes that nearly all ranks have, for each layer and place where they do not differ."""
    kinds: dict[tuple[int | None, int], Counter[tuple[Any, ...]]] = {}
    for levels in subject.table.column("level_list"):
        for index, level in enumerate(levels):
            kinds.setdefault((read_integer(level["net_layer"]), index), Counter())[_of_level(level)] += 1
    usual = {at: (counts.total(), *counts.most_common(1)[0]) for at, counts in kinds.items()}
    return {at: own for at, (total, own, most) in usual.items() if total - most <= most // _LEAST_OTHERS}


def _usual(subject: Subject, row: int, index: int) -> tuple[Any, ...] | None:
    """Return the ports and planes that nearly all ranks have in a layer of a rank; None if they differ."""
    level = subject.table.column("level_list")[row][index]
    return _usual_ports(subject).get((read_integer(level["net_layer"]), index))


@rule(
    "HCC647",
    "odd-ports",
    "advice",
    source="the ports and planes of the other ranks of the table (rank_table_config_a5.md, `ports`)",
)
def odd_ports(subject: Subject) -> Iterator[Finding]:
    """The ports or planes of a rank are not those that all other ranks have, also those of the same local_id.

    The table must have at least two nodes: the devices of one node may differ. In a table of one node, a rank is
    reported if its ports are exchanged among its addresses.

    Base: 2.0 2x4
    Example: /rank_list/5/level_list/0/rank_addr_list/0/ports = ["0/7"]
    Instead: table
    Hint: write "ports": ["0/4"], as the other ranks have: `hccl-tools gen` on node1 prints this entry
    """
    table = subject.table
    if _are_alike(subject):
        return
    for row in (exchanges := exchanged_ports(subject)):
        yield exchanged_ports_finding(subject, row)
    if len(table.servers) < 2 or exchanges:
        return
    odd = list[tuple[int, int]]()
    for row, levels in enumerate(table.column("level_list")):
        for index, level in enumerate(levels):
            usual = _usual(subject, row, index)
            own = _of_level(level)
            if usual is not None and own != usual and len(own) == len(usual) and sorted(own) != sorted(usual):
                odd.append((row, index))
    ids = table.column("local_id")
    of_rows = {row for row, _ in odd}
    others = {ids[row] for row in range(len(table)) if row not in of_rows}
    for row, index in odd if len(of_rows) <= _MOST_ODD and {ids[row] for row in of_rows} <= others else ():
        yield from _odd_level(subject, row, index)


def _odd_level(subject: Subject, row: int, index: int) -> Iterator[Finding]:
    level = subject.table.column("level_list")[row][index]
    ports = [port for entry in level["rank_addr_list"] for port in entry["ports"]]
    if len(set(ports)) < len(ports):
        return  # HCC646 reports it.
    usual = _usual(subject, row, index) or ()
    for place, (own, right) in enumerate(zip(_of_level(level), usual, strict=True)):
        path = ("rank_list", row, "level_list", index, "rank_addr_list", place)
        where = f"address {place + 1} of {subject.rank_name(row)} in layer {level['net_layer']}"
        if own[0] != right[0]:
            yield Finding(
                f"{where} has {_ports(own[0])}, and that of all other ranks {_ports(right[0])}",
                (*path, "ports"),
                f'write "ports": {_list(right[0])}, as the other ranks have: {_gen(subject, row)}',
            )
        elif own[1] != right[1] and own[1] and right[1]:
            yield Finding(
                f"{where} has plane_id {quoted(own[1])}, and that of all other ranks {quoted(right[1])}",
                (*path, "plane_id"),
                f'write "plane_id": {quoted(right[1])}, as the other ranks have: {_gen(subject, row)}',
            )


def _ports(ports: Sequence[str]) -> str:
    shown = and_more([quoted(port) for port in ports], _MOST_NAMED)
    return f"port {shown}" if len(ports) == 1 else f"ports {shown}"


@rule(
    "HCC648",
    "ids-outside-node",
    "advice",
    needs=("device_id", "local_id", "rank_id"),
    source="local_id and device_id are numbers of the NPU in its node (rank_table_config_a5.md); HCCL does not compare them",
)
def ids_outside_node(subject: Subject) -> Iterator[Finding]:
    """The local_ids or device_ids run on over the nodes, as ranks do, or differ from each other in a few ranks.

    HCCL looks for the local_id in the topology file of the node, and opens the device with the device_id.

    Base: 2.0 2x4
    Example: /rank_list/4/local_id = 4; /rank_list/5/local_id = 5; /rank_list/6/local_id = 6; /rank_list/7/local_id = 7
    Instead: table
    Hint: if each node has its own devices 0 to 3, write 0 to 3 again from rank 4 on: `hccl-tools gen` on node1 prints this entry
    """
    table = subject.table
    if table.column("local_id") == table.column("device_id") and table.column("local_id") != table.column(
        "rank_id"
    ):
        return
    if exchanged(subject):
        return  # HCC203 reports it.
    local, devices = local_numbers(subject), table.device_numbers
    on = [key for key, ids in (("local_id", local), ("device_id", devices)) if _run_on(subject, ids)]
    if len(on) == 2 and len(table.servers[0].rows) < WHOLE_MACHINES[0]:
        return  # A job may use the first devices of a node and the next ones of another.
    if on:
        size = len(table.servers[0].rows)
        row = table.servers[1].rows[0]
        yield Finding(
            f"the {'s and '.join(on)}s run on over the {len(table.servers)} nodes, as the ranks do: "
            f"{subject.rank_name(row)} is the first of its node and has {on[0]} {row}",
            ("rank_list", row, on[0]),
            f"if each node has its own devices 0 to {size - 1}, write 0 to {size - 1} again from {subject.rank_name(row)} on: "
            f"{_gen(subject, row)}",
        )
        return
    odd = [row for row, (one, other) in enumerate(zip(local, devices, strict=True)) if one != other]
    if (
        len(odd) > _MOST_ODD
        or len(table) < _LEAST_OTHERS * len(odd)
        or any((local[row] or 0) > max(map(_known, devices)) for row in odd)
    ):
        return
    if odd:
        shown = ", ".join(f"{subject.rank_name(row)} ({local[row]} and {devices[row]})" for row in odd)
        yield Finding(
            f"local_id and device_id differ in {shown}, and are the same number in all other ranks",
            ("rank_list", odd[0], "local_id"),
            f"write the two ids that the device has: {_gen(subject, odd[0]).replace('this entry', 'the entries')}",
            tuple(Related(("rank_list", row, "local_id"), "and here") for row in odd[1:]),
        )


def _known(number: int | None) -> int:
    return number or 0


def _run_on(subject: Subject, ids: Sequence[int | None]) -> bool:
    """Return whether ids are those from 0 on over all nodes of one size."""
    servers = subject.table.servers
    if len(servers) < 2 or [*ids] != [*range(len(ids))]:
        return False
    return servers[0].rows[0] == 0 and len({len(server.rows) for server in servers}) == 1
