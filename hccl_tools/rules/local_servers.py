"""Rules that look for this host among the table's servers (``validate --local``)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.host.recognition import Recognised, listed_addresses, recognise, same
from hccl_tools.notation.phrases import and_more
from hccl_tools.rules.registry import SERVER_LIST, Finding, LocalSubject, rule, shared
from hccl_tools.table.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator


#: What to do about a table that does not match this host.
GENERATE = "make a new table on this host: `hccl-tools gen`"


@shared
def here(subject: LocalSubject) -> Recognised:
    """Return the servers of the table that match this host."""
    return recognise(subject.table, subject.host)


def rows_here(subject: LocalSubject) -> list[tuple[int, int]]:
    """Return the row and device id of this host's devices in the table; empty unless one server matches."""
    numbers = subject.table.device_numbers
    own = [subject.table.servers[index] for index in here(subject).servers]
    # The pods of a group_list may share a machine.
    rows = [row for server in own for row in server.rows] if len({one.server_id for one in own}) == 1 else []
    known = [(row, number) for row in rows if (number := numbers[row]) is not None]
    return _of_this_host(subject, known) if subject.table.format == "2.0" else known


def _of_this_host(subject: LocalSubject, rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out the other hosts of a chassis, which is one server in a 2.0 table: their device ids repeat."""
    times = Counter(number for _, number in rows)
    devices = subject.host.devices
    return [
        (row, number)
        for row, number in rows
        if times[number] == 1
        or number not in devices
        or not {same(text) for _, text in listed_addresses(subject.table, row)}.isdisjoint(
            map(same, devices[number].ips)
        )
    ]


@rule(
    "HCC551",
    "no-server-is-this-host",
    "fails-later",
    stage="none",
    source="HCCL rank table guides, `server_id`, `device_ip`: the values of the host that a rank runs on",
)
def no_server_is_this_host(subject: LocalSubject) -> Iterator[Finding]:
    """No server of the table matches this host by its devices' addresses, its own addresses or its name.

    Base: 1.0 2x8
    Example: host elsewhere
    Instead: host
    Hint: this host is node; its devices have 10.9.9.0, 10.9.9.1, 10.9.9.2, 10.9.9.3 and 4 more; make a new table on this host: `hccl-tools gen`, or run the check on the right machine
    """
    if here(subject).servers:
        return
    names = [f'"{server.server_id}"' for server in subject.table.servers]
    addresses = sorted({ip for state in subject.host.devices.values() for ip in state.ips})
    known = f"; its devices have {and_more(addresses)}" if addresses else ""
    yield Finding(
        f"no server of the table is this host: the table lists {and_more(names)}",
        (),
        f"this host is {', '.join(sorted(subject.host.names))}{known}; {GENERATE}, or run the check on the right machine",
    )


@rule(
    "HCC552",
    "several-servers-are-this-host",
    "fails-later",
    needs=("server_id",),
    stage="none",
    source="HCCL rank table guides, `server_id`: one entry for each machine",
)
def several_servers_are_this_host(subject: LocalSubject) -> Iterator[Finding]:
    """Two servers of the table are this host: one machine is listed twice under different names.

    Base: 1.0 2x8
    Example: /server_list/0/host_ip = "10.7.7.7"; /server_list/1/host_ip = "10.7.7.7"; host elsewhere; host is 10.7.7.7
    Instead: /server_list/0/host_ip = "10.7.7.7"; host elsewhere; host is 10.7.7.7
    Hint: list every machine once
    """
    found = here(subject)
    names = {subject.table.servers[index].server_id: index for index in reversed(found.servers)}
    if len(names) > 1:
        (other, second), (one, first) = list(names.items())[-2:]
        yield Finding(
            f'servers "{one}" and "{other}" are both this host, by {found.way}',
            subject.server_path(second),
            "list every machine once",
            (Related(subject.server_path(first), "first listed here"),),
        )


@rule(
    "HCC642",
    "server-id-not-this-host-s",
    "advice",
    source="HCCL accepts any text as server_id; MindIE and launchers use it as the host's address",
)
def server_id_not_this_host_s(subject: LocalSubject) -> Iterator[Finding]:
    """The server_id of the server with this host's devices is not an address of this host.

    HCCL does not use the address, but a launcher that looks for its own host in the table does.

    Base: 1.0 1x2
    Example: host is 10.4.4.4
    Instead: host
    Hint: write the address at which other machines reach this host, or give the server a host_ip
    """
    servers = here(subject).servers
    if len(servers) != 1 or subject.table.format == "2.0":
        return  # a 2.0 table names network instances, not servers
    server = subject.table.servers[servers[0]]
    text = server.server_id
    if isinstance(same(text), str) or is_loopback(text) or subject.host.is_local(text):
        return
    if server.host_ip is not None and subject.host.is_local(server.host_ip):
        return
    hint = "write the address at which other machines reach this host"
    yield Finding(
        f'server_id "{text}" is not an address of this host, although the server has this host\'s devices',
        subject.server_path(servers[0], "server_id"),
        # Of an instance of a group_list, no reader takes a host_ip.
        f"{hint}, or give the server a host_ip" if subject.table.format in SERVER_LIST else hint,
    )
