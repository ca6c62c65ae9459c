"""Environment variables that several parts of the launcher set and read."""

from __future__ import annotations

#: Where the launcher listens: for other hosts key, port and addresses, separated by ``@``; for shims the name
#: of a local socket.
LAUNCHER_VARIABLE = "HCCL_TOOLS_LAUNCHER"
#: The ``--rank-table`` value for a table that the launcher sends.
TABLE_FROM_LAUNCHER = "@launcher"
#: The directory in which CANN writes the logs of a process. CANN creates the directory.
LOG_PATH_VARIABLE = "ASCEND_PROCESS_LOG_PATH"
#: The file that a rank touches to show that it makes progress; see ``CurrentRank.heartbeat``.
HEARTBEAT_VARIABLE = "HCCL_TOOLS_HEARTBEAT"
