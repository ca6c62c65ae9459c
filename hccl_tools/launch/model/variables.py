"""Environment variables that pass a launcher's address and the table to other hosts."""

from __future__ import annotations

#: Where the launcher listens: token, port and, for other hosts, addresses, separated by ``@``.
LAUNCHER_VARIABLE = "HCCL_TOOLS_LAUNCHER"
#: The prefix of the variables that hold the packed table, and the ``--rank-table`` value that selects it.
TABLE_VARIABLE_PREFIX = "HCCL_TOOLS_TABLE_"
TABLE_FROM_ENVIRONMENT = "@environment"
