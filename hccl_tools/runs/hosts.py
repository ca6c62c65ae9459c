"""The hosts of a run: the processes on this host, and the run directory on each host."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from hccl_tools.codec import DecodeError, decode, parse
from hccl_tools.host.local_addresses import is_this_host
from hccl_tools.notation import host_list
from hccl_tools.processes import run_files
from hccl_tools.records import NamedTuple, to_json
from hccl_tools.runs import files, names, own_runs
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from hccl_tools.runs.index import Run
    from hccl_tools.runs.saved import SavedProcess

#: Bytes that are read; the names of 65,536 hosts take about 4 MB.
_MOST = 1 << 24


def is_on_this_host(run: Run, process: SavedProcess) -> bool:
    """Return whether a process of a run's plan is on this host."""
    plan = files.plan(run.path)
    # In the plan of an engine's command all processes are "here".
    if not plan.command and run.host in {"", os.uname().nodename}:
        return process.here
    host = process.host
    own = {os.uname().nodename, os.environ.get("SLURMD_NODENAME", ""), "localhost"}
    if len(plan.hosts) == 1 and run.host in own:
        return True
    return host in own or _is_name_of_this_host(host, may_ask=not run.user and _is_known(run.path))


@cache  # asked for each rank
def _is_known(run_dir: str) -> bool:
    return own_runs.is_known(run_dir, os.environ)


@cache
def _is_name_of_this_host(host: str, *, may_ask: bool) -> bool:
    """Return whether a name of a plan is this host's; ``may_ask`` tells whether DNS may be asked.

    The author of a plan writes any number of names into it, whose servers this host would ask and wait for.
    """
    if host_list.why_not_a_host(host, ipv6=True) or not (may_ask or packed(host) is not None):
        return False
    return is_this_host(host)


def path_on(run: Run, host: str) -> str:
    """Return the run directory on a host of a run: the same path, unless the command was typed on each host.

    Raises:
        MalformedRunError: The file with the directories of the other hosts is malformed.
    """
    return files.elsewhere(run.path).get(host) or run.path


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
