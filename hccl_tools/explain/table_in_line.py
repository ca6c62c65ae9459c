"""What is wrong with the rank table that HCCL's message has: CANN 8 and older print the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation import number_list

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Report


def fault(text: str) -> str:
    """Return what ``validate`` says about a table, as a clause; "" if the text is no whole table.

    Args:
        text: The table as JSON, which the line may cut off.
    """
    from hccl_tools.validation.checker import validate  # noqa: PLC0415  (only for a refused table)

    report = validate(text.encode())
    if report.format is None or report.document is None or report.document.problem is not None:
        return ""
    if report.errors:
        first = report.errors[0]
        more = "" if first.hint is None else f" ({first.hint})"
        return f"the table in this line: {first.rule.id} {first.message}, {first.pointer}{more}"
    return _ranks(report)


def _ranks(report: Report) -> str:
    if report.table is None:
        return ""
    ranks = sorted(rank for rank in report.table.rank_numbers if rank is not None)
    devices = [device for device in report.table.device_numbers if device is not None]
    if not ranks:
        return ""
    which, on = ("rank", "device") if len(ranks) == 1 else ("ranks", "devices")
    listed = number_list.fold(sorted(set(devices))) if devices else "unknown"
    return f"the table in this line has {which} {number_list.fold(ranks)}, on {on} {listed}"
