"""Determine which hosts of a job were lost.

An agent that did not report may have been killed by its engine, which ends all agents of a job that has lost
one host. Its host is then still there: only a host that does not run a command counts as lost.
"""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.host.local_addresses import is_this_host, those_of_this_host
from hccl_tools.launch.cluster.missing_hosts import HostProbe
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.cluster.verdict import Unreported
    from hccl_tools.launch.model.outcome import Outcome
    from hccl_tools.launch.model.plan import Plan

#: The ends that can be due to a lost host.
_REASONS = frozenset({"failed", "hang", "host", "daemon", "refused"})
#: Seconds for all hosts to run a command; the connection of ssh has 10.
_PROBE_SECONDS = 20.0
#: The hosts that are asked at a time.
_MOST_PROBES = 64
_PAUSE_SECONDS = 0.02
#: The first line of a host that runs commands.
_RUNS_COMMANDS = "runs-commands"
#: The exported variables that decide which hccl-tools a host runs. A command line is visible to all users of
#: a host, so that no other variable may be in it.
_FOR_PYTHON = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
#: Imports what a supervisor imports, and prints the version.
_VERSION = """\
import hccl_tools.cli.launch, hccl_tools.launch.launcher
from hccl_tools.version import __version__
print(__version__)
"""


def mark(plan: Plan, outcome: Outcome, unreported: Unreported) -> None:
    """Record in an outcome the servers whose hosts were lost, or cannot run or have refused their part."""
    if outcome.reason not in _REASONS:
        return
    hosts = {process.server_index: process.host for process in plan.ranks}
    refused = set(unreported.refused)
    asked = [server for server in (*unreported.lost, *unreported.missing) if server not in refused]
    unusable = _unusable(plan, {server: hosts[server] for server in asked})
    outcome.unusable = [f"{hosts[server]} {why}" for server, why in unusable.items() if why]
    found = refused.union(unusable)
    is_loss = _is_loss(outcome)
    if is_loss and not found:
        found = {server for server in _first_loss(unreported) if not is_this_host(hosts[server])}
    outcome.lost_servers = tuple(sorted(found))
    outcome.is_host_lost = bool(found or (is_loss and (unreported.lost or unreported.missing)))
    began = {*unreported.lost, *unreported.without_daemon} - refused
    outcome.lost_before_start = bool(found) and not found & began


def _first_loss(unreported: Unreported) -> tuple[int, ...]:
    """Return the server whose loss is the cause of the others if all hosts run commands; empty if unknown.

    A daemon or a supervisor was killed. If an agent has not connected, the engine may have killed all others
    because of it.
    """
    lost = () if unreported.missing else unreported.lost
    return (*unreported.without_daemon, *lost)[:1]


def _is_loss(outcome: Outcome) -> bool:
    """Return whether a lost agent or daemon explains an end, even if all hosts run a command."""
    failed = outcome.first_failure
    if outcome.reason == "failed" and failed is not None:
        # MPICH's fails when it loses a host. If it was killed, its processes on the hosts end because of it.
        return failed.process.is_engine and not failed.signal
    return outcome.reason in {"host", "daemon", "refused"}


def _unusable(plan: Plan, hosts: Mapping[int, str]) -> dict[int, str]:
    """Return the servers whose host does not run hccl-tools, with the reason: "" if it runs no command."""
    here = those_of_this_host(map(plan.way_to, hosts.values()))
    asked = [(server, host) for server, host in hosts.items() if plan.way_to(host) not in here]
    found: dict[int, str] = {}
    for first in range(0, len(asked), _MOST_PROBES):
        probes = {
            server: HostProbe(plan, host, _own_version(plan))
            for server, host in asked[first : first + _MOST_PROBES]
        }
        _wait(list(probes.values()))
        for server, probe in probes.items():
            if (why := _why_unusable(probe)) is not None:
                found[server] = why
            probe.close()
    return found


def _own_version(plan: Plan) -> list[str]:
    """Return a command that shows that a host runs commands, and then its version of hccl-tools."""
    exported = (
        f"{name}={os.environ[name]}" for name in _FOR_PYTHON if name in {*plan.exported} & {*os.environ}
    )
    shown = ["env", *exported, plan.supervisor[0], *own_python.script(_VERSION)[1:]]
    return ["sh", "-c", f"echo {_RUNS_COMMANDS}; exec {shlex.join(shown)}"]


def _why_unusable(probe: HostProbe) -> str | None:
    lines = probe.said.splitlines()
    runs_commands, last = _RUNS_COMMANDS in lines, lines[-1] if lines else ""
    if not probe.has_ended:
        return None if runs_commands else ""  # A slow host is not a lost host.
    if not runs_commands:
        return ""
    if not probe.has_succeeded:
        return f"cannot run hccl-tools: {last}"
    return None if last == __version__ else f"has hccl-tools {last}, and this host has {__version__}"


def _wait(probes: Sequence[HostProbe]) -> None:
    deadline = time.monotonic() + _PROBE_SECONDS
    while not all(probe.has_ended for probe in probes) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
