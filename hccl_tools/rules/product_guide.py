"""Rules of the products' guides that HCCL's parser does not enforce.

A job that violates them starts, and then runs slowly, hangs or fails. The table of products contains the
limits of each product.
"""

from __future__ import annotations

from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.rules.commands import how
from hccl_tools.rules.filled_columns import filled_servers, servers_filled
from hccl_tools.rules.moved_entries import is_listed_twice, owners
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.rules.surplus_devices import surplus_devices, without_surplus
from hccl_tools.rules.topology import device_sets, devices_place, other_chip, servers_of_refused_count

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The most servers that a hint names.
_MOST_NAMED = 8
_GUIDE = "HCCL guide, constraints.md"


@rule(
    "HCC205",
    "ranks-across-servers",
    "forbidden",
    formats=SERVER_LIST,
    needs=("rank_id",),
    source="HCCL guide, rank_table_config_910.md, `rank_id`",
)
def ranks_across_servers(subject: Subject) -> Iterator[Finding]:
    """The ranks of a server are not consecutive: ranks of different servers are mixed.

    HCCL does not check this, but its algorithms for several servers assume consecutive ranks on each server.

    Base: 2x8
    Example: /server_list/0/device/7/rank_id = "8"; /server_list/1/device/0/rank_id = "7"
    Instead: table
    Hint: write "rank_id": "7" here, and "rank_id": "8" in the other place
    """
    numbers = subject.table.rank_numbers
    if numbers == list(range(len(numbers))) or set(numbers) != set(range(len(numbers))):
        return  # in order, or not 0 to N-1, which another rule reports
    if moved := owners(subject):
        if not is_listed_twice(subject):  # Else HCC303 names the entries.
            yield from _entries_of_others(subject, moved)
        return
    wrong = _mixed_servers(subject)
    if not wrong:
        return
    if len(rows := _two_exchanged(subject)) == 2:
        yield _exchanged_ranks(subject, *rows)
        return
    message, hint = _all_mixed(subject, wrong)
    if surplus := surplus_devices(subject):
        hint = without_surplus(subject, next(iter(surplus)))
    for index, (low, high) in wrong.items():
        name = subject.table.servers[index].server_id
        yield Finding(
            f'server "{name}" has ranks {low} to {high}, but not all of them', subject.server_path(index, "device"),
            hint, alike=(message, hint),
        )  # fmt: skip


def _mixed_servers(subject: Subject) -> dict[int, tuple[int, int]]:
    """Return the servers whose ranks are not consecutive, with the lowest and the highest."""
    numbers, found = subject.table.rank_numbers, {}
    for index, server in enumerate(subject.table.servers):
        own = {number for row in server.rows if (number := numbers[row]) is not None}
        if own and max(own) - min(own) + 1 > len(server.rows) and len(own) == len(server.rows):
            found[index] = min(own), max(own)
    return found


def _two_exchanged(subject: Subject) -> list[int]:
    """Return the rows that do not have the rank of their place in the file, at most three."""
    numbers = subject.table.rank_numbers
    return list(islice((row for row, number in enumerate(numbers) if number != row), 3))


def _exchanged_ranks(subject: Subject, row: int, other: int) -> Finding:
    table = subject.table
    here, there = (quoted(table.servers[table.server_of_row[one]].server_id) for one in (row, other))
    own, others = (table.rank_ids[one] for one in (row, other))
    return Finding(
        f"ranks {others} and {own} are exchanged between servers {here} and {there}",
        subject.device_path(row, "rank_id"),
        f'write "rank_id": "{others}" here, and "rank_id": "{own}" in the other place',
        (Related(subject.device_path(other, "rank_id"), "the other one"),),
    )


def _all_mixed(subject: Subject, wrong: dict[int, tuple[int, int]]) -> tuple[str, str]:
    """Return message and hint for all servers whose ranks are not consecutive."""
    servers, numbers = subject.table.servers, subject.table.rank_numbers
    begins = [*accumulate((len(server.rows) for server in servers), initial=0)]
    right = [
        f"{begin}-{end - 1} in {quoted(server.server_id)}"
        for server, (begin, end) in zip(servers, pairwise(begins), strict=True)
        if end > begin and {numbers[row] for row in server.rows} != set(range(begin, end))
    ]
    hint = f"number the ranks server by server, in the order of the file: {and_more(right, _MOST_NAMED)}"
    strides = {
        (numbers[row] or 0) - place * len(servers) - index
        for index, server in enumerate(servers)
        for place, row in enumerate(server.rows)
    }
    if len({len(server.rows) for server in servers}) == 1 and strides == {0} and len(wrong) == len(servers):
        return "the ranks go device by device over all servers, and not server by server", hint
    names = and_more([quoted(servers[index].server_id) for index in wrong])
    return f"the ranks of servers {names} are mixed: none of them has consecutive ranks", hint


def _entries_of_others(subject: Subject, moved: dict[int, int]) -> Iterator[Finding]:
    """Yield the entries with ranks of another server, which has their devices."""
    table = subject.table
    for row, index in moved.items():
        here, there = (quoted(table.servers[one].server_id) for one in (table.server_of_row[row], index))
        yield Finding(
            f"{subject.rank_name(row)} is in the list of server {here}, and its neighbours are those of server {there}",
            subject.device_path(row, "rank_id"),
            f"{how(subject, row)}: if it is another one than in this entry, move the entry to the list of server {there}; "
            "else number the ranks server by server",
        )


@rule(
    "HCC307",
    "devices-on-one-machine",
    "forbidden",
    needs=("device_id",),
    stage="topology",
    source=f"{_GUIDE}, Atlas training series",
)
def devices_on_one_machine(subject: Subject) -> Iterator[Finding]:
    """A 910A job on one machine does not have 1, 2, 4 or 8 devices, although HCCL accepts it.

    Base: 1x4
    Example: /server_list/0/server_id = " 10.0.0.1"; remove /server_list/0/device/3
    Instead: table
    Hint: HCCL accepts this; to allow it: --ignore HCC307
    """
    counts = subject.product.counts_per_server
    if counts is None or not subject.product.checks_hccs_count or servers_of_refused_count(subject):
        return
    sets = device_sets(subject)
    for name, devices in sets.items():
        if len(sets) == 1 and len(devices) not in counts:
            message = f"{len(devices)} devices on one machine; the guide allows {', '.join(map(str, counts))}"
            yield Finding(message, devices_place(subject, name), _other_machine(subject, "HCC307"))


@rule(
    "HCC308",
    "devices-across-machines",
    "forbidden",
    stage="topology",
    source="MindOCR guide, distribute_train.md",
    words="the guide of MindOCR (a toolkit of MindSpore)",
)
def devices_across_machines(subject: Subject) -> Iterator[Finding]:
    """A 910A job on several machines does not use all eight devices of each machine.

    This is a rule of MindOCR's guide to distributed training. HCCL and its own guide also accept 1, 2 or 4 devices
    per machine if all machines have the same number of devices.

    Base: 2x8
    Example: base 2x4
    Instead: table
    Hint: list all 8 devices of each server with the ranks 0 to 15 (`hccl-tools gen` on each host prints its entries), or use one server; only if fewer devices are intended, allow this, which HCCL accepts: --ignore HCC308
    """
    wanted, sets = subject.product.cluster_count, device_sets(subject)
    if (
        wanted is None
        or len(sets) == 1
        or (subject.product.even_servers and len(set(map(len, sets.values()))) > 1)
    ):
        return  # HCC306 reports uneven servers, which HCCL refuses.
    wrong = {name: devices for name, devices in sets.items() if len(devices) != wanted}
    surplus = {subject.table.servers[index].server_id for index in surplus_devices(subject)}
    for name, devices in wrong.items():
        if name in surplus:
            continue  # HCC304 or HCC302 reports the entry that is one too many.
        has = count(len(devices), "device")
        rest, hint = (
            f"a job on several machines uses all {wanted} devices of each",
            _whole_machines(subject, wanted, len(sets)),
        )
        yield Finding(
            f'server "{name}" has {has}; {rest}', devices_place(subject, name), hint,
            alike=(f"servers have {has}; {rest}", hint),
        )  # fmt: skip


@rule(
    "HCC309",
    "devices-across-groups",
    "forbidden",
    needs=("device_id",),
    stage="topology",
    source=f"{_GUIDE}, Atlas training series",
)
def devices_across_groups(subject: Subject) -> Iterator[Finding]:
    """A job uses two or four devices from both groups of a 910A, 0-3 and 4-7.

    HCCS connects only the devices of one group. HCCL accepts any two devices, and six sets of four devices
    from both groups; the guide forbids all of these.

    Example: /server_list/0/device/1/device_id = "4"
    Instead: /server_list/0/device/1/device_id = "1"
    Hint: use devices of one group; HCCL accepts this; to allow it: --ignore HCC309
    """
    size, legal = subject.product.group_size, subject.product.four_device_sets
    if size is None:
        return
    for name, devices in device_sets(subject).items():
        crosses = len({device // size for device in devices}) > 1
        if crosses and (len(devices) == 2 or (legal is not None and devices in legal)):
            shown = ",".join(map(str, devices))
            starts = range(0, subject.product.device_limit, size)
            groups = " and ".join(f"{start}-{start + size - 1}" for start in starts)
            yield Finding(
                f"devices {shown} are from both groups, {groups}",
                devices_place(subject, name),
                f"use devices of one group; {_other_machine(subject, 'HCC309')}",
            )


def _whole_machines(subject: Subject, wanted: int, servers: int) -> str:
    """Return the hint on machines with fewer devices: first what is usual, then how to allow the exception."""
    if filled := filled_servers(subject):
        return servers_filled(subject, filled, _other_machine(subject, "HCC308"))[1]
    ranks = "" if subject.table.format == "group_list" else f" with the ranks 0 to {wanted * servers - 1}"
    return (
        f"list all {wanted} devices of each server{ranks} (`hccl-tools gen` on each host prints its entries), or use one server; only if "
        f"fewer devices are intended, allow this, which HCCL accepts: --ignore HCC308{other_chip(subject)}"
    )


def _other_machine(subject: Subject, rule_id: str) -> str:
    return f"HCCL accepts this; to allow it: --ignore {rule_id}{other_chip(subject)}"


@rule("HCC613", "several-servers", "advice", source=f"{_GUIDE}, Atlas 300I Duo")
def several_servers(subject: Subject) -> Iterator[Finding]:
    """The job spans several servers, but the guide says that the product (300I Duo) supports one server only.

    An example of the guide's page on rank tables has two servers, and HCCL accepts them.

    Base: 2x8 300i
    Example: table
    Instead: product a2
    Hint: make a separate table for each server
    """
    if subject.product.single_server and len(subject.table.servers) > 1:
        message = f"{len(subject.table.servers)} servers; the guide supports {subject.product.title} on one server only"
        yield Finding(
            message,
            ("group_list",) if subject.table.format == "group_list" else ("server_list",),
            "make a separate table for each server",
        )
