"""Convert the reports of a job's agents: names of hosts, ends of ranks, loss of a host."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.credentials import version_conflict
from hccl_tools.launch.cluster.job_addresses import resolved
from hccl_tools.launch.cluster.verdict import ranks_text
from hccl_tools.launch.model.outcome import Cause, RankEnd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.model.rank_messages import RankExit


def server_at(plan: Plan, address: str) -> int:
    """Return the index of the server with an address, -1 if there is none."""
    servers = {process.host: process.server_index for process in plan.ranks}
    return next((index for host, index in servers.items() if address in resolved([host])), -1)


def rank_end(plan: Plan, reported: RankExit) -> RankEnd:
    """Return the end of a rank from the report of an agent.

    Raises:
        ValueError: The job has no such rank.
    """
    if reported.rank >= plan.world_size:
        raise ValueError(reported)
    return RankEnd(
        process=plan.rank(reported.rank),
        log=reported.log,
        pid=reported.pid,
        ended=reported.duration,
        status=reported.status,
        was_terminated=reported.was_terminated,
        is_elsewhere=bool(plan.supervisor),
    )


def supervisor_loss(host: str, ranks: Sequence[int]) -> Cause:
    """Return the cause of an end after the loss of the supervisor on a host."""
    return Cause.lost(host, "host", describe_loss("supervisor", host, ranks))


def shim_loss(number: int, pid: int) -> Cause:
    """Return the cause of an end after the loss of a rank's shim on this host."""
    what = f"the shim of rank {number} (hccl_tools.launch.rank, pid {pid}) was killed"
    return Cause.lost(os.uname().nodename, "daemon", what)


def launcher_loss(plan: Plan, index: int) -> str:
    """Describe the loss of the launcher of a server."""
    own = [each for each in plan.ranks if each.server_index == index]
    return describe_loss("launcher", own[0].host, [each.rank for each in own])


def describe_loss(process: str, host: str, ranks: Sequence[int]) -> str:
    """Describe the loss of a host's ``process``, whose connection has closed."""
    return (
        f"lost contact with the {process} on {host} ({ranks_text(ranks)}): it was killed, "
        "or the host is down or unreachable"
    )


def other_versions(plan: Plan, versions: Mapping[str, str]) -> list[tuple[int, Cause]]:
    """Return the servers, by their addresses, whose version of hccl-tools differs, with what to report.

    The index of a server is -1 if no host of the job has the address.
    """
    here, found = os.uname().nodename, list[tuple[int, Cause]]()
    for address, version in versions.items():
        index = server_at(plan, address)
        host = address if index < 0 else next(one.host for one in plan.ranks if one.server_index == index)
        found.append((index, Cause.lost(host, "refused", version_conflict(here, host, version))))
    return found
