"""The names by which Slurm, or a host itself, knows the hosts of a run."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from hccl_tools.launch.runs import names


def own_node_name() -> str:
    """Return Slurm's name of this host, else its own name: a table may contain only addresses."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def record_node(run_dir: str, host: str, node: str) -> None:
    """Record the node name of a host of the plan, so that other commands can find the host."""
    with suppress(OSError), open(os.path.join(run_dir, names.HOSTS), "ab") as file:
        file.write((json.dumps({"host": host, "node": node}) + "\n").encode())


def node_names(run_dir: str) -> dict[str, str]:
    """Return the recorded node names by host of the plan."""
    found = {}
    with suppress(OSError), open(os.path.join(run_dir, names.HOSTS), encoding="utf-8") as file:
        for line in file:
            with suppress(ValueError, KeyError, TypeError):
                facts = json.loads(line)
                found[str(facts["host"])] = str(facts["node"])
    return found
