"""``launch --emit slurm --spares N``: a batch script that runs ``launch``, with nodes for the spares.

The script of ``launchers/`` works without hccl-tools on the nodes, and therefore without spares.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import count

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=hccl
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --no-kill
#SBATCH --signal=B:TERM@60
# {servers} for the job, and {spares}: sbatch THIS_FILE
# --no-kill keeps the allocation when it loses a node; a spare then takes the place of the lost node.
# --signal ends the job a minute before its time limit.
{table}exec {command}
"""
_TABLE = """\
# The allocation must contain the servers of the rank table: if Slurm may choose other nodes, add
# `#SBATCH --nodelist=NAMES`. Without --rank-table, `launch` makes the table of the nodes of the allocation.
"""


def text(servers: int, spares: int, command: Sequence[str], *, has_table: bool) -> str:
    """Return the script that runs ``launch`` with a command line.

    Args:
        servers: The number of nodes of the job.
        spares: The number of nodes in reserve.
        command: The words of the command line.
        has_table: Whether the command line names a rank table.
    """
    return _SCRIPT.format(
        nodes=servers + spares,
        servers=count(servers, "node"),
        spares=count(spares, "spare"),
        table=_TABLE if has_table else "",
        command=shlex.join(command),
    )
