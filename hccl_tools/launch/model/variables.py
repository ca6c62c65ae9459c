"""The environment variable that passes a launcher's address to other hosts."""

from __future__ import annotations

#: Where the launcher listens: for other hosts key, port and addresses, separated by ``@``; for shims the name
#: of a local socket.
LAUNCHER_VARIABLE = "HCCL_TOOLS_LAUNCHER"
#: The ``--rank-table`` value for a table that the launcher sends.
TABLE_FROM_LAUNCHER = "@launcher"
