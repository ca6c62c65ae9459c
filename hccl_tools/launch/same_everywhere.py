"""What has to be the same on every host of a job on which the same command was typed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hccl_tools.launch import meeting

if TYPE_CHECKING:
    from hccl_tools.launch.planning import Prepared
    from hccl_tools.launch.request import Request

#: Each host has its own.
_OWN = ("HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "HCCL_TOOLS_")
_SHOWN = 12


def compare(prepared: Prepared, request: Request) -> None:
    """Compare this host with the others, if the job has several and each was started by hand.

    Raises:
        LaunchError: A host has something else, or has not come.
    """
    plan = prepared.plan
    if plan.here is None or plan.meeting is None:
        return
    hosts = {process.server_index: process.host for process in plan.ranks}
    names = [hosts[server] for server in sorted(hosts)]
    own = meeting.Attendance(plan.here, hosts[plan.here], _has(prepared, request))
    meeting.meet(own, names, master=plan.ranks[0].server_index, address=plan.meeting, tell=_tell)


def _tell(line: str) -> None:
    sys.stderr.write(f"hccl-tools: {line}\n")


def _has(prepared: Prepared, request: Request) -> dict[str, str]:
    """Return what this host has, by subject, in few letters: nothing of it need be secret or long."""
    plan = prepared.plan
    has = {
        "number of ranks": str(plan.world_size),
        "--start": plan.start,
        "arguments": _hash("\0".join([request.kind, *request.program[1:]]).encode()),
    }
    if prepared.table is not None:
        from hccl_tools.fingerprint import fingerprint  # noqa: PLC0415  (several hosts with a table only)

        has["fingerprint of the rank table"] = fingerprint(prepared.table)
    program = request.program[0]
    if request.kind != "module" and os.path.isfile(program):
        with open(program, "rb") as file:
            has[f"SHA-256 of {os.path.basename(program)}"] = _hash(file.read())
    else:
        has["program"] = program
    variables = prepared.environment.items()
    return has | {
        name: value for name, value in variables if name.startswith("HCCL_") and not name.startswith(_OWN)
    }


def _hash(data: bytes) -> str:
    from hccl_tools.launch.run_directory import fingerprint  # noqa: PLC0415

    return fingerprint(data)[:_SHOWN]
