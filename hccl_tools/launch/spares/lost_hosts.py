"""Determine which hosts of a job were lost.

An agent that did not report may have been killed by its engine, which ends all agents of a job that has lost
one host. Its host is then still there: only a host that does not run a command counts as lost.
"""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from hccl_tools.discover.local_addresses import is_this_host
from hccl_tools.launch import engines
from hccl_tools.launch.engines.engine import EngineProcess

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.launch.cluster.verdict import Unreported
    from hccl_tools.launch.model.outcome import Outcome
    from hccl_tools.launch.model.plan import Plan

#: The ends that can be due to a lost host.
_REASONS = frozenset({"failed", "hang", "host", "daemon", "refused"})
#: Seconds for all hosts to run a command; the connection of ssh has 10.
_PROBE_SECONDS = 20.0
#: The hosts that are asked at a time.
_MOST_PROBES = 64


def mark(plan: Plan, outcome: Outcome, unreported: Unreported) -> None:
    """Record in an outcome the servers whose hosts were lost, or refused their part of the job."""
    if outcome.reason not in _REASONS:
        return
    hosts = {process.server_index: process.host for process in plan.ranks}
    silent = _silent(plan, [hosts[server] for server in (*unreported.lost, *unreported.missing)])
    found = {server for server in (*unreported.lost, *unreported.missing) if hosts[server] in silent}
    found |= set(unreported.refused)
    is_loss = _is_loss(outcome)
    if is_loss and not found:
        found = {server for server in _first_loss(unreported) if not is_this_host(hosts[server])}
    outcome.lost_servers = tuple(sorted(found))
    outcome.is_host_lost = bool(found or (is_loss and (unreported.lost or unreported.missing)))
    began = {*unreported.lost, *unreported.without_daemon} - set(unreported.refused)
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
        return isinstance(failed.process, EngineProcess) and not failed.signal
    return outcome.reason in {"host", "daemon", "refused"}


def _silent(plan: Plan, hosts: Iterable[str]) -> set[str]:
    """Return the hosts that do not run a command of the engine in time."""
    asked, silent = [host for host in hosts if not is_this_host(host)], set[str]()
    for first in range(0, len(asked), _MOST_PROBES):
        probes = {host: _start_probe(plan, host) for host in asked[first : first + _MOST_PROBES]}
        _wait(list(probes.values()), time.monotonic() + _PROBE_SECONDS)
        silent |= {host for host, probe in probes.items() if probe.returncode != 0}
    return silent


def _start_probe(plan: Plan, host: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        engines.of(plan).probe(plan, host),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _wait(probes: Sequence[subprocess.Popen[bytes]], deadline: float) -> None:
    for probe in probes:
        try:
            probe.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:  # noqa: PERF203  (each can time out)
            probe.kill()
            probe.wait()
