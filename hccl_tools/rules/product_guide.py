"""Rules of the products' guides that HCCL's parser does not enforce.

A job that violates them starts, and then runs slowly, hangs or fails. The table of products contains the
limits of each product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import count
from hccl_tools.rules.commands import how
from hccl_tools.rules.moved_entries import is_listed_twice, owners
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.rules.topology import device_sets, devices_place, other_chip, servers_of_refused_count

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    Hint: number the ranks server by server
    """
    numbers = subject.table.rank_numbers
    if numbers == list(range(len(numbers))) or set(numbers) != set(range(len(numbers))):
        return  # in order, or not 0 to N-1, which another rule reports
    if moved := owners(subject):
        if not is_listed_twice(subject):  # Else HCC303 names the entries.
            yield from _entries_of_others(subject, moved)
        return
    for index, server in enumerate(subject.table.servers):
        own = {number for row in server.rows if (number := numbers[row]) is not None}
        if own and max(own) - min(own) + 1 > len(server.rows) and len(own) == len(server.rows):
            message = f'server "{server.server_id}" has ranks {min(own)} to {max(own)}, but not all of them'
            yield Finding(message, subject.server_path(index, "device"), "number the ranks server by server")


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
    words="the guide of MindOCR",
)
def devices_across_machines(subject: Subject) -> Iterator[Finding]:
    """A 910A job on several machines does not use all eight devices of each machine.

    This is a rule of MindOCR's guide to distributed training. HCCL and its own guide also accept 1, 2 or 4 devices
    per machine if all machines have the same number of devices.

    Base: 2x8
    Example: base 2x4
    Instead: table
    Hint: HCCL accepts this; to allow it: --ignore HCC308
    """
    wanted, sets = subject.product.cluster_count, device_sets(subject)
    if wanted is None or len(sets) == 1:
        return
    wrong = {name: devices for name, devices in sets.items() if len(devices) != wanted}
    for name, devices in wrong.items():
        has = count(len(devices), "device")
        rest, hint = (
            f"a job on several machines uses all {wanted} devices of each",
            _other_machine(subject, "HCC308"),
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
