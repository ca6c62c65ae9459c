"""Rules on the servers of 1.0 and 1.2 tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.records import NamedTuple
from hccl_tools.rules.address_order import likely_name, taken_names, usual_name
from hccl_tools.rules.addresses import servers_of_no_host
from hccl_tools.rules.commands import address_query, host_of, how, shown_host
from hccl_tools.rules.copies import named_server, other_copies, server_copies, what_a_copy_needs
from hccl_tools.rules.filled_columns import filled_servers, names_filled, names_filled_down, servers_filled
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule, shared
from hccl_tools.rules.replaced_text import names_finding, replaced_names
from hccl_tools.rules.value_order import number_at_end
from hccl_tools.table.addresses import is_loopback, is_unset
from hccl_tools.table.hccl_numbers import byte_length, read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

#: SERVERID_MAX_LENGTH, in bytes.
LONGEST_SERVER_ID = 64
#: The fewest server_ids that show how the servers are numbered.
_LEAST_NUMBERED = 2


@rule(
    "HCC501",
    "server-count",
    "refused",
    code="EI0014",
    formats=SERVER_LIST,
    source="topoinfo_ranktableConcise.cc:235-269",
)
def server_count(subject: Subject) -> Iterator[Finding]:
    """server_count is not the number of servers.

    Example: /server_count = "2"
    Instead: /server_count = "1"
    Hint: add the missing server, or, if none is missing, write "server_count": "1"
    """
    count, servers = subject.table.declared.get("server_count"), len(subject.table.servers)
    if count is None or count == str(servers):
        return
    number = read_uint(count)
    if number is None:
        yield Finding(
            f'server_count "{count}" is not a number', ("server_count",),
            f'write "server_count": "{servers}"', right=str(servers),
        )  # fmt: skip
    elif number != servers and number != servers - len(server_copies(subject)):
        from hccl_tools.rules import doubts, misplaced_in_pods  # noqa: PLC0415  (4 ms; only where a count is wrong)

        if misplaced_in_pods.explains_count(subject, number):
            return  # HCC521 or HCC524 reports these servers.
        message = f'server_count is "{count}", but server_list has {servers} {"entry" if servers == 1 else "entries"}'
        doubt = doubts.on_servers(subject, number)
        if doubt is None:
            hint = f'write "server_count": "{servers}"'
            yield Finding(message, ("server_count",), hint, right=str(servers))
        else:
            message = f"{message}, and {doubt.reason}" if doubt.reason else message
            yield Finding(message, ("server_count",), doubt.hint, doubt.related)


def _copy(subject: Subject, index: int) -> Finding:
    first = server_copies(subject)[index].first
    return Finding(
        f"{named_server(subject, index)} is a copy of server {first + 1}: "
        "server_id, device_ids, device_ips and rank ids repeat",
        subject.server_path(index, "server_id"),
        what_a_copy_needs(subject, index),
        (Related(subject.server_path(first, "server_id"), "the first of the two"),),
    )


@rule(
    "HCC502",
    "server-id-length",
    "refused",
    needs=("server_id",),
    source="topoinfo_ranktableConcise.cc:289-300",
)
def server_id_length(subject: Subject) -> Iterator[Finding]:
    """A server_id is empty or longer than 64 bytes.

    The limit is in bytes, not characters: 22 Chinese characters exceed it.

    Example: /server_list/0/server_id = ""
    Instead: /server_list/0/server_id = "10.0.0.1"
    Hint: give the server its address
    """
    for index, server in enumerate(subject.table.servers):
        size = byte_length(server.server_id)
        if not server.server_id:
            yield _empty(subject, index)
        elif size > LONGEST_SERVER_ID:
            message = f"server_id has {size} bytes; HCCL accepts at most {LONGEST_SERVER_ID}"
            yield Finding(
                message,
                subject.server_path(index, "server_id"),
                "give the server a shorter id, such as its address",
            )


def _empty(subject: Subject, index: int) -> Finding:
    """Return the finding on an empty server_id: with the addresses of its devices, the values of a host are missing."""
    name = likely_name(subject, index) or _name_by_place(subject, index)
    likely = "" if name is None else f': by the order of the others it is "{name}"'
    path = subject.server_path(index, "server_id")
    if index not in servers_of_no_host(subject):
        return Finding("server_id is empty", path, f"give the server its address{likely}")
    table, rows = subject.table, subject.table.servers[index].rows
    device = "N" if (number := table.device_numbers[rows[0]]) is None else number
    first, last = (quoted(table.device_ips[row]) for row in (rows[0], rows[-1]))
    what = "all its device_ips are empty"
    if table.device_ips[rows[0]]:
        what = f"its device_ips lack their beginning ({first} to {last})"
    return Finding(
        f"server_id of server {index + 1} is empty, and {what}: a program probably filled in a template with variables that were not set",
        path,
        f"set the variables and make the file again, or write the values of this host: its address as server_id{likely}, and the device_ips, "
        f"as `hccn_tool -i {device} {address_query(subject)}` on it shows that of device {device}, and so on for each device",
    )


@rule(
    "HCC503",
    "duplicate-server-id",
    "refused",
    code="EI0014",
    formats=SERVER_LIST,
    needs=("server_id",),
    source="topoinfo_ranktableConcise.cc:306",
)
def duplicate_server_id(subject: Subject) -> Iterator[Finding]:
    """Two servers have the same server_id.

    HCCL's message reports a repeated "IP", whatever the server_id is. The usual cause is a table that was
    merged with itself.

    Base: 2x8
    Example: /server_list/1/server_id = "10.0.0.1"
    Instead: /server_list/1/server_id = "10.0.0.2"
    Hint: `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0: if it is "192.168.0.100", write another server_id in server 2, if it is "192.168.1.100", in server 1
    """
    servers = subject.table.servers
    if len({server.server_id for server in servers}) == len(servers):
        return
    if filled := filled_servers(subject):
        message, hint = servers_filled(subject, filled, "give every entry the server_id of its own host")
        yield Finding(message, subject.server_path(1, "server_id"), hint)
        return
    first: dict[str, int] = {}  # Of empty ones HCC502 reports each.
    copies, parted, again = server_copies(subject), _parted(subject), other_copies(subject)
    if again:
        yield _listed_again(subject, again)
    times, filled_down, replaced = (
        Counter(server.server_id for server in servers),
        set[int](),
        replaced_names(subject),
    )
    for run in names_filled_down(subject) if not (copies or parted or again) else ():
        yield names_filled(subject, run)
        filled_down |= {*run}
    if replaced is not None and not filled_down:
        yield names_finding(subject, replaced)
        again = {**again, **dict.fromkeys(range(len(servers)), 0)}  # It explains the equal ones.
    for index, server in enumerate(servers):
        if (
            (seen := first.setdefault(server.server_id, index)) != index
            and index not in again
            and index not in filled_down
            and server.server_id
        ):
            if index in copies and copies[index].same_id:
                yield _copy(subject, index)
                continue
            number, is_parted = times[server.server_id], server.server_id in parted
            users = f"{number} entries of server_list" if is_parted or number > 2 else "two servers"
            yield Finding(
                f'server_id "{server.server_id}" is used by {users}',
                subject.server_path(index, "server_id"),
                _in_one_entry(subject) if is_parted else _right_of_two(subject, index, seen),
                (Related(subject.server_path(seen, "server_id"), "first used here"),),
            )


def _in_one_entry(subject: Subject) -> str:
    """Return the hint on a server with several entries, with the server_count that the table then needs."""
    declared = subject.table.declared.get("server_count")
    right = str(len(taken_names(subject)))
    count = f', and write "server_count": "{right}"' if declared is not None and declared != right else ""
    return f"list all devices of this server in one entry{count}"


def _right_of_two(subject: Subject, index: int, seen: int) -> str:
    """Return the hint on a server_id of two servers: how to find out which of them it belongs to."""
    hint, rows = (
        "give every server its own server_id",
        [subject.table.servers[one].rows for one in (seen, index)],
    )
    ips = [subject.table.device_ips[own[0]] if own else None for own in rows]
    if (
        not all(isinstance(text, str) and text for text in ips)
        or ips[0] == ips[1]
        or "device_ip" in subject.damaged
    ):
        return hint
    first, second = (quoted(str(text)) for text in ips)
    text = subject.table.servers[index].server_id
    if is_loopback(text) or is_unset(text):
        return (
            f'write the own address of each host in its entry: "{text}" is not the address of a single host'
        )
    if (host := host_of(text)) != text.strip():
        return (
            f'{how(subject, rows[0][0])}: if it is {first}, write "{host}" alone in server {seen + 1} and another server_id in '
            f"server {index + 1}, if it is {second}, the other way round"
        )
    hint = (
        f"{how(subject, rows[0][0])}: if it is {first}, write another server_id in server {index + 1}, "
        f"if it is {second}, in server {seen + 1}"
    )
    likely = [(one, name) for one in (index, seen) if (name := usual_name(subject, one)) is not None]
    if len(likely) == 1:
        hint += f'; by the order of the others, server {likely[0][0] + 1} is "{likely[0][1]}"'
    return hint


def _listed_again(subject: Subject, again: dict[int, int]) -> Finding:
    """Return the finding on servers that are in server_list twice with all their values."""
    servers = subject.table.servers
    which, firsts = (
        f"server{'' if len(one) == 1 else 's'} {fold(number + 1 for number in one)}"
        for one in (list(again), list(again.values()))
    )
    hint = "remove them" if len(again) > 1 else "remove it"
    rest = [row for index, server in enumerate(servers) if index not in again for row in server.rows]
    if {subject.table.rank_numbers[row] for row in rest} != set(range(len(rest))):
        hint += ", and number the ranks on"
    declared, number = subject.table.declared.get("server_count"), str(len(servers) - len(again))
    if declared is not None and declared != number:
        hint += f', and write "server_count": "{number}"'
    index, seen = next(iter(again.items()))
    if (
        len(again) == 1
        and declared == str(len(servers))
        and (instead := _instead_of_another(subject, index, seen))
    ):
        is_inside = instead.startswith(_BY_ORDER)
        hint = f"{instead}; only if no server is missing, {hint}" if is_inside else f"{hint}; {instead}"
    if other := _differing(subject, index, seen) if len(again) == 1 else "":
        hint = hint.replace("remove it", "remove the other, and number the ranks without a gap", 1)
        hint = f"{other}: keep the entry of the present one; {hint}"
    return Finding(
        f"{which} {'is' if len(again) == 1 else 'are'} {firsts} again: server_ids, device_ids and addresses repeat, as if a list was "
        "joined with itself",
        subject.server_path(index, "server_id"),
        hint,
        (Related(subject.server_path(seen, "server_id"), "the first of the two"),),
    )


_BY_ORDER = "by the order of the others"


def _instead_of_another(subject: Subject, index: int, seen: int) -> str:
    """Return the hint on a server that stands in the place of another one; "" if the ranks do not say so.

    The ranks are 0 to N-1 and server_count is right, so that both count the entry.
    """
    table = subject.table
    if set(table.rank_numbers) != set(range(len(table))):
        return ""
    named = [(one, name) for one in (index, seen) if (name := _name_by_place(subject, one)) is not None]
    if len(named) != 1:
        return "only if another server is missing, write its server_id and device_ips in one of the two entries, and keep the ranks"
    place, name = named[0]
    if 0 < place < len(table.servers) - 1 and not _differing(subject, index, seen):
        return (
            f'{_BY_ORDER}, server {place + 1} can be "{name}", which has no entry: if it is in the job, write this server_id and '
            f"the device_ips of its devices in this entry (`hccl-tools gen` on {shown_host(name)} prints them), and keep the ranks"
        )
    return (
        f'only if another server is in the job and missing here (by the order of the others, server {place + 1} can be "{name}"), '
        "write its server_id and device_ips in this entry (`hccl-tools gen` on it prints them), and keep the ranks"
    )


def _differing(subject: Subject, index: int, seen: int) -> str:
    """Return which other values of two entries of one server differ, as after a restart of its pod; "" if none do."""
    fields = [subject.table.servers[one].fields for one in (seen, index)]
    for key, value in fields[0].items():
        pair = (value, fields[1].get(key))
        if all(isinstance(one, str) and one for one in pair) and pair[0] != pair[1]:
            ask = " (`kubectl get pods -o wide` shows its address)" if key == "container_ip" else ""
            shown = " and ".join(quoted(str(one)) for one in pair)
            return f"{key} differs ({shown}), as after a restart of the pod or server{ask}"
    return ""


class _Numbered(NamedTuple):
    """The server_ids as numbers in a row.

    Attributes:
        keys: The text before the number of each server_id, and the number less its place; None without a number.
        times: How many servers have each key.
        plain: Of these, those whose number is written without zeros at the beginning.
    """

    keys: list[tuple[str, int] | None]
    times: Counter[tuple[str, int] | None]
    plain: Counter[tuple[str, int] | None]


@shared
def _numbered(subject: Subject) -> _Numbered:
    keys = list[tuple[str, int] | None]()
    plain = Counter[tuple[str, int] | None]()
    for place, server in enumerate(subject.table.servers):
        part = number_at_end(server.server_id)
        keys.append(None if part is None else (part[0], part[1] - place))
        plain[keys[-1]] += part is not None and server.server_id == f"{part[0]}{part[1]}"
    return _Numbered(keys, Counter(keys), plain)


def _name_by_place(subject: Subject, index: int) -> str | None:
    """Return the server_id that no server has and that one has by its place, if all others are numbered in the order of the file."""
    keys, times, plain = _numbered(subject)
    if len(keys) <= _LEAST_NUMBERED or len(times) > 2:
        return None
    others = [key for key, number in times.items() if number > (key == keys[index])]
    if len(others) != 1 or others[0] is None:
        return None
    begin, first = others[0]
    right = f"{begin}{first + index}"
    is_plain = plain[others[0]] >= len(keys) - 1
    return right if is_plain and first + index >= 0 and right not in taken_names(subject) else None


def _parted(subject: Subject) -> set[str]:
    """Return the server_ids of several entries that have different devices, which one entry can list."""
    numbers = subject.table.device_numbers
    seen: dict[str, set[int | None]] = {}
    repeated = set[str]()
    for server in subject.table.servers:
        known, own = seen.setdefault(server.server_id, set()), {numbers[row] for row in server.rows}
        if not known.isdisjoint(own):
            repeated.add(server.server_id)
        known |= own
    return seen.keys() - repeated
