"""The first paragraph of the explanation, for the end of a failed ``launch``: within a second, or not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import operand
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Bytes of logs that are read in well under a second.
_MOST_BYTES = 1 << 25
#: Logs beside them: opening each takes time.
_MOST_LOGS = 512
#: Bytes of a plan; that of 4,096 ranks has about 6 MB.
_LARGEST_PLAN = 1 << 23
#: Causes that the report of the job states itself.
_REPORTED = {
    *("HCM810", "HCM820", "HCM821", "HCM822", "HCM823", "HCM827", "HCM833", "HCM891", "HCM892"),
    "HCM897",  # Ctrl-C, which the launcher has received, too.
}


def explained(run_dir: str, hints: Sequence[str] = ()) -> str:
    """Return why the job of a run directory failed, or what to type if that takes long; "" if unknown.

    What the report says anyway, such as the exception of the rank that failed first, is left out.

    Args:
        hints: The hints of the report: what to do is not said again.
    """
    from hccl_tools.explain import answer, explaining, runs  # noqa: PLC0415  (53 ms; most jobs succeed)

    name = typed(run_dir)
    type_this = f"`hccl-tools explain {operand(name)}` reads all logs and names the cause"
    try:
        if os.path.getsize(os.path.join(run_dir, names.PLAN)) > _LARGEST_PLAN:
            return type_this
        logs = [log for log in runs.read(run_dir).sources if os.path.isfile(log.path)]
        if len(logs) > _MOST_LOGS or sum(os.path.getsize(log.path) for log in logs) > _MOST_BYTES:
            return type_this
        found = explaining.explain([], run=run_dir, run_name=run_dir)
    except Exception:  # noqa: BLE001  (the report of a job must not fail because of a strange log)
        return ""
    if not found.causes or found.causes[0].message.id in _REPORTED:
        return ""
    cause = found.causes[0]
    is_advised = any(cause.message.remedy in hint for hint in hints)
    more = f"  more: hccl-tools explain {operand(name)}"
    return f"explain: {answer.paragraph(found, cause, remedy=not is_advised)}\n{more}"


def typed(run_dir: str) -> str:
    """Return what names a run for a command in the current folder: a short name if it is in ``log``."""
    log_dir, name = os.path.split(names.shown(run_dir))
    return names.short(name) if log_dir == "log" else names.shown(run_dir)
