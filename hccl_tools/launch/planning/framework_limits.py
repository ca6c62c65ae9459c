"""Which limits of torch and torch_npu end a job that hangs before ``--hang-timeout`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import time_span
from hccl_tools.notation.whole_number import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds: HCCL's limit for an operation, torch_npu's for a watchdog without a heartbeat, torch's for gloo.
_EXEC_TIMEOUT, _HEARTBEAT, _GLOO = 1836, 600, 1800


def warnings(hang_timeout: float | None, environ: Mapping[str, str], *, cpu: bool) -> list[str]:
    """Return a sentence if the framework ends a hung job before ``--hang-timeout``; [] otherwise."""
    if hang_timeout is None:
        return []
    found = [(seconds, name) for name, seconds in _limits(environ, cpu=cpu) if 0 < seconds < hang_timeout]
    if not found:
        return []
    seconds, name = min(found)
    own, its = time_span(hang_timeout, 2), time_span(seconds, 2)
    end = "the framework may end a hung job first, without this evidence"
    return [f"--hang-timeout is {own}, longer than {name} ({its}): {end}"]


def _limits(environ: Mapping[str, str], *, cpu: bool) -> list[tuple[str, int]]:
    if cpu:
        return [("the default time limit of torch's gloo", _GLOO)]
    return [
        ("HCCL_EXEC_TIMEOUT", _seconds(environ, "HCCL_EXEC_TIMEOUT", _EXEC_TIMEOUT)),
        (
            "TORCH_HCCL_HEARTBEAT_TIMEOUT_SEC",
            _seconds(environ, "TORCH_HCCL_HEARTBEAT_TIMEOUT_SEC", _HEARTBEAT),
        ),
    ]


def _seconds(environ: Mapping[str, str], name: str, default: int) -> int:
    number = whole_number(environ.get(name, ""))
    return default if number is None else number
