"""Checks of the table as a file, and the facts that could not be determined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import NOT_EXAMINED, Example, Finding, check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.check_input import Case


@check(
    "HCD002",
    "table-has-errors",
    "stops",
    remedy="see `hccl-tools validate TABLE`",
    source="hccl-tools validate",
)
def table_has_errors(case: Case) -> Iterator[Finding]:
    """Does the table pass `hccl-tools validate`?"""
    if case.table_problem:
        yield Finding(case.table_problem, remedy=case.table_remedy)


@check(
    NOT_EXAMINED,
    "not-examined",
    "note",
    remedy="run doctor where the Ascend tools are on PATH and work, as root if they refuse other users; "
    "if a tool hangs or stays busy on one host alone, restart its driver or the host",
    source="hccn_tool and npu-smi as sources",
    example=Example("tool", "hccn_tool -i 3 -link -g", "Segmentation fault\n"),
)
def not_examined(case: Case) -> Iterator[Finding]:
    """Could everything be looked at?

    What could not be looked at is a note; with --strict it counts.
    """
    reasons: dict[str, dict[str, set[int]]] = {}
    for one in case.seen.unknown:
        reasons.setdefault(one.reason, {}).setdefault(one.topic, set()).update(one.devices)
    for reason, topics in reasons.items():
        ids = tuple(sorted(set().union(*topics.values())))
        yield Finding(f"not looked at: {', '.join(topics)}: {reason}", ids)
