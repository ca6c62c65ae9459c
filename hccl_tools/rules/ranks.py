"""Rules on rank ids, which must be 0 to N-1, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.rules import doubts, right_texts
from hccl_tools.rules.copies import (
    absent_devices,
    absent_ranks,
    copied_rows,
    device_copies,
    named_server,
    server_copies,
    surplus_rows,
    what_a_copy_needs,
)
from hccl_tools.rules.moved_entries import exchanged
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.table.hccl_values import read_integer, read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

_UINT32_MAX = 0xFFFFFFFF
#: rank_table_info.cc:35, MAX_RANKCOUNT.
MOST_RANKS = 65536


@shared
def _are_0_to_n(subject: Subject) -> bool:
    numbers, size = subject.table.rank_numbers, len(subject.table)
    return numbers == list(range(size)) or set(numbers) == set(range(size))


@shared
def _absent(subject: Subject) -> str:
    """Return the ranks that no device has as a phrase; "" if every rank has a device."""
    size, numbers = len(subject.table), set(subject.table.rank_numbers)
    absent = [str(rank) for rank in range(size) if rank not in numbers]
    return f"no device has rank{'' if len(absent) == 1 else 's'} {and_more(absent)}" if absent else ""


@shared
def _restarts(subject: Subject) -> dict[int, int]:
    """Return the servers whose ranks start at 0 again, with the rank that each would continue with.

    The result is empty unless each other server continues after all devices before it: only then the
    ranks of all devices are known.
    """
    numbers, found, before = subject.table.rank_numbers, {}, 0
    for index, server in enumerate(subject.table.servers):
        own, size = {numbers[row] for row in server.rows}, len(server.rows)
        if before and own == set(range(size)):
            found[index] = before
        elif own != set(range(before, before + size)):
            return {}
        before += size
    return found


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
    for row, number in enumerate(subject.table.rank_numbers):
        if number is None or not 0 <= number <= _UINT32_MAX:
            finding = Finding(
                f"rank id {_shown(subject, row)} is not a whole number (0, 1, 2, ...)",
                subject.device_path(row, "rank_id"),
                _right_rank(subject),
            )
            yield right_texts.named(finding, subject.table.rank_ids[row], right_texts.is_number)


def _right_rank(subject: Subject) -> str:
    absent = absent_ranks(subject)
    if len(absent) == 1:
        return f'write "{absent[0]}", the rank that no device has'
    return f"number the ranks 0 to {len(subject.table) - 1}"


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
    size, numbers = len(subject.table), subject.table.rank_numbers
    if (start := _start(numbers)) > 0:
        other = "" if start == 1 else f"; or add the devices with ranks 0-{start - 1} if they are missing"
        hint = f"number the ranks 0 to {size - 1}: each rank id is too high by {start}{other}"
        begin = "start at 1" if start == 1 else f"go from {start} to {start + size - 1}"
        yield Finding(
            f"{_absent(subject)}: the ranks {begin}",
            subject.device_path(numbers.index(max(size, start)), "rank_id"),
            _with_lost_server(subject, hint),
        )
        return
    absent, hint = _absent(subject), _gap_hint(subject)
    for row, number in enumerate(numbers):
        if number is not None and size <= number <= _UINT32_MAX:
            yield Finding(
                f"rank id {_shown(subject, row)} is too high for {count(size, 'rank')}: {absent}",
                subject.device_path(row, "rank_id"),
                hint,
                alike=(f"these rank ids are too high for {count(size, 'rank')}: {absent}", hint),
            )


def _start(numbers: list[int | None]) -> int:
    """Return the first rank of a table whose ranks are consecutive, and 0 for others."""
    known = {number for number in numbers if number is not None}
    start = min(known, default=0)
    return start if known == set(range(start, start + len(numbers))) and None not in numbers else 0


def _gap_hint(subject: Subject) -> str:
    """Return the hint on a gap in the ranks."""
    return _with_lost_server(subject, f"number the ranks 0 to {len(subject.table) - 1} without a gap")


def _with_lost_server(subject: Subject, right: str) -> str:
    """Return a hint to number the ranks again, after that on a missing server if server_count has more."""
    table = subject.table
    if parted := doubts.joined(subject):
        return parted
    if table.format == "2.0":
        return _with_lost_rank(subject, right)
    stated, servers = table.declared.get("server_count"), len(table.servers)
    number = read_uint(stated) if isinstance(stated, str) else None
    if number is None or number <= servers:
        return right
    lost = rank_list(absent_ranks(subject))
    return (
        f'server_count is "{stated}", so add the missing server with {lost}; '
        f'if none is missing, write "server_count": "{servers}" and {right}'
    )


def _with_lost_rank(subject: Subject, right: str) -> str:
    """Return a hint to number the ranks of a 2.0 table again, after that on missing ranks if rank_count has more."""
    size, stated = len(subject.table), read_integer(subject.table.declared.get("rank_count"))
    if stated is None or stated <= size:
        return right
    lost = rank_list(absent_ranks(subject))
    return f'rank_count is {stated}, so add the entry of {lost}; if none is missing, write "rank_count": {size} and {right}'


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
    if _restarts(subject) and not server_copies(subject):
        yield from _restarted_servers(subject)
        return
    yield from _copies(subject)
    copied = copied_rows(subject)
    first: dict[int, int] = {}
    hint = f"give every device its own rank id, 0 to N-1: {_absent(subject)}"
    for row, number in enumerate(subject.table.rank_numbers):
        if row in copied:
            continue
        if number is not None and (seen := first.setdefault(number, row)) != row:
            yield Finding(
                f"rank id {_shown(subject, row)} is used by two devices",
                subject.device_path(row, "rank_id"),
                hint,
                (Related(subject.device_path(seen, "rank_id"), "first used here"),),
            )


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
        return (
            "remove it" if set(ranks) == set(_last_ranks(subject)) else "remove it, and number the ranks on"
        )
    if len(ranks) != 1 or len(devices) != 1:
        return "remove it, or give it its own device_id, device_ip and rank_id"
    device, rank = devices[0], ranks[0]
    return (
        f"remove it if it is one too many, and number the ranks without a gap; or write device {device}, rank {rank} "
        f"and the address of that device (`hccn_tool -i {device} -ip -g` on {server.address} shows it)"
    )


def _last_ranks(subject: Subject) -> range:
    """Return the ranks that a table without its copied devices does not have."""
    size = len(subject.table)
    return range(size - len(device_copies(subject)), size)


def _restarted_servers(subject: Subject) -> Iterator[Finding]:
    servers, first = subject.table.servers, subject.table.rank_numbers.index(0)
    for index, rank in _restarts(subject).items():
        rows = servers[index].rows
        again = next(row for row in rows if subject.table.rank_numbers[row] == 0)
        yield Finding(
            f'server "{servers[index].server_id}" starts at rank 0 again ({count(len(rows), "rank")})',
            subject.device_path(again, "rank_id"),
            f"number on with {rank}, or join the tables of the servers with `hccl-tools merge`, which numbers on",
            (Related(subject.device_path(first, "rank_id"), "first used here"),),
        )


def _shown(subject: Subject, row: int) -> str:
    value = subject.table.rank_ids[row]
    return f'"{value}"' if isinstance(value, str) else str(value)


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
        doubt = None if count is None else doubts.on_ranks(subject, count)
        if doubt is None:
            yield Finding(message, ("rank_count",), right, right=size)
        else:
            message = f"{message}, and {doubt.reason}" if doubt.reason else message
            yield Finding(message, ("rank_count",), doubt.hint)
