"""What has to be the same on every host of a job on which the same command was typed."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.membership import PORT, PROGRAM, Attendance
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from hccl_tools.launch.cluster.peer_link import Line
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch

#: Each host has its own.
_OWN = ("HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "HCCL_TOOLS_")
_SHOWN = 12


def meet(prepared: PreparedLaunch, request: LaunchRequest, restarts: int) -> Line | None:
    """Compare this host with the others of a job that was started by hand on each; return the line to them.

    Raises:
        LaunchError: A host has something else, or has not come.
    """
    plan = prepared.plan
    if plan.local_server is None or plan.rendezvous is None:
        return None
    from hccl_tools.launch.cluster import host_status, rendezvous_server  # noqa: PLC0415
    from hccl_tools.launch.cluster.peer_link import Line  # noqa: PLC0415

    hosts = {process.server_index: process.host for process in plan.ranks}
    names = [hosts[server] for server in sorted(hosts)]
    settled = {
        "version of hccl-tools": __version__,
        "--max-restarts": str(restarts),
        PORT: str(plan.rendezvous[1]),
    }
    own = Attendance(
        plan.local_server, hosts[plan.local_server], has(prepared, request) | settled, plan.run_dir
    )
    master = plan.ranks[0].server_index
    met = rendezvous_server.meet(own, names, master=master, address=plan.rendezvous, tell=tell)
    return Line(plan.local_server, master, names, met, partial(host_status.lost, plan, "launcher"))


def tell(line: str) -> None:
    """Tell the user while nothing runs."""
    sys.stderr.write(f"hccl-tools: {line}\n")


def has(prepared: PreparedLaunch, request: LaunchRequest) -> dict[str, str]:
    """Return what this host has, by subject, in few letters: nothing of it need be secret or long."""
    plan = prepared.plan
    found = {
        "number of ranks": str(plan.world_size),
        "--start": plan.start,
        "arguments": _hash(os.fsencode("\0".join([request.kind, *request.program[1:]]))),
    }
    if prepared.table is not None:
        from hccl_tools.table.fingerprint import fingerprint  # noqa: PLC0415  (several hosts with a table only)

        found["fingerprint of the rank table"] = fingerprint(prepared.table)
    program = request.program[0]
    is_file = request.kind != "module" and os.path.isfile(program)
    name = os.path.basename(program) if is_file else program
    found[PROGRAM] = f"{request.kind} {name}"
    if is_file:
        with open(program, "rb") as file:
            found[f"SHA-256 of {name}"] = _hash(file.read())
    variables = {**prepared.environment, **request.environment}.items()
    return found | {
        name: value for name, value in variables if name.startswith("HCCL_") and not name.startswith(_OWN)
    }


def _hash(data: bytes) -> str:
    from hccl_tools.launch.runs.directory import fingerprint  # noqa: PLC0415

    return fingerprint(data)[:_SHOWN]
