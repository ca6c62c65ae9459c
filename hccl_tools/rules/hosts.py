"""Advice on the hosts of a table: servers that are one host, and server_ids that do not follow the device_ips."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.likeness import is_near
from hccl_tools.notation.phrases import count
from hccl_tools.rules.address_order import (
    address_numbers,
    address_text,
    names_by_addresses,
    order_of_addresses,
    usual_name,
)
from hccl_tools.rules.commands import address_query, how, shown_host
from hccl_tools.rules.copies import named_server
from hccl_tools.rules.exchanged_host import exchanged_with_host, of_exchanged_host
from hccl_tools.rules.lost_digits import name_without_digit
from hccl_tools.rules.moved_rows import moved_addresses
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.rules.replaced_text import (
    addresses_finding,
    names_finding,
    replaced_addresses,
    replaced_names,
)
from hccl_tools.rules.server_names import wrong_names
from hccl_tools.rules.server_places import Displaced, addresses_of_others, displaced_addresses
from hccl_tools.rules.stale_addresses import is_whole, of_stale, stale_addresses
from hccl_tools.rules.value_order import other_names
from hccl_tools.table.addresses import is_loopback, is_unset, packed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.rules.value_order import Names

#: More servers than these show by their server_ids and addresses that one is an exception.
_LEAST_PATTERN = 4
#: The most places of a finding.
_MOST_PLACES = 16


@rule(
    "HCC616",
    "same-host-twice",
    "advice",
    formats=SERVER_LIST,
    source="topoinfo_ranktableConcise.cc (ids are compared as texts)",
)
def same_host_twice(subject: Subject) -> Iterator[Finding]:
    """Two servers are one host: they have one address in two spellings, or one host_ip, and different devices.

    HCCL takes them for two hosts, and connects their devices over the network.

    Base: 2x8
    Example: /server_list/0/server_id = "fd00::1"; /server_list/1/server_id = "fd00:0::1"
    Instead: /server_list/0/server_id = "fd00::1"; /server_list/1/server_id = "fd00::2"
    Hint: write the address of its own host in one of the two: both list the same devices of "fd00::1"
    """
    yield from _of_one_host_ip(subject)
    ids = [server.server_id for server in subject.table.servers]
    if not any(":" in one or one != one.strip() for one in ids):
        return  # An IPv4 address has one spelling.
    first: dict[bytes, int] = {}
    for index, server in enumerate(subject.table.servers):
        name = server.server_id.strip()
        if not name:
            continue  # HCC502 reports it.
        seen = first.setdefault(packed(name) or name.encode(errors="replace"), index)
        other = subject.table.servers[seen].server_id
        if seen != index and other != server.server_id:
            yield Finding(
                f"server_id {quoted(server.server_id)} is another spelling of {quoted(other)}",
                subject.server_path(index, "server_id"),
                _in_one_server(subject, seen, index),
                (Related(subject.server_path(seen, "server_id"), "the same host"),),
            )


def _in_one_server(subject: Subject, seen: int, index: int) -> str:
    """Return the hint on two servers that are one host; with the same devices, one of the two has a wrong name."""
    name = quoted(subject.table.servers[seen].server_id.strip())
    if _share_devices(subject, seen, index):
        return f"write the address of its own host in one of the two: both list the same devices of {name}"
    return f"list all devices of the host in one server, {name}, remove the other entry{_count_without(subject, seen, index)}"


def _share_devices(subject: Subject, seen: int, index: int) -> bool:
    table = subject.table
    own, others = ({table.device_numbers[row] for row in table.servers[one].rows} for one in (seen, index))
    return not own.isdisjoint(others)


def _count_without(subject: Subject, seen: int, index: int) -> str:
    """Return what changes if two servers become one, as the end of a hint: the ranks stay if they follow each other."""
    table, stated = subject.table, subject.table.declared.get("server_count")
    rows = [*table.servers[seen].rows, *table.servers[index].rows]
    is_next = rows == sorted(rows) and rows[-1] - rows[0] < len(rows) if rows else True
    ranks = "" if is_next else ", and keep each device's rank_id"
    number = len(table.servers) - 1
    return f'{ranks}, and write "server_count": "{number}"' if stated == str(len(table.servers)) else ranks


def _of_one_host_ip(subject: Subject) -> Iterator[Finding]:
    """Yield the servers with the host_ip of another server."""
    table, first = subject.table, dict[str, int]()
    hosts = set(map(attrgetter("host_ip"), table.servers))
    if (
        hosts == {None}
        or len(hosts) == len(table.servers)
        or not subject.damaged.isdisjoint({"device_id", "host_ip"})
    ):
        return
    for index, server in enumerate(table.servers):
        address = server.host_ip
        if address is None or packed(address) is None or is_unset(address) or is_loopback(address):
            continue
        seen = first.setdefault(address, index)
        if seen == index or table.servers[seen].server_id == server.server_id:
            continue
        said = f"servers {seen + 1} and {index + 1} have one host_ip, {quoted(address)}"
        related = (Related(subject.server_path(seen, "host_ip"), "the same host_ip here"),)
        path = subject.server_path(index, "host_ip")
        if _share_devices(subject, seen, index):
            names = " and ".join(quoted(table.servers[one].server_id) for one in (seen, index))
            hint = f"write in each the address of its own host: one of {names} has that of the other"
            yield Finding(f"{said}, and list the same devices", path, hint, related)
            continue
        yield Finding(
            f"{said}, and different devices: they are probably one host, for example two pods of it, and HCCL connects their devices over "
            "the network",
            path,
            f"if both are on this host (`kubectl get pod -o wide` shows the node of each pod), list all their devices in one server with the "
            f"server_id {quoted(address)}{_count_without(subject, seen, index)}; else write in each the host_ip of its own host",
            related,
        )


@rule(
    "HCC633",
    "server-id-outside-order",
    "advice",
    formats=SERVER_LIST,
    needs=("device_ip", "device_id", "server_id"),
    source="server_id is the address of the host of the devices (rank_table_config_910.md); the other servers of the table",
)
def server_id_outside_order(subject: Subject) -> Iterator[Finding]:
    """The server_ids of a few servers do not follow the device_ips of their devices, as all others do.

    Two server_ids, or the device_ips of two servers, are probably exchanged, a column is moved by a server, one server_id has
    a mistyped digit, or the addresses are those of a machine that was replaced. Each rank then looks for its devices on
    another host. Of fewer than four servers, the numbers themselves must show it: those of the addresses are those of the
    server_ids.

    Base: 5x8
    Example: /server_list/1/server_id = "10.0.0.4"; /server_list/3/server_id = "10.0.0.2"
    Instead: table
    Hint: `hccn_tool -i 0 -ip -g` on 10.0.0.4 shows the address of device 0: if it is "192.168.1.100", nothing is wrong; if it is "192.168.3.100", either exchange the device_ips of the two servers, so that each rank stays on its host, or, so that each rank keeps its address, write these server_ids in the order "10.0.0.2", "10.0.0.4"
    """
    if (row := exchanged_with_host(subject)) is not None:
        yield of_exchanged_host(subject, row)
        return
    stale = stale_addresses(subject)
    if moved_addresses(subject) is not None or (stale is not None and not is_whole(subject, stale)):
        return  # HCC631 reports it.
    found = displaced_addresses(subject) or _of_names(subject)
    if found is None and stale is not None:
        found = of_stale(subject, stale)
    if found is None and not wrong_names(subject):
        found = name_without_digit(subject)
    if found is not None:
        yield found


def _of_names(subject: Subject) -> Finding | None:
    """Return the finding on server_ids that do not follow the addresses of their devices; None if all do, or none."""
    order, names = order_of_addresses(subject), names_by_addresses(subject)
    if order is None or names is None or order.moved_up or order.moved_down:
        return None
    wrong, servers = other_names(names, order.first), subject.table.servers
    if len(wrong) > 1 and (replaced := replaced_names(subject)) is not None:
        if not wrong_names(subject) and len({server.server_id for server in servers}) == len(servers):
            return names_finding(subject, replaced)
        return None  # HCC503 or HCC619 reports it.
    if len(wrong) > 1 and (replaced := replaced_addresses(subject)) is not None:
        return addresses_finding(subject, replaced)
    right = [names.name_of(order.first[index]) for index in wrong]
    own = [servers[index].server_id for index in wrong]
    is_double = (
        len(wrong) == 1 and sum(server.server_id == own[0] for server in servers) > 1
    )  # HCC503 reports it.
    is_plain = (
        bool(own) and own[0].isascii() and own[0] == own[0].strip()
    )  # HCC605 and HCC618 report other signs.
    is_own = len(wrong) != 1 or wrong[0] not in wrong_names(subject)  # HCC619 says what is wrong in it.
    meant = (
        usual_name(subject, wrong[0]) if len(wrong) == 1 and is_plain and is_own and not is_double else None
    )
    if own and own[0] in subject.table.device_ips:
        meant = None  # HCC614 reports it.
    if meant is not None and (is_near(own[0], meant) or _is_of_another_network(own[0], meant)):
        return _mistyped_name(subject, wrong[0], meant)
    if (
        meant is not None
        and len(servers) > _LEAST_PATTERN
        and _is_of_the_row(names, wrong[0], order.first[wrong[0]])
    ):
        return _of_another_host(subject, wrong[0], meant)
    if (
        len(wrong) < 2
        or None in right
        or sorted(own) != sorted(filter(None, right))
        or len(set(own)) < len(own)
    ):
        return None
    place_of = {servers[index].server_id: index for index in wrong}
    found = {index: place_of[name] for index, name in zip(wrong, right, strict=True) if name is not None}
    return addresses_of_others(subject, Displaced(found, 0))


def _is_of_the_row(names: Names, index: int, value: int) -> bool:
    """Return whether the host of a value is among the other servers or next to them, and the server itself is not.

    A stand-in takes the place of such a host; a server that was added may follow another scheme.
    """
    others = [number for place, number in enumerate(names.numbers) if number is not None and place != index]
    meant, own = (value - names.base) // names.step, names.numbers[index]
    return own is not None and bool(others) and min(others) - 1 <= meant <= max(others) + 1


def _of_another_host(subject: Subject, index: int, meant: str) -> Finding:
    """Return the finding on the only server whose addresses are those of a host that is not in the table.

    A stand-in was probably written in place of a host, and the addresses of its devices stayed.
    """
    table, order, names = subject.table, order_of_addresses(subject), names_by_addresses(subject)
    row = table.servers[index].rows[0]
    likely, number = "", names.numbers[index] if names is not None else None
    if names is not None and order is not None and number is not None:
        first = (address_numbers(subject) or [])[row] + names.base + names.step * number - order.first[index]
        likely = f', by the order of the others "{address_text(subject, first)}"'
    return Finding(
        f"the device_ips of {named_server(subject, index)} do not follow its server_id, as those of the "
        f"{count(len(table.servers) - 1, 'other server')} do: by the order of the others they are those of {quoted(meant)}, which is not in the table",
        subject.device_path(row, "device_ip"),
        f"{how(subject, row)}: if it is not {quoted(table.device_ips[row])}, write the addresses of this host in this server{likely} and so on; if it is "
        f"{quoted(table.device_ips[row])}, nothing is wrong",
        (Related(subject.server_path(index, "server_id"), "the server_id here"),),
    )


def _is_of_another_network(name: str, meant: str) -> bool:
    """Return whether two names are addresses of different networks: the host was taken by another address of it."""
    same = name.rpartition(".")[0] == meant.rpartition(".")[0]
    return not same and packed(name) is not None and packed(meant) is not None


def _is_between(numbers: Sequence[int | None], index: int) -> bool:
    """Whether the number of a server is one more than that of the server before it, and one less than that of the next."""
    own, beside = numbers[index], [numbers[at] for at in (index - 1, index + 1) if 0 <= at < len(numbers)]
    return own is not None and {(one or 0) - own for one in beside if one is not None} in ({-1, 1}, {-1}, {1})


def _mistyped_name(subject: Subject, index: int, meant: str) -> Finding:
    """Return the finding on the only server_id that does not follow the addresses, and is near the one that does.

    A server_id that stands between its neighbours is rather right, and the addresses are those of another server.
    """
    server, order, numbers = (
        subject.table.servers[index],
        order_of_addresses(subject),
        address_numbers(subject),
    )
    row, device = server.rows[0], subject.table.device_numbers[server.rows[0]]
    text, names = quoted(subject.table.device_ips[row]), names_by_addresses(subject)
    others = count(len(subject.table.servers) - 1, "other server")
    path = subject.server_path(index, "server_id")
    on_other = f"`hccn_tool -i {device} {address_query(subject)}` on {shown_host(meant)}"
    if order and names and numbers and _is_between(names.numbers, index):
        right = address_text(
            subject,
            names.base + names.step * (names.numbers[index] or 0) + numbers[row] - order.first[index],
        )
        return Finding(
            f"server_id {quoted(server.server_id)} of server {index + 1} does not follow the addresses of its devices, as those of "
            f"the {others} do: they are probably the addresses of {quoted(meant)}",
            path,
            f"{how(subject, row)}: if it is not {text}, but {quoted(right)} or another one, correct the addresses of this server; "
            f'only if it is {text}, or if {server.server_id} is not a host of the job and {on_other} shows {text}, write "{meant}"',
            (Related(subject.device_path(row, "device_ip"), f"{text} here"),),
        )
    message = (
        f"server_id {quoted(server.server_id)} of server {index + 1} does not follow the addresses of its devices, as those of the "
        f"{others} do: it was mistyped, or the machine was replaced"
    )
    if not is_near(server.server_id, meant):
        message = (
            f"server_id {quoted(server.server_id)} of server {index + 1} is outside the network of all others: it is perhaps "
            f"another address of the host, which by the order of the others is {quoted(meant)}"
        )
    return Finding(
        message,
        path,
        f"{how(subject, row)}: if it is {text}, nothing is wrong; if {quoted(server.server_id)} is not a host of the job, "
        f'and {on_other} shows {text}, write "{meant}"',
    )
