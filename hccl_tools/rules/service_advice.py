"""Advice on service tables: what their readers accept, but is probably wrong."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted, without_marks
from hccl_tools.notation.number_list import fold, holes_in, rank_list
from hccl_tools.notation.phrases import count
from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.registry import Finding, Input, rule
from hccl_tools.rules.service_addresses import PORTS
from hccl_tools.rules.service_structure import service_table
from hccl_tools.table.addresses import query
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.hccl_numbers import read_int
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from hccl_tools.table.service_table import ServiceTable

    #: The indexes of two instances, and of a server of the second.
    _Pair = tuple[int, int, int]

_advice = partial(rule, consequence="advice")
_READY = "completed"
_MOST_RANKS = 1 << 16


@_advice("HCC651", "service-not-completed", source="get_group_id.py:36-41; clusterd")
def not_completed(subject: Input) -> Iterator[Finding]:
    """The status of a service table is not "completed": every pod waits for it and reads it again each second.

    The pods print "status of ranktable is not completed". With a ConfigMap, kubelet can need 60 seconds for
    the update.

    Example: /status = "initializing"
    Instead: /status = "completed"
    Hint: wait for the platform to complete the table
    """
    status = subject.value.get("status")
    if isinstance(status, str) and status != _READY:
        message = f'status is "{status}", not "{_READY}"'
        yield Finding(message, ("status",), "wait for the platform to complete the table")


@_advice("HCC652", "service-version", source="clusterd, 05_service_configuration_apis.md:57")
def version(subject: Input) -> Iterator[Finding]:
    """The version of a service table is neither "1.0" nor "1.2"; its readers ignore it.

    Example: /version = "1.1"
    Instead: /version = "1.0"
    Hint: write "version": "1.0", or "1.2" for super pods
    """
    found = subject.value.get("version")
    if isinstance(found, str) and found not in {"1.0", "1.2"}:
        hint = 'write "version": "1.0", or "1.2" for super pods'
        yield Finding(f'version is "{found}", which no platform writes', ("version",), hint)


@_advice("HCC653", "service-server-count", source="clusterd; pd_ranktable_tools.py:153")
def server_count(subject: Input) -> Iterator[Finding]:
    """server_count is not the number of the group's servers, so that the file is probably incomplete.

    Example: /server_group_list/2/server_count = "2"
    Instead: /server_group_list/2/server_count = "1"
    Hint: write "server_count": "1", or add the missing servers
    """
    for index, group in enumerate(service_table(subject).groups):
        stated = group.entry.get("server_count")
        number = read_int(stated) if isinstance(stated, str) else stated
        if type(stated) in {str, int, float} and number != len(group.servers):
            shown = f'"{stated}"' if isinstance(stated, str) else stated
            hint = f'write "server_count": "{len(group.servers)}", or add the missing servers'
            message = f"server_count is {shown}, but the group lists {count(len(group.servers), 'server')}"
            yield Finding(message, (SERVICE, index, "server_count"), hint)


@_advice("HCC654", "service-uneven-servers", source="HCC511 of the instance's rank table; MindIE-Motor guide")
def uneven_servers(subject: Input) -> Iterator[Finding]:
    """The servers of an instance have different numbers of devices.

    Base: server_group_list 2x4
    Example: remove /server_group_list/2/server_list/1/device/3
    Instead: table
    Hint: list the same number of devices for each server
    """
    table = service_table(subject)
    for instance in table.instances:
        sizes = [len(table.servers[server].rows) for server in instance.servers]
        is_whole = all("device" in table.servers[server].entry for server in instance.servers)
        if len(set(sizes)) <= 1 or not is_whole:  # HCC715 reports a list that is missing.
            continue
        other = next(place for place, size in enumerate(sizes) if size != sizes[0])
        server = instance.servers[other]
        message = f"{instance.name} has servers with {fold(sorted(set(sizes)))} devices"
        hint = "list the same number of devices for each server"
        related = (Related(table.server_path(instance.servers[0]), f"{count(sizes[0], 'device')} here"),)
        yield Finding(message, table.server_path(server), hint, related)


@_advice("HCC655", "service-rank-gap", source="HCC202 of the instance's rank table")
def rank_gap(subject: Input) -> Iterator[Finding]:
    """The ranks of an instance are not 0 to N-1, so that its rank table needs new ranks.

    Example: /server_group_list/2/server_list/0/device/1/rank_id = "5"
    Instead: /server_group_list/2/server_list/0/device/1/rank_id = "1"
    Hint: number the devices of the instance from 0
    """
    table = service_table(subject)
    for instance in table.unordered_instances:
        rows = table.rows(instance.servers)
        ranks = table.rank_numbers[rows.start : rows.stop]
        known = {rank for rank in ranks if rank is not None and rank < _MOST_RANKS}
        if known and None not in ranks and len(known) == len(ranks) and max(known) >= len(ranks):
            place = next(place for place, rank in enumerate(ranks) if rank is not None and rank >= len(ranks))
            message = f"the ranks of {instance.name} are {fold(sorted(known))}, not 0-{len(ranks) - 1}"
            hint = "number the devices of the instance from 0"
            starts = {table.servers[server].rows.start - rows.start for server in instance.servers}
            holes = holes_in(ranks)
            if holes and all(at in starts for at, _ in holes):
                place, lost = holes[0]
                hint = f"if the server with {rank_list(lost)} was lost, add it again before this one; else {hint}"
            yield Finding(message, table.device_path(rows.start + place, "rank_id"), hint)


@_advice("HCC656", "service-shared-device", source="pd_ranktable_tools.py:103")
def shared_device(subject: Input) -> Iterator[Finding]:
    """Two instances have the same device of a host, or one device_ip for two devices.

    Each device has an address of its own: an entry that is copied to another device needs its device_id and device_ip.

    Example: /server_group_list/3/server_list/0/server_id = "10.0.0.1"; /server_group_list/3/server_list/0/device/0/device_ip = "10.20.0.1"
    Instead: /server_group_list/3/server_list/0/server_id = "10.0.0.2"; /server_group_list/3/server_list/0/device/0/device_ip = "10.20.0.5"
    Hint: `hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1: if it is "10.20.0.2", correct group 3, if it is "10.20.1.2", group 2: its server_id if it is on another host, else write the device_id and the device_ip of other devices of 10.0.0.1 (no group has 2-7)
    """
    table = service_table(subject)
    ips = table.column("device_ip")
    if not table.hosts_are_distinct:
        for pair, rows in _shared(table, _places(table)).items():
            yield _same_devices(table, pair, rows)
    if len(set(ips)) < len(ips):
        places = _places(table)
        for pair, rows in _shared(table, ips).items():
            if other := [(seen, row) for seen, row in rows if places[seen] != places[row]]:
                yield _same_addresses(table, pair, other)


def _places(table: ServiceTable) -> list[tuple[str, int] | None]:
    """Return the host and number of each device; ``None`` without one of them."""
    hosts = [server.text("server_id") for server in table.servers for _ in server.rows]
    numbers = zip(hosts, table.device_numbers, strict=True)
    return [(host, device) if host is not None and device is not None else None for host, device in numbers]


def _shared(table: ServiceTable, keys: Sequence[Hashable]) -> dict[_Pair, list[tuple[int, int]]]:
    """Return the rows whose key a device of an earlier instance has, with its row; ``None`` is not a key."""
    first: dict[Hashable, tuple[int, int]] = {}
    found: dict[_Pair, list[tuple[int, int]]] = {}
    for number, instance in enumerate(table.instances):
        for row in table.rows(instance.servers):
            if (key := keys[row]) is None:
                continue
            owner, seen = first.setdefault(key, (number, row))
            if owner != number:
                found.setdefault((owner, number, table.server_of_row(row)), []).append((seen, row))
    return found


def _same_devices(table: ServiceTable, pair: _Pair, rows: list[tuple[int, int]]) -> Finding:
    """Return the finding on devices of a host that two instances have."""
    owner, number, host = pair[0], pair[1], _host(table, rows[0][1])
    ids = sorted(table.device_numbers[row] or 0 for _, row in rows)
    names = [without_marks(table.instances[one].name) for one in (owner, number)]
    which = f"device {fold(ids)}" if len(ids) == 1 else f"devices {fold(ids)}"
    verb, ips = "is" if len(ids) == 1 else "are", table.column("device_ip")
    other = next((one for one in rows if ips[one[0]] != ips[one[1]]), None)
    free = _unused(table, host, len(ids))
    own = f"the device_id and the device_ip of other devices of {shown_host(host)}{free}"
    command = f"`hccn_tool -i N {query(table.column('device_ip'))}` on {shown_host(host)} shows the address of device N"
    if other is None and not free and _is_whole(table, rows):
        hint = (
            f"the entry was probably copied, and only its server_ip was changed: write in {names[1]} the server_id of its own host and the "
            f"addresses of its devices; only if {names[1]} is on {shown_host(host)}, too, write {own}: {command}"
        )
    elif other is None:
        hint = f"write in {names[1]} {own}: {command}; if {names[1]} is on another host, write its server_id and its addresses"
    else:
        at = table.device_numbers[other[0]]
        hint = (
            f"`hccn_tool -i {at} {query(ips)}` on {shown_host(host)} shows the address of device {at}: if it is {quoted(str(ips[other[0]]))}, correct "
            f"{names[1]}, if it is {quoted(str(ips[other[1]]))}, {names[0]}: its server_id if it is on another host, else write {own}"
        )
    return Finding(
        f"{which} of {host} {verb} in {names[0]} and {names[1]}",
        table.device_path(rows[0][1], "device_id"),
        hint,
        (Related(table.device_path(rows[0][0], "device_id"), "first used here"),),
    )


def _unused(table: ServiceTable, host: str, number: int) -> str:
    """Return the devices of a machine of the usual size that no instance has, as a phrase; "" if they are too few."""
    ids = table.devices_by_host.get(host, set())
    if len(ids) > max(WHOLE_MACHINES):
        return ""
    size = next((size for size in WHOLE_MACHINES if all(one is not None and one < size for one in ids)), 0)
    free = [one for one in range(size) if one not in ids]
    return f" (no group has {fold(free)})" if len(free) >= number else ""


def _is_whole(table: ServiceTable, rows: list[tuple[int, int]]) -> bool:
    """Return whether all devices of two servers with different server_ips are the same ones."""
    first, second = (table.servers[table.server_of_row(row)] for row in rows[0])
    is_other_pod = first.text("server_ip") != second.text("server_ip")
    return is_other_pod and len(first.rows) == len(second.rows) == len(rows) > 1


def _same_addresses(table: ServiceTable, pair: _Pair, rows: list[tuple[int, int]]) -> Finding:
    """Return the finding on devices of two instances that have one device_ip."""
    seen, row = rows[0]
    names, ip = (table.instances[pair[0]].name, table.instances[pair[1]].name), table.column("device_ip")[row]
    first, own = (_named(table, one) for one in (seen, row))
    asked, others = (
        _how(table, row),
        f" and {count(len(rows) - 1, 'other address', 'other addresses')}" if rows[1:] else "",
    )
    each = ", and so on for each device" if rows[1:] else ""
    return Finding(
        f"device_ip {quoted(str(ip))}{others} of {names[1]} {'are' if others else 'is'} in {names[0]} too: {first} there and {own} here",
        table.device_path(row, "device_ip"),
        f"write in each the address of its own device: {asked}, and {_how(table, seen)}{each}",
        (Related(table.device_path(seen, "device_ip"), "first used here"),),
    )


def _host(table: ServiceTable, row: int) -> str:
    return (table.servers[table.server_of_row(row)].text("server_id") or "its host")[:64]


def _named(table: ServiceTable, row: int) -> str:
    return f"device {table.device_numbers[row]} of {_host(table, row)}"


def _how(table: ServiceTable, row: int) -> str:
    device = table.device_numbers[row]
    return f"`hccn_tool -i {device} {query(table.column('device_ip'))}` on {shown_host(_host(table, row))} shows that of device {device}"


@_advice(
    "HCC657",
    "service-shared-port",
    source="config.json of MindIE: each instance binds these ports on its server_ip",
)
def shared_port(subject: Input) -> Iterator[Finding]:
    """Two servers of instances have the same server_ip and a port in common: only one of the two can bind it.

    HCC716 reports servers with the same mgmt_port.

    Example: /server_group_list/3/server_list/0/server_ip = "192.168.3.1"; /server_group_list/3/server_list/0/mgmt_port = "2026"; /server_group_list/3/server_list/0/metric_port = "2027"; /server_group_list/3/server_list/0/inter_comm_port = "2121"
    Instead: /server_group_list/3/server_list/0/server_ip = "192.168.3.1"; /server_group_list/3/server_list/0/predict_port = "2025"; /server_group_list/3/server_list/0/mgmt_port = "2026"; /server_group_list/3/server_list/0/metric_port = "2027"; /server_group_list/3/server_list/0/inter_comm_port = "2121"
    Hint: write another port in one of the two servers, and in the configuration of its instance
    """
    table = service_table(subject)
    addresses, managed = table.server_column("server_ip"), table.server_column("mgmt_port")
    servers = [server for instance in table.instances for server in instance.servers]
    if len({addresses[server] for server in servers}) == len(servers):
        return
    first: dict[tuple[str, str], tuple[int, str]] = {}
    for server in servers:
        for key in PORTS:
            address, port = addresses[server], table.servers[server].text(key)
            if address is None or port is None:
                continue
            seen, other = first.setdefault((address, port), (server, key))
            if seen == server or managed[seen] == managed[server]:
                continue
            message = f"{key} {port} of server_ip {quoted(address)} is used by another server"
            hint = "write another port in one of the two servers, and in the configuration of its instance"
            related = (Related(table.server_path(seen, other), "first used here"),)
            yield Finding(
                message, table.server_path(server, key), hint, related,
                alike=(f"ports of server_ip {quoted(address)} are used by another server", hint.replace("another port", "other ports")),
            )  # fmt: skip


@_advice(
    "HCC658",
    "service-logical-ids",
    source="MindIE-Motor guide: device_logical_id counts the devices of a pod from 0",
)
def logical_ids(subject: Input) -> Iterator[Finding]:
    """The device_logical_ids of a server are its device_ids, and those of another server count from 0.

    A pod sees its devices as 0, 1, 2 and so on, whatever their device_ids are.

    Base: server_group_list 1x2
    Example: /server_group_list/2/server_list/0/device/0/device_id = "4"; /server_group_list/2/server_list/0/device/1/device_id = "5"; /server_group_list/3/server_list/0/device/0/device_id = "4"; /server_group_list/3/server_list/0/device/1/device_id = "5"; /server_group_list/3/server_list/0/device/0/device_logical_id = "4"; /server_group_list/3/server_list/0/device/1/device_logical_id = "5"
    Instead: /server_group_list/2/server_list/0/device/0/device_id = "4"; /server_group_list/2/server_list/0/device/1/device_id = "5"; /server_group_list/3/server_list/0/device/0/device_id = "4"; /server_group_list/3/server_list/0/device/1/device_id = "5"
    Hint: write 0-1 as the device_logical_ids of this server, if `npu-smi info` in its pod shows these devices
    """
    table = service_table(subject)
    ids, logical = table.column("device_id"), table.column("device_logical_id")
    counted, physical = list[int](), list[int]()
    # Usually the two are the same everywhere: then no server counts in another way.
    for instance in table.instances if ids != logical else ():
        for server in instance.servers:
            rows = table.servers[server].rows
            right = [str(place) for place in range(len(rows))]
            own, of_host = [logical[row] for row in rows], [ids[row] for row in rows]
            if of_host == right or not rows:
                continue  # The two kinds of ids are the same.
            counted += [server] if own == right else []
            physical += [server] if own == of_host else []
    for server in physical if counted else ():
        rows = table.servers[server].rows
        group = table.groups[table.servers[server].group].name
        yield Finding(
            f"the device_logical_ids of group {group} are the device_ids of the host ({logical[rows[0]]} to {logical[rows[-1]]}); a pod "
            "counts its devices from 0",
            table.device_path(rows[0], "device_logical_id"),
            f"write {fold(range(len(rows)))} as the device_logical_ids of this server, if `npu-smi info` in its pod shows these devices",
            (
                Related(
                    table.device_path(table.servers[counted[0]].rows[0], "device_logical_id"),
                    "counted from 0 here",
                ),
            ),
        )
