"""Findings on ranks that are not those from 0 on, and what to do about a gap. This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import count, those
from hccl_tools.rules import doubled_keys, doubts, rank_devices, run_together
from hccl_tools.rules.copies import absent_ranks, lost_devices, named_server
from hccl_tools.rules.moved_entries import exchange, with_address_as_id
from hccl_tools.rules.rank_holes import is_in_row, missing_ranks, other_holes, rank_holes
from hccl_tools.rules.rank_order import absent_phrase, first_of_run, is_between, right_ranks, shown_rank
from hccl_tools.rules.registry import Finding
from hccl_tools.rules.stray_devices import move_hint
from hccl_tools.table.hccl_numbers import UINT32_MAX, read_integer, read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.rules.copies import LostDevices
    from hccl_tools.rules.rank_holes import Holes
    from hccl_tools.rules.registry import Subject

#: The numbers of devices of a server that HCCL accepts where two are connected by HCCS.
_HCCS_COUNTS = (1, 2, 4, 8)


def findings(subject: Subject) -> Iterator[Finding]:
    """Yield the findings on the ranks of a table that are not those from 0 on."""
    size, numbers = len(subject.table), subject.table.rank_numbers
    declared = (subject.table.declared or {}).get("rank_count")
    are_whole = len({len(server.rows) for server in subject.table.servers}) == 1
    if (
        subject.table.format == "2.0"
        and type(declared) is int
        and size < declared
        and _are_of(numbers, declared)
        and are_whole
    ):
        return  # HCC204 says which entries are missing: those of whole nodes.
    if (start := first_of_run(numbers)) > 0 and (again := doubled_keys.doubled_list(subject)) is not None:
        yield Finding(
            f"{absent_phrase(subject)}, because {again[0]}",
            subject.device_path(numbers.index(max(size, start)), "rank_id"),
            again[1],
        )
        return
    copied = None if doubled_keys.joined(subject) else rank_devices.copied_from_devices(subject)
    if copied is not None and doubled_keys.doubled_list(subject) is None:
        if not copied.repeats:  # Else HCC203 reports it.
            yield rank_devices.gap(subject, copied, absent_phrase(subject))
        return
    if _are_required(subject, lost_devices(subject)):
        return  # HCC306 names the device with its rank.
    if start > 0:
        yield _high_start(subject, start)
        return
    if (holes := _plain_holes(subject)) is not None:
        hint = _of_lost_servers(subject, holes) if holes.servers else _gap_hint(subject)
        path = subject.device_path(holes.rows[0], "rank_id")
        yield Finding(missing_ranks(subject, holes), path, hint, other_holes(subject, holes))
        return
    absent, hint, swapped = absent_phrase(subject), _gap_hint(subject), with_address_as_id(subject)
    for row, number in enumerate(numbers):
        if number is not None and size <= number <= UINT32_MAX:
            finding = Finding(
                f"rank id {shown_rank(subject, row)} is too high for {count(size, 'rank')}: {absent}",
                subject.device_path(row, "rank_id"),
                hint,
                alike=(f"these rank ids are too high for {count(size, 'rank')}: {absent}", hint),
            )
            yield exchange(finding, "rank_id") if swapped.get(row) == "rank_id" else finding


def _plain_holes(subject: Subject) -> Holes | None:
    """Return the holes in the ranks if entries are lost there; None if they are elsewhere in the file."""
    holes, lost = rank_holes(subject), lost_devices(subject)
    if holes is None or run_together.run_together(subject) is not None:
        return None
    if doubled_keys.doubled_list(subject) is not None or doubled_keys.joined(subject):
        return None
    return holes if lost is None or move_hint(subject, lost.rows) is None else None


def _of_lost_servers(subject: Subject, holes: Holes) -> str:
    """Return the hint on servers, or nodes of a 2.0 table, that are lost."""
    first, size = holes.ranks[0][0], len(subject.table)
    right = f"number the ranks from {first} on again: {rank_list(range(first, size)).partition(' ')[2]}"
    if (counted := _with_lost_server(subject, right)) != right:
        return counted
    what, ranks = "node" if subject.table.format == "2.0" else "server", rank_list(holes.all_ranks)
    which, it, was = (
        (f"the {what}", "it", "was")
        if holes.servers == 1
        else (f"the {holes.servers} {what}s", "them", "were")
    )
    replaced = _of_replacement(subject, holes.all_ranks, holes) if holes.servers == 1 else ""
    again = f"{which} with {ranks} {was} lost, add {it} again there{doubts.counted_again(subject, holes)}"
    they = "it was" if holes.servers == 1 else "they were"
    return f"if {again}{replaced}; if {they} removed on purpose, {right}"


def _high_start(subject: Subject, start: int) -> Finding:
    """Return the finding on ranks that start above 0: they were numbered so, or devices were lost."""
    numbers, size = subject.table.rank_numbers, len(subject.table)
    right = f"number the ranks 0 to {size - 1}: each rank id is too high by {start}"
    hint = _with_lost_server(subject, right)
    if start > 1 and hint == right:  # Else the count says that some are missing.
        hint = f"if the devices with ranks 0-{start - 1} were lost, add them; only if the job uses no others, {right}"
    lost, lacking = lost_devices(subject), absent_ranks(subject)
    if lost is not None and len(lost.rows) == len(lacking):
        hint = _with_lost_server(
            subject,
            f"{rank_devices.add_lost(subject, lost, lacking)}; only if it is left out on purpose, number the ranks 0 to {size - 1}",
        )
    begin = "start at 1" if start == 1 else f"go from {start} to {start + size - 1}"
    path = subject.device_path(numbers.index(start), "rank_id")
    return Finding(f"{absent_phrase(subject)}: the ranks {begin}", path, hint)


def _are_of(numbers: Sequence[int | None], declared: int) -> bool:
    """Return whether the ranks are some of those that rank_count counts, each once."""
    known = {number for number in numbers if number is not None}
    return len(known) == len(numbers) and max(known) < declared


def _gap_hint(subject: Subject) -> str:
    """Return the hint on a gap in the ranks: what is lost is added, and only what is left out on purpose is numbered again."""
    hint = f"number the ranks 0 to {len(subject.table) - 1} without a gap"
    if (both := run_together.run_together(subject)) is not None:
        return run_together.part_it(subject, both)
    absent, lost = absent_ranks(subject), lost_devices(subject)
    if (again := doubled_keys.doubled_list(subject)) is not None:
        return again[1]
    if doubled_keys.joined(subject):
        return _with_lost_server(subject, hint)
    if lost is not None and (moved := move_hint(subject, lost.rows)) is not None:
        return moved
    if lost is not None and len(lost.rows) == len(absent) and _are_allowed(subject, lost):
        are, add = "it is" if len(absent) == 1 else "they are", rank_devices.add_lost(subject, lost, absent)
        return f"{add}; only if {are} left out on purpose, {hint}" if _are_enough(subject) else add
    sizes = {len(server.rows) for server in subject.table.servers}
    if sizes == {len(absent)} and absent[-1] - absent[0] < len(absent) and is_between(subject, absent):
        what = "node" if subject.table.format == "2.0" else "server"
        if _with_lost_server(subject, hint) == hint:  # Else the count says that it is missing.
            lost_one = f"if the {what} with {rank_list(absent)} was lost, add it again{doubts.counted_again(subject)}"
            hint = f"{lost_one}{_of_replacement(subject, absent)}; if it was removed on purpose, {hint}"
    elif by_order := right_ranks(subject):
        hint = by_order
    elif len(subject.table.servers) > 1 and (own := rank_devices.new_ranks(subject)):
        hint = f"{hint}, in the order that they have: {own}"
    return _with_lost_server(subject, hint)


def _are_required(subject: Subject, lost: LostDevices | None) -> bool:
    """Return whether the only rank that is absent is that of a device that the product requires, which HCC306 names."""
    if lost is None or not subject.product.even_servers or move_hint(subject, lost.rows) is not None:
        return False
    sizes = [len(server.rows) for server in subject.table.servers]
    is_usual = 2 * sizes.count(max(sizes)) >= len(sizes) > sizes.count(max(sizes))
    return is_usual and len(lost.rows) == len(absent_ranks(subject)) == 1


def _of_replacement(subject: Subject, absent: Sequence[int], holes: Holes | None = None) -> str:
    """Return what to do if one server, whose ranks are all too high, has replaced the server that is missing; else ""."""
    table, size = subject.table, len(subject.table)
    high = [row for row, number in enumerate(table.rank_numbers) if number is not None and number >= size]
    owners = {table.server_of_row[row] for row in high}
    if len(owners) != 1 or [*table.servers[owner := owners.pop()].rows] != high:
        return ""
    if holes is not None and is_in_row(subject, owner, holes):
        return ""
    return f"; if {named_server(subject, owner)} has replaced it, give that {rank_list(absent)}"


def _are_allowed(subject: Subject, lost: LostDevices) -> bool:
    """Return whether servers with their lost devices have a number of devices that the product allows."""
    sizes = [len(subject.table.servers[index].rows) + len(own) for index, own in lost.of_server.items()]
    return not subject.product.checks_hccs_count or all(size in _HCCS_COUNTS for size in sizes)


def _are_enough(subject: Subject) -> bool:
    """Return whether the product allows the number of devices that each server lists."""
    sizes = [len(server.rows) for server in subject.table.servers]
    return not subject.product.checks_hccs_count or all(size in _HCCS_COUNTS for size in sizes)


def _with_lost_server(subject: Subject, right: str) -> str:
    """Return a hint to number the ranks again, after that on a missing server if server_count has more."""
    table = subject.table
    if parted := doubled_keys.joined(subject):
        return parted
    if table.format == "2.0":
        return _with_lost_rank(subject, right)
    stated, servers = table.declared.get("server_count"), len(table.servers)
    number = read_uint(stated) if isinstance(stated, str) else None
    if number is None or number <= servers:
        return right
    lost, missing = _lost_ranks(subject), those(number - servers, "server")
    return (
        f'server_count is "{stated}", so add the missing {missing} with {lost}; '
        f'if none is missing, write "server_count": "{servers}" and {right}'
    )


def _with_lost_rank(subject: Subject, right: str) -> str:
    """Return a hint to number the ranks of a 2.0 table again, after that on missing ranks if rank_count has more."""
    size, stated = len(subject.table), read_integer(subject.table.declared.get("rank_count"))
    if stated is None or stated <= size:
        return right
    lost = _lost_ranks(subject)
    return f'rank_count is {stated}, so add the entry of {lost}; if none is missing, write "rank_count": {size} and {right}'


def _lost_ranks(subject: Subject) -> str:
    """Return the ranks that are missing, with their place if they are those of servers."""
    holes = rank_holes(subject)
    if holes is None or not holes.servers:
        return rank_list(absent_ranks(subject))
    return f"{rank_list(holes.all_ranks)} there"
