"""Environment variables that several parts of the launcher set and read."""

from __future__ import annotations

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Where the launcher listens: for other hosts key, port and addresses, separated by ``@``; for shims the name
#: of a local socket.
LAUNCHER_VARIABLE = "HCCL_TOOLS_LAUNCHER"
#: The ``--rank-table`` value for a table that the launcher sends.
TABLE_FROM_LAUNCHER = "@launcher"
#: The directory in which CANN writes the logs of a process. CANN creates the directory.
LOG_PATH_VARIABLE = "ASCEND_PROCESS_LOG_PATH"
#: The file that a rank touches to show that it makes progress; see ``CurrentRank.heartbeat``.
HEARTBEAT_VARIABLE = "HCCL_TOOLS_HEARTBEAT"
#: The number of restarts of the job before this start; the second one is torch's name.
RESTART_VARIABLE = "HCCL_TOOLS_RESTART"
TORCH_RESTART_VARIABLE = "TORCHELASTIC_RESTART_COUNT"


def of_restart(environment: Mapping[str, str], restart: int) -> dict[str, str]:
    """Return the variables for a start after ``restart`` restarts; variables that are not set stay unset."""
    counted = {RESTART_VARIABLE, TORCH_RESTART_VARIABLE} & environment.keys()
    return {**environment, **dict.fromkeys(counted, str(restart))}
