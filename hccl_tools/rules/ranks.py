"""Rules on rank ids, which must be 0 to N-1, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold, rank_list
from hccl_tools.rules import rank_devices, right_texts
from hccl_tools.rules.commands import address_query, shown_host
from hccl_tools.rules.copies import (
    absent_devices,
    absent_ranks,
    copied_rows,
    device_copies,
    named_server,
    old_and_new,
    server_copies,
    stand_ins,
    surplus_rows,
    what_a_copy_needs,
)
from hccl_tools.rules.entries_again import are_counted_once, entries_again, of_entries
from hccl_tools.rules.moved_entries import exchanged, with_address_as_id
from hccl_tools.rules.numbers import all_read_wrong, decimal_hint, is_sloppy
from hccl_tools.rules.rank_order import (
    absent_phrase,
    ranks_by_order,
    right_ranks,
    shown_rank,
)
from hccl_tools.rules.rank_restarts import half_again, restarted_servers, restarts
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.rules.surplus_devices import (
    pasted_devices,
    refused_rows,
    refused_surplus,
    surplus_finding,
)
from hccl_tools.table.hccl_numbers import UINT32_MAX, read_integer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

#: rank_table_info.cc:35, MAX_RANKCOUNT.
MOST_RANKS = 65536


@shared
def _are_0_to_n(subject: Subject) -> bool:
    numbers, size = subject.table.rank_numbers, len(subject.table)
    return numbers == list(range(size)) or set(numbers) == set(range(size))


def _known(ranks: range) -> set[int | None]:
    return set(ranks)


@rule(
    "HCC201",
    "rank-id-no-number",
    "refused",
    code="EI0014",
    needs=("rank_id",),
    source="topoinfo_ranktableConcise.cc:459",
)
def rank_id_no_number(subject: Subject) -> Iterator[Finding]:
    """A rank id is not a number that HCCL can read.

    Example: /server_list/0/device/1/rank_id = "one"
    Instead: /server_list/0/device/1/rank_id = "1"
    Hint: write "1", the rank that no device has
    """
    if _are_0_to_n(subject):
        return
    alike = dict[str, tuple[str, str]]()
    for row, number in enumerate(subject.table.rank_numbers):
        if number is None or not 0 <= number <= UINT32_MAX:
            finding = Finding(
                f"rank id {shown_rank(subject, row)} is not a whole number (0, 1, 2, ...)",
                subject.device_path(row, "rank_id"),
                _right_rank(subject),
            )
            if _are_in_names(subject):
                yield right_texts.without_name(finding, subject.table.rank_ids[row], "rank_id", alike)
                continue
            yield right_texts.named(finding, subject.table.rank_ids[row], right_texts.is_number)


@shared
def _are_in_names(subject: Subject) -> bool:
    """Whether the rank ids without the names beside their numbers are those from 0 on, each once."""
    table = subject.table
    read = zip(table.rank_ids, table.rank_numbers, strict=True)
    numbers = [right_texts.number_in(text) if number is None else number for text, number in read]
    return None not in numbers and len(set(numbers)) == len(numbers) == len(
        _known(range(len(numbers))) & set(numbers)
    )


def _right_rank(subject: Subject) -> str:
    absent = absent_ranks(subject)
    if len(absent) == 1:
        value = absent[0] if subject.table.format == "2.0" else f'"{absent[0]}"'
        return f"write {value}, the rank that no device has"
    return right_ranks(subject) or f"number the ranks 0 to {len(subject.table) - 1}"


def _rank_gaps() -> ModuleType:
    """Load the module on ranks that are missing, and with it those on what a count may mean."""
    from hccl_tools.rules import rank_gaps  # noqa: PLC0415  (6 ms; only where ranks are wrong)

    return rank_gaps


@rule(
    "HCC202",
    "rank-id-too-high",
    "refused",
    code="EI0014",
    needs=("rank_id",),
    stage="check",
    source="config.cc:359; rank_table_info.cc:69",
)
def rank_id_too_high(subject: Subject) -> Iterator[Finding]:
    """A rank id is not below the number of ranks, so there is a gap.

    Example: /server_list/0/device/1/rank_id = "2"
    Instead: /server_list/0/device/1/rank_id = "1"
    Hint: number the ranks 0 to 1 without a gap
    """
    if _are_0_to_n(subject):
        return
    if exchanged(subject):
        return  # HCC203 reports it.
    yield from _rank_gaps().findings(subject)


@rule(
    "HCC203",
    "duplicate-rank-id",
    "refused",
    code="EI0014",
    needs=("rank_id",),
    stage="check",
    source="config.cc:359; rank_table_info.cc:69",
)
def duplicate_rank_id(subject: Subject) -> Iterator[Finding]:
    """Two devices share one rank id.

    HCCL reads rank ids as numbers: "1" and "01" are the same rank. Usually, the tables of single servers were
    joined without renumbering.

    Example: /server_list/0/device/1/rank_id = "0"
    Instead: /server_list/0/device/1/rank_id = "1"
    Hint: give every device its own rank id, 0 to N-1: no device has rank 1
    """
    if _are_0_to_n(subject):
        return
    if exchanged(subject):
        yield from _exchanged_ids(subject)
        return
    if half_again(subject):
        return  # HCC204 reports it.
    if entries_again(subject):
        if not are_counted_once(subject):  # Else HCC204 reports them.
            yield of_entries(subject)
        return
    if restarts(subject) and not server_copies(subject):
        yield from restarted_servers(subject)
        return
    if "rank_id" in with_address_as_id(subject).values():
        return  # HCC202 reports it.
    if (of_devices := rank_devices.copied_from_devices(subject)) is not None and of_devices.repeats:
        yield rank_devices.repeated(subject, of_devices)
        return
    yield from _copies(subject)
    copied = set(copied_rows(subject)) | old_and_new(subject).keys() | pasted_devices(subject).keys()
    copied |= refused_rows(subject)
    for index, rule_id in refused_surplus(subject).items():
        if rule_id == "HCC203":
            yield surplus_finding(subject, index, "rank_id")
    hints = dict[tuple[int, int], tuple[str, str]]()
    for index, seen in stand_ins(subject).items():
        yield _stand_in(subject, index, seen)
        copied |= set(subject.table.servers[index].rows)
    first: dict[int, int] = {}
    owner, texts = subject.table.server_of_row, subject.table.rank_ids
    odd, by_order = ranks_by_order(subject), right_ranks(subject)
    hint = f"give every device its own rank id, 0 to N-1: {by_order or absent_phrase(subject)}"
    for row, number in enumerate(subject.table.rank_numbers):
        if row in copied:
            continue
        if number is not None and (seen := first.setdefault(number, row)) != row:
            marks = [(one in odd, is_sloppy(texts[one], number)) for one in (seen, row)]
            wrong, other = (seen, row) if marks[0] > marks[1] else (row, seen)
            pair = owner[row], owner[seen]
            alike = hints.setdefault(pair, (_ranks_of(subject, *pair), hint))
            yield _used_twice(subject, wrong, other, "first used" if other == seen else "and used", alike)


def _used_twice(subject: Subject, wrong: int, other: int, used: str, alike: tuple[str, str]) -> Finding:
    """Return the finding on a device whose rank another one has; ``alike`` is text and hint on several of them."""
    special = decimal_hint(subject.table.rank_ids[wrong])
    return Finding(
        f"rank id {shown_rank(subject, wrong)} is used by two devices",
        subject.device_path(wrong, "rank_id"),
        special or alike[1],
        (Related(subject.device_path(other, "rank_id"), f"{used} here"),),
        alike=all_read_wrong(subject, "rank_id", "hexadecimal", wrong) if special else alike,
    )


def _ranks_of(subject: Subject, index: int, seen: int) -> str:
    own, other = (quoted(subject.table.servers[one].server_id) for one in (index, seen))
    if own == other:
        return f"rank ids of server {own} are used by two devices"
    return f"rank ids of server {own} are used by devices of server {other}, too"


def _stand_in(subject: Subject, index: int, seen: int) -> Finding:
    """Return the finding on a server that has the ranks of another one: it stands in for it, or has no own ranks yet."""
    servers, absent, rows = subject.table.servers, absent_ranks(subject), subject.table.servers[index].rows
    ranks = rank_list(sorted(subject.table.rank_numbers[row] or 0 for row in rows))
    replaces = f"if it replaces {named_server(subject, seen)}, remove that server"
    own = "give it ranks of its own" + (f": {fold(absent)}" if len(absent) == len(rows) else "")
    hint = f"{own}; or, {replaces}, correct server_count, and number the ranks without a gap"
    if _count_is_of_the_others(subject):
        hint = f"{replaces}, and write this entry in its place; else {own}"
    elif len(absent) == len(rows) and subject.table.declared.get("server_count") == str(len(servers)):
        hint = own
        if absent[0] == len(subject.table) - len(rows):
            # The ranks are without a gap if the entry is that of a new server, and the old one is still there.
            remove = f"either it replaces {named_server(subject, seen)}: remove that server"
            left = len(servers) - len(stand_ins(subject))
            place = "" if index == seen + 1 else ", put this entry in its place"
            hint = f'{remove}{place}, and write "server_count": "{left}"; or both are in the job: {own}'
    return Finding(
        f"{named_server(subject, index)} has the {ranks} of {named_server(subject, seen)}",
        subject.device_path(rows[0], "rank_id"),
        hint,
        (Related(subject.device_path(servers[seen].rows[0], "rank_id"), "first used here"),),
    )


def _count_is_of_the_others(subject: Subject) -> bool:
    """Whether server_count is the number of servers without those that have the ranks of others."""
    number = len(subject.table.servers) - len(stand_ins(subject))
    return bool(subject.table.declared.get("server_count") == str(number))


def _exchanged_ids(subject: Subject) -> Iterator[Finding]:
    """Yield the entries whose device_id and rank_id are exchanged."""
    table = subject.table
    for row in sorted(exchanged(subject)):
        device, rank = table.device_ids[row], table.rank_ids[row]
        shown = [f'"{one}"' if isinstance(one, str) else str(one) for one in (device, rank)]
        server = table.servers[table.server_of_row[row]]
        yield Finding(
            f"device_id {shown[0]} and rank_id {shown[1]} are exchanged: no device has rank {device}, and server "
            f"{quoted(server.server_id)} lists no device {rank}",
            subject.device_path(row, "rank_id"),
            f'write "device_id": {shown[1]} and "rank_id": {shown[0]}',
            (Related(subject.device_path(row, "device_id"), "device_id here"),),
            alike=(
                f"device_id and rank_id are exchanged in entries of server {quoted(server.server_id)}",
                "exchange the two values in each of these entries",
            ),
        )


def _copies(subject: Subject) -> Iterator[Finding]:
    """Yield the servers that are copies under a name of their own, and the devices that are copies.

    A copy with the name of the other server is reported by HCC503.
    """
    for index, copy in server_copies(subject).items():
        if not copy.same_id:
            yield Finding(
                f"{named_server(subject, index)} is a copy of server {copy.first + 1}: "
                "device_ids, device_ips and rank ids repeat",
                subject.server_path(index),
                what_a_copy_needs(subject, index),
                (Related(subject.server_path(copy.first), "the first of the two"),),
            )
    for row, seen in device_copies(subject).items():
        yield Finding(
            f"this device is a copy of the one above: device {subject.table.device_ids[row]} with "
            f"{subject.rank_name(row)} occurs twice",
            subject.device_path(row),
            _own_values(subject, row),
            (Related(subject.device_path(seen), "the first of the two"),),
        )


def _own_values(subject: Subject, row: int) -> str:
    """Return the hint on a device that is a copy: the values that are missing, if they are certain."""
    server = subject.table.servers[subject.table.server_of_row[row]]
    ranks, devices = absent_ranks(subject), absent_devices(subject, server.rows)
    if row in surplus_rows(subject):
        # The last ranks are absent; the ranks are in order, and a table may have as many copies as devices.
        copies = len(device_copies(subject))
        is_last = len(ranks) == copies and ranks[0] == len(subject.table) - copies
        return "remove it" if is_last else "remove it, and number the ranks without a gap"
    if len(ranks) != 1 or len(devices) != 1:
        return "remove it, or give it its own device_id, device_ip and rank_id"
    device, rank = devices[0], ranks[0]
    return (
        f"remove it if it is surplus, and number the ranks without a gap; or write device {device}, rank {rank} "
        f"and the address of that device (`hccn_tool -i {device} {address_query(subject)}` on {shown_host(server.address)} shows it)"
    )


@rule("HCC204", "rank-count", "refused", code="EI0014", formats=("2.0",), source="rank_table_info.cc:35-63")
def rank_count(subject: Subject) -> Iterator[Finding]:
    """rank_count is not the number of ranks, or not between 1 and 65536.

    Example: /rank_count = 3
    Instead: /rank_count = 2
    Hint: add the missing entry, or, if none is missing, write "rank_count": 2
    """
    declared = subject.table.declared["rank_count"] if subject.table.declared else len(subject.table)
    count, size = read_integer(declared), len(subject.table)
    if size > MOST_RANKS:
        yield Finding(
            f"the table has {size} ranks; HCCL accepts at most {MOST_RANKS}", ("rank_list",), "split the job"
        )
    elif size == 0:
        yield Finding("rank_list is empty", ("rank_list",), "list one entry per rank")
    elif count != size:
        right, message = (
            f'write "rank_count": {size}',
            f"rank_count is {declared}, but rank_list has {size} entries",
        )
        doubt = None if count is None else _rank_gaps().doubts.on_ranks(subject, count)
        if doubt is None:
            yield Finding(message, ("rank_count",), right, right=size)
        else:
            message = f"{message}, and {doubt.reason}" if doubt.reason else message
            yield Finding(message, ("rank_count",), doubt.hint, doubt.related)
