"""What ``--flight-recorder`` sets for torch and torch_npu, and which of their limits end a hung job earlier.

The names and defaults are those of torch 2.13 and of torch_npu's sources of August 2026
(ProcessGroupHCCL.cpp, TraceUtils.h). Older versions ignore the variables that they do not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.processes.rank_site import RECORDER_SIGNAL, RECORDER_VARIABLE
from hccl_tools.launch.runs.names import PIPE_STEM
from hccl_tools.notation.phrases import time_span
from hccl_tools.notation.whole_number import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The collectives of each rank that are kept; torch's own default, in 2.13.
_ENTRIES = "2000"
_STEM = f"{{run_dir}}/{PIPE_STEM}"
#: The name, the value, the meaning, and whether the user's value is kept.
VARIABLES: tuple[tuple[str, str, str, bool], ...] = (
    (RECORDER_VARIABLE, str(RECORDER_SIGNAL), "the signal that asks the rank's Python for a dump", False),
    ("TORCH_FR_BUFFER_SIZE", _ENTRIES, "torch: the collectives that are kept", True),
    ("TORCH_HCCL_TRACE_BUFFER_SIZE", _ENTRIES, "torch_npu: the collectives that are kept", True),
    ("TORCH_HCCL_DUMP_ON_TIMEOUT", "1", "torch_npu: also write a dump when its own time limit is over", True),
    ("TORCH_HCCL_ENABLE_MONITORING", "1", "torch_npu: run the thread that writes these dumps", True),
    ("TORCH_HCCL_DEBUG_INFO_TEMP_FILE", _STEM, "torch_npu: the beginning of the path of its dumps", True),
    (
        "TORCH_HCCL_DEBUG_INFO_PIPE_FILE",
        _STEM,
        "torch_npu: the beginning of the path of the pipe that asks for a dump",
        True,
    ),
)
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
