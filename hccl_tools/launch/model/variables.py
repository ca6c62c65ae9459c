"""Names of the environment variables by which the processes of a job find each other."""

from __future__ import annotations

#: Where the launcher listens: token, port and, for other hosts, addresses, separated by ``@``.
LAUNCHER_VARIABLE = "HCCL_TOOLS_LAUNCHER"
