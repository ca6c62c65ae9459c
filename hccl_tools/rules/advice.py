"""Advice on tables that HCCL accepts silently, but that are fragile or probably wrong."""

from __future__ import annotations

import re
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation import invisible
from hccl_tools.rules.address_columns import (
    PlainAddresses,
    addresses_read,
    all_plain,
    packed_addresses,
    plain_addresses,
)
from hccl_tools.rules.address_order import order_of_addresses, usual_name
from hccl_tools.rules.address_texts import joined_names
from hccl_tools.rules.commands import address_query, how, of_each
from hccl_tools.rules.moved_entries import owners
from hccl_tools.rules.nics import reported_blanks
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule, shared
from hccl_tools.rules.server_places import displaced_addresses
from hccl_tools.rules.spelling import misspelt
from hccl_tools.table.addresses import AF_INET, is_host, is_loopback, is_netmask, packed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@rule("HCC605", "blanks-in-server-id", "advice", source="hccl_communicator_attrs_host.cc:286 (SalTrim)")
def blanks_in_server_id(subject: Subject) -> Iterator[Finding]:
    """A server_id or super_pod_id begins or ends with blanks.

    One part of HCCL strips the blanks before it compares ids; other parts do not. HCCL may then treat two
    servers as one server.

    Example: /server_list/0/server_id = "10.0.0.1 "
    Instead: /server_list/0/server_id = "10.0.0.1"
    Hint: delete the blanks
    """
    names = set(map(attrgetter("server_id"), subject.table.servers))
    for index, server in enumerate(subject.table.servers):
        if server.server_id != (plain := server.server_id.strip()) and not _is_told(
            subject, server.server_id
        ):
            if plain in names and subject.table.format in SERVER_LIST:
                continue  # HCC616 reports it.
            yield from _of_name(subject, index, "has blanks at its ends", "delete the blanks")
    pods = {pod.super_pod_id for pod in subject.table.super_pods or ()}
    for number, pod in enumerate(subject.table.super_pods or ()):
        if pod.super_pod_id != (plain := pod.super_pod_id.strip()):
            is_other = plain in pods
            yield Finding(
                f"super_pod_id {quoted(pod.super_pod_id)} has blanks at its ends"
                + (f', and HCCL takes it for another super pod than "{plain}"' if is_other else ""),
                ("super_pod_list", number, "super_pod_id"),
                f'list its servers in the entry of super pod "{plain}", and remove this one'
                if is_other
                else "delete the blanks",
            )


def _of_name(subject: Subject, index: int, said: str, hint: str) -> Iterator[Finding]:
    """Yield the finding on the name of a server at each of its places; ``said`` follows the key with the name.

    A 2.0 table has no entries for servers: each rank of a host has its name, as the network instance of the
    first level.
    """
    table = subject.table
    key, paths = "server_id", [subject.server_path(index, "server_id")]
    if table.format == "2.0":
        key = "net_instance_id"
        paths = [(*subject.device_path(row, "level_list"), 0, key) for row in table.servers[index].rows]
    for path in paths:
        yield Finding(f'{key} "{table.servers[index].server_id}" {said}', path, hint)


def _is_told(subject: Subject, name: str) -> bool:
    """Whether HCC410, HCC618 or HCC619 reports a server_id with blanks at its ends."""
    is_other = invisible.first(name) is not None or joined_names(name)
    return bool(is_other) or name in reported_blanks(subject)


@rule("HCC606", "loopback-server-id", "advice", source="observed: hccl_8p_01234567_127.0.0.1.json")
def loopback_server_id(subject: Subject) -> Iterator[Finding]:
    """A table of several servers has a loopback server_id, which every host resolves to itself.

    Base: 2x8
    Example: /server_list/0/server_id = "127.0.0.1"
    Instead: /server_list/0/server_id = "10.0.0.1"
    Hint: write the server's own address
    """
    if len(subject.table.servers) == 1:
        return
    for index, server in enumerate(subject.table.servers):
        if is_loopback(server.server_id):
            said = "is a loopback address: every host resolves it to itself"
            yield from _of_name(subject, index, said, "write the server's own address")


@rule(
    "HCC607",
    "no-server-count",
    "advice",
    formats=SERVER_LIST,
    needs=("server_count",),
    source="rank_table_config_910.md, `server_count` (required); topoinfo_ranktableConcise.cc:251 (optional)",
)
def no_server_count(subject: Subject) -> Iterator[Finding]:
    """server_count is missing; the guide requires it, HCCL does not.

    Example: remove /server_count
    Instead: /server_count = "1"
    Hint: add "server_count": "1"
    """
    if (
        subject.table.declared
        and subject.table.declared.get("server_count") is None
        and subject.table.format == "1.0"
    ):
        yield Finding("server_count is missing", (), f'add "server_count": "{len(subject.table.servers)}"')


@rule(
    "HCC608",
    "unused-super-pods",
    "advice",
    formats=SERVER_LIST,
    source="topoinfo_ranktableConcise.cc:866-876",
)
def unused_super_pods(subject: Subject) -> Iterator[Finding]:
    """super_pod_list is ignored: the version is not 1.2, or the product has no super pods.

    Base: 1.2 1x2
    Example: product a2
    Instead: product a3
    Hint: if the machine is an A3, check the table with --product a3; otherwise make a new table on the hosts with `hccl-tools gen`: devices and addresses of this one are those of an A3
    """
    there = isinstance(subject.value, dict) and "super_pod_list" in subject.value
    if there and (subject.table.format != "1.2" or not subject.product.super_pods):
        why = (
            f"version {subject.table.format} has no super pods"
            if subject.table.format != "1.2"
            else f"{subject.product.title} has no super pods"
        )
        yield Finding(
            f"super_pod_list is ignored: {why}",
            ("super_pod_list",),
            _use_of_super_pods(subject),
            at_key=True,
        )


def _use_of_super_pods(subject: Subject) -> str:
    """Return what to do about a super_pod_list that is not read: only an A3 reads it, in version 1.2."""
    product = "" if subject.product.super_pods else "with --product a3"
    if subject.table.format == "1.2":
        new = "make a new table on the hosts with `hccl-tools gen`: devices and addresses of this one are those of an A3"
        sdids = subject.table.columns.get("super_device_id")
        other = new if sdids is not None and any(sdids) else "omit super_pod_list"
        return f"if the machine is an A3, check the table {product}; otherwise {other}"
    if not product:  # The reader has named an A3.
        return 'write "version": "1.2", in which HCCL reads it; only if the machine is not an A3, omit super_pod_list'
    return f'on an A3 write "version": "1.2" and check the table {product}; on other machines omit super_pod_list'


@rule(
    "HCC609",
    "same-address-twice",
    "advice",
    needs=("device_ip",),
    source="topoinfo_ranktableParser.cc:532 (texts are compared)",
)
def same_address_twice(subject: Subject) -> Iterator[Finding]:
    """Two devices have the same address in two spellings, which HCCL does not notice.

    Example: /server_list/0/device/0/device_ip = "fd00::1"; /server_list/0/device/1/device_ip = "fd00:0::1"
    Instead: /server_list/0/device/0/device_ip = "fd00::1"; /server_list/0/device/1/device_ip = "fd00::2"
    Hint: give every device its own address
    """
    plain = plain_addresses(subject)
    if plain is not None and plain.families == {AF_INET}:
        return
    packed = packed_addresses(subject)
    first: dict[bytes, tuple[str, int]] = {}
    for row, addresses in enumerate(addresses_read(subject)):
        for text in addresses:
            value = packed[text]
            if value is None:
                continue
            spelt, seen = first.setdefault(value, (text, row))
            if spelt != text:
                related = (Related(subject.device_path(seen, "device_ip"), f"{quoted(spelt)} here"),)
                yield Finding(
                    f'device_ip "{text}" is another spelling of {quoted(spelt)}',
                    subject.device_path(row, "device_ip"),
                    "give every device its own address",
                    related,
                )


@rule(
    "HCC612",
    "some-devices-without-address",
    "advice",
    needs=("device_ip", "device_id"),
    source="topoinfo_ranktableConcise.cc:513-544 (needed between servers only)",
)
def some_devices_without_address(subject: Subject) -> Iterator[Finding]:
    """A device has no device_ip, but other devices of its server have a device_ip.

    HCCL accepts such a table if it has a single server, because the job does not need addresses. The
    device_ip was probably lost. After a merge with the table of another server, HCCL refuses the table.

    Base: 1x4
    Example: remove /server_list/0/device/1/device_ip
    Instead: table
    Hint: add the address: `hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1
    """
    required = len(subject.table.servers) > 1 and subject.product.needs_device_ip != "never"
    if all_plain(subject) or required:
        return

    ips, ids = subject.table.device_ips, subject.table.device_ids
    named = misspelt(subject, "device_ip")  # HCC604 reports the cause.
    for server in subject.table.servers:
        without = [row for row in server.rows if ips[row] in (None, "") and row not in named]
        for row in without if len(without) < len(server.rows) else ():
            yield Finding(f"device {ids[row]} has no device_ip, but other devices of its server have a device_ip",
                          subject.device_path(row),
                          f"add the address: {how(subject, row)}")  # fmt: skip


#: How a text begins that can be an address of no network adapter: loopback, multicast, broadcast.
_NO_ADAPTER = r"(?:127\.|22|23|255\.|169\.254\.|::1|ff|FF|[fF][eE][89aAbB])"
#: The length of an IPv4 address in bytes.
_IPV4 = 4
#: The first numbers of such IPv4 addresses.
_FIRST_OCTETS = frozenset({127, 169, *range(224, 256)})
_A_LINE_OF_THEM = rf"\n{_NO_ADAPTER}"


@rule(
    "HCC614",
    "impossible-device-ip",
    "advice",
    formats=SERVER_LIST,
    needs=("device_ip",),
    source="device_ip is the address of the device's own network adapter (rank_table_config_910.md)",
)
def impossible_device_ip(subject: Subject) -> Iterator[Finding]:
    """A device_ip cannot be that of a device: it is a loopback, link-local, multicast or broadcast address, or a server_id.

    HCCL accepts such a table, and the job fails when the devices connect.

    Base: 2x8
    Example: /server_list/0/device/0/device_ip = "127.0.0.1"
    Instead: /server_list/0/device/0/device_ip = "192.168.100.77"
    Hint: write the address of the device: `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    servers = {server.server_id for server in subject.table.servers}
    ips = subject.table.device_ips
    plain = plain_addresses(subject)
    if plain is None:
        ips = [text if type(text) is str else "" for text in ips]
    ends = _network_addresses(subject)
    if plain is not None and not ends and servers.isdisjoint(ips) and not _may_be_of_no_adapter(plain):
        return
    of_host = _of_their_host(subject, ips)
    is_of_no_adapter = re.compile(_NO_ADAPTER).match
    for row, text in enumerate(ips):
        if row in ends and not is_netmask(text):
            yield _impossible(subject, row, f"is the {ends[row]} address of a network")
            continue
        raw = packed(text) if text in servers or is_of_no_adapter(text) else None
        if raw is None or row in of_host:
            continue
        if text in servers:
            yield _of_a_host(subject, row)
        elif is_netmask(text):
            yield _impossible(subject, row, "is a netmask")
        elif _is_link_local(raw):
            yield _of_the_link(subject, row)
        elif is_loopback(text) or not is_host(raw):
            yield _impossible(subject, row, "is a loopback, multicast or broadcast address")


def _is_link_local(raw: bytes) -> bool:
    """Whether an address is one that a host gives itself, valid on its own link alone."""
    return raw[:2] == b"\xa9\xfe" if len(raw) == _IPV4 else raw[0] == 0xFE and raw[1] & 0xC0 == 0x80


@shared
def _on_all_of_the_link(_subject: Subject) -> dict[str, tuple[str, str]]:
    """Return message and hint on all link-local addresses, once the first of them has set both."""
    return {}


def _of_the_link(subject: Subject, row: int) -> Finding:
    what = "is a link-local address, which a host gives itself: other hosts do not reach it"
    found = _impossible(subject, row, what)
    several = "device_ips are link-local addresses, which a host gives itself: other hosts do not reach them"
    hints = f"write the address of each device, not one that begins with fe80 or 169.254: {of_each(subject, row)}; if the host shows no other one, set one first"
    hint = f"{found.hint}, if that is not link-local; if the host shows no other one, set one first"
    return found._replace(hint=hint, alike=_on_all_of_the_link(subject).setdefault("", (several, hints)))


def _may_be_of_no_adapter(plain: PlainAddresses) -> bool:
    """Whether an address may be that of no adapter, where each device has one address."""
    if plain.ipv4 is None:
        return re.search(_A_LINE_OF_THEM, plain.lines) is not None
    return not _FIRST_OCTETS.isdisjoint(plain.ipv4[::4])


def _impossible(subject: Subject, row: int, what: str) -> Finding:
    text = subject.table.device_ips[row]
    return Finding(
        f'device_ip "{text}" {what}',
        subject.device_path(row, "device_ip"),
        f"write the address of the device: {how(subject, row)}",
    )


def _of_a_host(subject: Subject, row: int) -> Finding:
    """Return the finding on an address that is a server_id: that of the device, or the server_id, is wrong."""
    table = subject.table
    index, text = table.server_of_row[row], table.device_ips[row]
    server = table.servers[index]
    if text != server.server_id or _is_of_host(subject, index):
        return _impossible(subject, row, "is the server_id of a host")
    name = usual_name(subject, index)
    known = f'; by the order of the others it is "{name}"' if name else ""
    others = next((one.server_id for place, one in enumerate(table.servers[:2]) if place != index), None)
    like = f", as in the other servers ({quoted(others)})" if others is not None else ""
    number = table.device_numbers[row]
    return Finding(
        f'server_id "{text}" is the address of its own device {number}: one of the two is wrong',
        subject.server_path(index, "server_id"),
        f"write the address of the host as server_id{like}{known}; only if the device has another address, correct its device_ip: "
        f"on that host, `hccn_tool -i {number} {address_query(subject)}` shows it",
        (Related(subject.device_path(row, "device_ip"), "the same address here"),),
    )


def _is_of_host(subject: Subject, index: int) -> bool:
    """Whether a server_id is in the network of the other server_ids, and not in that of its devices."""
    server, ips = subject.table.servers[index], subject.table.device_ips
    own = _network(server.server_id)
    rest = [row for row in server.rows if ips[row] != server.server_id]
    order = order_of_addresses(subject)
    if not rest or (
        order is not None and index in order.first and not _single_rows(subject).intersection(server.rows)
    ):
        return not rest
    return _networks(subject)[own] > 1 or not any(_network(str(ips[row])) == own for row in rest)


def _network(address: str) -> str:
    return address.rpartition(".")[0]


@shared
def _networks(subject: Subject) -> Counter[str]:
    """Return how many server_ids begin with the same numbers."""
    return Counter(_network(server.server_id) for server in subject.table.servers)


@shared
def _single_rows(subject: Subject) -> frozenset[int]:
    """Return the rows whose addresses do not follow the order of the others."""
    order = order_of_addresses(subject)
    return frozenset(() if order is None else order.single)


def _of_their_host(subject: Subject, ips: Sequence[str]) -> set[int]:
    """Return the rows of servers whose devices all have one address, which HCC404 reports."""
    servers = [one for one in subject.table.servers if len(one.rows) > 2]
    return {row for one in servers if len({ips[row] for row in one.rows}) == 1 for row in one.rows}


def _network_addresses(subject: Subject) -> dict[int, str]:
    """Return the rows outside the order of the others whose addresses end in 0 or 255, with what those are."""
    order = order_of_addresses(subject)
    plain = plain_addresses(subject)
    if order is None or plain is None or plain.families != {AF_INET}:
        return {}
    ips = subject.table.device_ips
    return {
        row: "first" if ips[row].endswith(".0") else "broadcast"
        for row in order.single
        if ips[row].endswith((".0", ".255"))
    }


@rule(
    "HCC610",
    "rank-order",
    "advice",
    formats=SERVER_LIST,
    needs=("rank_id", "device_id"),
    source="MindSpore rank_table.md",
)
def rank_order(subject: Subject) -> Iterator[Finding]:
    """Servers are not listed in the order of their ranks.

    HCCL numbers the servers in file order and the ranks by rank_id. If the two orders differ, MindSpore's
    formula RANK_ID = SERVER_ID * DEVICE_NUM + DEVICE_ID is wrong.

    Base: 2x8
    Example: swap /server_list/0 /server_list/1
    Instead: table
    Hint: list the servers in the order of their ranks
    """
    ranks = subject.table.rank_numbers
    if ranks == list(range(len(ranks))) or owners(subject) or set(ranks) != set(range(len(ranks))):
        return  # In order; or a rank or the list of an entry is wrong, which is another finding.
    if any(
        max(ranks[row] or 0 for row in server.rows) - min(ranks[row] or 0 for row in server.rows)
        >= len(server.rows)
        for server in subject.table.servers
        if server.rows
    ):
        return  # HCC205 reports servers with mixed ranks.
    if displaced_addresses(subject) is not None:
        return  # HCC633 reports servers with the devices of others, which another order does not put right.
    lowest = [min((ranks[row] or 0 for row in server.rows), default=0) for server in subject.table.servers]
    for index in range(1, len(lowest)):
        if lowest[index] < lowest[index - 1]:
            yield Finding(
                f'server "{subject.table.servers[index].server_id}" with rank {lowest[index]} is listed after a server with rank {lowest[index - 1]}',
                subject.server_path(index), "list the servers in the order of their ranks",
            )  # fmt: skip
            return


#: The lists of the formats, with the key under which their entries list servers or ranks.
_OTHER_LISTS = ("group_list", "rank_list", "server_list")


@rule(
    "HCC640",
    "second-list-ignored",
    "advice",
    formats=(*SERVER_LIST, "2.0"),
    source="topoinfo_ranktableConcise.cc:235-269; rank_table_info.cc:35-63 (other lists are not read)",
)
def second_list_ignored(subject: Subject) -> Iterator[Finding]:
    """The table has the list of another format beside its own, and HCCL ignores that list.

    Base: 2x8
    Example: /group_list = [{"group_name": "", "device_count": "1", "instance_count": "1", "instance_list": [{"pod_name": "a", "server_id": "10.0.0.3", "devices": [{"device_id": "0", "device_ip": "192.168.2.100"}]}]}]
    Instead: table
    Hint: if its entries belong to the job, write them as entries of server_list, each device with its rank_id; else delete "group_list"
    """
    own = "rank_list" if subject.table.format == "2.0" else "server_list"
    for key in _OTHER_LISTS if isinstance(subject.value, dict) else ():
        entries = subject.value.get(key) if key != own else None
        if not isinstance(entries, list) or not entries or _is_of_xllm(key, entries):
            continue
        what = ", each device with its rank_id" if own == "server_list" else ""
        yield Finding(
            f'HCCL reads "{own}" alone in this table, and ignores "{key}"',
            (key,),
            f'if its entries belong to the job, write them as entries of {own}{what}; else delete "{key}"',
            at_key=True,
        )


def _is_of_xllm(key: str, entries: list[Any]) -> bool:
    """Whether a list is the group_list of xLLM's mixture, which HCC661 reports."""
    return key == "group_list" and any(isinstance(one, dict) and "server_list" in one for one in entries)
