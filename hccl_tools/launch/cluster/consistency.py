"""Compare the settings of all hosts of a job whose launchers were started by hand."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster.membership import PORT, PROGRAM, HostManifest
from hccl_tools.launch.runs import job_key

if TYPE_CHECKING:
    from hccl_tools.launch.cluster.credentials import Credentials
    from hccl_tools.launch.cluster.peer_link import PeerLink
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch

#: Variables whose values differ from host to host.
_PER_HOST = ("HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "HCCL_TOOLS_")
#: Characters of a digest that are compared and shown.
_DIGEST_LENGTH = 12


def connect_peers(prepared: PreparedLaunch, request: LaunchRequest) -> PeerLink | None:
    """Compare this host with the job's other hosts; return the connections, ``None`` without a rendezvous.

    Raises:
        LaunchError: The hosts differ, or a host did not join in time.
    """
    plan = prepared.plan
    if plan.local_server is None or plan.rendezvous is None:
        return None
    from hccl_tools.launch.cluster import host_status, rendezvous_server  # noqa: PLC0415
    from hccl_tools.launch.cluster.peer_link import PeerLink  # noqa: PLC0415

    hosts = {process.server_index: process.host for process in plan.ranks}
    names = [hosts[server] for server in sorted(hosts)]
    settings = {
        "--max-restarts": str(request.watch.max_restarts),
        PORT: str(plan.rendezvous[1]),
    }
    values = manifest_values(prepared, request) | settings
    own = HostManifest(plan.local_server, hosts[plan.local_server], values, plan.run_dir)
    master = plan.ranks[0].server_index
    joined = rendezvous_server.join(
        own,
        names,
        master=master,
        address=plan.rendezvous,
        credentials=_credentials(prepared, request, own.host),
        notify=notify,
    )
    return PeerLink(
        plan.local_server, master, names, joined, partial(host_status.describe_loss, plan, "launcher")
    )


def _credentials(prepared: PreparedLaunch, request: LaunchRequest, host: str) -> Credentials:
    from hccl_tools.launch.cluster.credentials import Credentials  # noqa: PLC0415
    from hccl_tools.launch.cluster.job_addresses import of_table, resolved  # noqa: PLC0415

    key = job_key.find(os.environ)
    silence = request.watch.host_timeout
    if key is not None:
        return Credentials(host, key.secret, silence)
    if request.start.require_key or job_key.is_required(os.environ):
        raise LaunchError(
            f"{host} has no job key, and this job requires one",
            hint="create it on one host with `hccl-tools key create`, then `hccl-tools key copy HOSTS`",
        )
    table = prepared.table
    who = "every user of the job's hosts" if table is not None else "everyone who reaches the rendezvous port"
    notify(
        f"no job key: {who} can join or end this job; "
        "`hccl-tools key create` and `hccl-tools key copy HOSTS` prevent this"
    )
    known = None if table is None else frozenset(resolved(prepared.plan.hosts) | of_table(table))
    return Credentials(host, b"", silence, known)


def notify(line: str) -> None:
    """Print a line for the user while no rank is running."""
    sys.stderr.write(f"hccl-tools: {line}\n")


def manifest_values(prepared: PreparedLaunch, request: LaunchRequest) -> dict[str, str]:
    """Return the values that must be equal on all hosts, by subject; long values as digests."""
    plan = prepared.plan
    found = {
        "number of ranks": str(plan.world_size),
        "--start": plan.start,
        "arguments": _hash(os.fsencode("\0".join([request.program.kind, *request.program.argv[1:]]))),
    }
    if prepared.table is not None:
        from hccl_tools.table.fingerprint import fingerprint  # noqa: PLC0415  (several hosts with a table only)

        found["fingerprint of the rank table"] = fingerprint(prepared.table)
    program = request.program.argv[0]
    is_file = request.program.kind != "module" and os.path.isfile(program)
    name = os.path.basename(program) if is_file else program
    found[PROGRAM] = f"{request.program.kind} {name}"
    if is_file:
        with open(program, "rb") as file:
            found[f"SHA-256 of {name}"] = _hash(file.read())
    variables = {**prepared.environment, **request.variables.assigned}.items()
    return found | {
        name: value
        for name, value in variables
        if name.startswith("HCCL_") and not name.startswith(_PER_HOST)
    }


def _hash(data: bytes) -> str:
    import hashlib  # noqa: PLC0415  (it loads OpenSSL: 3 ms)

    return hashlib.sha256(data).hexdigest()[:_DIGEST_LENGTH]
