"""The table for a smaller number of machines and devices, cut from the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import count
from hccl_tools.transform.subsetting import subset
from hccl_tools.validation import checker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.table.model import RankTable


def cut(
    table: RankTable, *, machines: int, per_machine: int, product: str | None, ignore: Sequence[str] = ()
) -> RankTable:
    """Return the table of the first machines, with the first devices that the rules of the product allow.

    Each machine keeps the same device ids, which are consecutive in the order of the ranks.

    Raises:
        UsageError: The table is too small, or the rules allow no such set of devices.
    """
    wanted = f"{count(per_machine, 'device')} on {count(machines, 'machine')}"
    if machines > len(table.servers):
        has = count(len(table.servers), "machine")
        raise UsageError(f"{wanted}: the table has {has}", hint="leave the larger numbers out of --nnodes")
    servers = [server.server_id for server in table.servers[:machines]]
    ids = _device_ids(table)
    if per_machine > len(ids):
        has = f"{count(len(ids), 'device')} on {servers[0]}"
        raise UsageError(
            f"{wanted}: the table has {has}", hint="leave the larger numbers out of --nproc-per-node"
        )
    first: Report | None = None
    for start in range(len(ids) - per_machine + 1):
        made = subset(table, servers=servers, devices=ids[start : start + per_machine])
        report = checker.check_table(made, product=product, ignore=ignore)
        if report.ok:
            return made
        first = first or report
    finding = first.errors[0] if first is not None else None
    said = f" ({finding.rule.id}: {finding.message})" if finding else ""
    raise UsageError(f"{wanted}: the rules do not allow it{said}", hint=finding.hint if finding else None)


def _device_ids(table: RankTable) -> list[int]:
    """Return the device ids of the first machine in the order of their ranks."""
    ranks, ids = table.rank_numbers, table.device_numbers
    rows = sorted(table.servers[0].rows, key=lambda row: ranks[row] or 0)
    return [number for row in rows if (number := ids[row]) is not None]
