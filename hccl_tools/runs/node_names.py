"""The names by which Slurm, or a host itself, knows the hosts of a run."""

from __future__ import annotations

import os
from contextlib import suppress

from hccl_tools.codec import DecodeError, decode, parse
from hccl_tools.processes import run_files
from hccl_tools.records import NamedTuple, to_json
from hccl_tools.runs import names

#: Bytes that are read; the names of 65,536 hosts take about 4 MB.
_MOST = 1 << 24


class NodeName(NamedTuple):
    """A line of the file: a host of the plan, and the name of its node."""

    host: str
    node: str


def own_node_name() -> str:
    """Return Slurm's name of this host, else its own name: a table may contain only addresses."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def record_node(run_dir: str, host: str, node: str) -> None:
    """Record the node name of a host of the plan, so that other commands can find the host."""
    with (
        suppress(OSError),
        run_files.opened(run_dir) as folder,
        open(folder.open_append(names.HOSTS), "ab") as file,
    ):
        file.write(to_json(NodeName(host, node)) + b"\n")


def node_names(run_dir: str) -> dict[str, str]:
    """Return the recorded node names by host of the plan."""
    found = {}
    with suppress(OSError), run_files.opened(run_dir) as folder:
        for line in folder.read(names.HOSTS, _MOST).decode(errors="replace").splitlines():
            with suppress(DecodeError):
                record = decode(NodeName, parse(line), strict=False)
                found[record.host] = record.node
    return found
