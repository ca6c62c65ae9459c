"""Compare the settings of all hosts of a job whose launchers were started by hand."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError, LaunchError
from hccl_tools.launch.cluster import job_hosts
from hccl_tools.launch.cluster.credentials import Credentials
from hccl_tools.launch.cluster.membership import (
    ARGUMENTS,
    CPU,
    MACHINES,
    PORT,
    PROGRAM,
    TABLE,
    TIMING,
    HostManifest,
    arguments_value,
)
from hccl_tools.launch.cluster.peer_link import PeerLink
from hccl_tools.launch.cluster.rendezvous_client import RendezvousClient
from hccl_tools.launch.cluster.rendezvous_server import RendezvousServer
from hccl_tools.launch.cluster.table_watch import TableWatch
from hccl_tools.launch.planning import moved_pod, ports
from hccl_tools.notation.printable import tell
from hccl_tools.programs.environment import KEY_FILE_VARIABLE, in_pod
from hccl_tools.runs import job_key
from hccl_tools.table.fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.cluster.job_hosts import JobHosts
    from hccl_tools.launch.cluster.membership import Membership
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch

#: Variables whose values differ from host to host; ascend-operator gives each logical super pod its own id.
_PER_HOST = ("HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "HCCL_LOGIC_SUPERPOD_ID", "HCCL_TOOLS_")
#: Characters of a value that is sent as text.
_LONGEST_TEXT = 4_000
#: Characters of a digest that are compared and shown.
_DIGEST_LENGTH = 12

#: What to do in pods, where ``hccl-tools key`` does not help.
_KEY_OF_PODS = (
    f"mount a Secret with the key in all pods, and set {KEY_FILE_VARIABLE} in their env to the path of its "
    "file"
)
#: Seconds for all hosts to join: the command may be typed on each host in turn. ``--wait`` may be more: pods
#: start when their image is there, some of them long after the table is complete.
WAIT = 600.0


def connect_peers(
    prepared: PreparedLaunch, request: LaunchRequest, *, until: float | None = None
) -> PeerLink | None:
    """Compare this host with the job's other hosts; return the connections, ``None`` without a rendezvous.

    Args:
        until: When the wait for the other hosts ends, if it began with an earlier table.

    Raises:
        LaunchError: The hosts differ, or a host did not join in time.
        TableChangedError: In a pod, there is another table.
    """
    hosts = job_hosts.of_plan(prepared)
    if hosts is None:
        return None
    now = time.monotonic()
    end = now + max(WAIT, request.table.wait or 0.0) if until is None else until
    watch = TableWatch(request, prepared.table_data, end) if moved_pod.may_change(request) else None
    joined = join(
        manifest(hosts, prepared, request),
        hosts,
        credentials=_credentials(hosts, request, notify=notify),
        notify=notify,
        wait=max(1.0, round(end - now)),
        look=watch.look if watch else None,
    )
    return PeerLink(hosts.own, hosts.master, hosts.names, joined, prepared.plan)


def refuse(prepared: PreparedLaunch | None, request: LaunchRequest, why: str) -> None:
    """Tell the hosts that wait why this host does not start its part.

    ``prepared`` is ``None`` if there is no plan, for example because the table has errors.
    """
    hosts = job_hosts.of_plan(prepared) if prepared else job_hosts.of_request(request, os.environ)
    if hosts is None:
        return
    own = manifest(hosts, prepared, request) if prepared else HostManifest(hosts.own, hosts.name, {})
    with suppress(HcclToolsError):  # Without a key or a free port; the user sees the first error.
        credentials = _credentials(hosts, request)
        notify(f"telling the other hosts that the job does not start (at most {TIMING.linger:g} s)")
        refuse_all(own, hosts, why, credentials=credentials)


def manifest(hosts: JobHosts, prepared: PreparedLaunch, request: LaunchRequest) -> HostManifest:
    """Return what this host sends to the rendezvous."""
    watch = request.watch
    settings = {"--max-restarts": str(watch.max_restarts), "--restart-on": ",".join(sorted(watch.restart_on))}
    settings |= {PORT: str(hosts.address[1]), MACHINES: _hash(os.fsencode(",".join(sorted(hosts.names))))}
    if request.hosts.ips:
        settings["--ips"] = _shown(",".join(hosts.names))
    values = manifest_values(prepared, request) | settings
    return HostManifest(hosts.own, hosts.name, values, prepared.plan.run_dir)


def _credentials(
    hosts: JobHosts, request: LaunchRequest, *, notify: Callable[[str], None] = lambda _line: None
) -> Credentials:
    try:
        key = job_key.find(os.environ)
        is_required = request.start.require_key or job_key.is_required(os.environ)
    except HcclToolsError as error:
        raise LaunchError(error.head, hint=error.hint, lines=error.lines) from error
    silence = request.watch.host_timeout
    if key is not None:
        return Credentials(hosts.name, key.secret, silence)
    create, copy = "`hccl-tools key create`", "`hccl-tools key copy HOSTS`"
    if is_required:
        raise LaunchError(
            f"{hosts.name} has no job key, and this job requires one",
            hint=_KEY_OF_PODS if in_pod() else f"create it on one host with {create}, then {copy}",
        )
    who = "every user of the job's hosts" if hosts.addresses else "everyone who reaches the rendezvous port"
    notify(
        f"no job key: {who} can join or end this job; "
        + (f"to prevent this, {_KEY_OF_PODS}" if in_pod() else f"{create} and {copy} prevent this")
    )
    return Credentials(hosts.name, b"", silence, hosts.addresses)


def notify(line: str) -> None:
    """Print a line for the user while no rank is running; other hosts may have written it."""
    tell(f"hccl-tools: {line}")


def manifest_values(prepared: PreparedLaunch, request: LaunchRequest) -> dict[str, str]:
    """Return the values that must be equal on all hosts, by subject; long values as digests."""
    plan = prepared.plan
    found = {
        "number of ranks": str(plan.world_size),
        "--start": plan.start,
        CPU: "yes" if plan.cpu else "no",
        ARGUMENTS: arguments_value(
            _hash(os.fsencode("\0".join([request.program.kind, *request.program.argv[1:]]))),
            request.program.argv[1:],
        ),
    }
    if prepared.table is not None:
        found[TABLE] = fingerprint(prepared.table)
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


def _shown(text: str) -> str:
    """Return a text for a message; the digest of a text that is too long for a manifest."""
    return text if len(text) <= _LONGEST_TEXT else _hash(os.fsencode(text))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_LENGTH]


def join(
    own: HostManifest,
    hosts: JobHosts,
    *,
    credentials: Credentials,
    notify: Callable[[str], None],
    wait: float = WAIT,
    look: Callable[[], None] | None = None,
    discovery_port: int = ports.DISCOVERY_PORT,
) -> Membership:
    """Return this host's membership once all hosts have joined and agree.

    Rank 0's host listens at the address of ``hosts``, and has a connection to each other host. ``wait`` is in
    seconds. Hosts with another start port connect to ``discovery_port``.

    ``look`` is called while this host waits, and may raise. With it, a host with another table is not an
    error: the table of one of the two hosts will change.

    Raises:
        RefusalError: Two hosts differ (the message names both), or a host refuses its part.
        LaunchError: A host did not join in time.
    """
    if own.server != hosts.master:
        return RendezvousClient(own, hosts, credentials, discovery_port, notify, look=look).join(wait)
    server = RendezvousServer(own, hosts, credentials, look)
    try:
        server.listen(discovery_port)
        return server.wait_for_all(wait, notify)
    finally:
        server.close()


def refuse_all(
    own: HostManifest,
    hosts: JobHosts,
    why: str,
    *,
    credentials: Credentials,
    discovery_port: int = ports.DISCOVERY_PORT,
) -> None:
    """Tell the hosts that wait why this host does not start its part; takes a few seconds at most."""
    if own.server != hosts.master:
        RendezvousClient(own, hosts, credentials, discovery_port, lambda _line: None).refuse(why)
        return
    server = RendezvousServer(own, hosts, credentials)
    try:
        server.listen(discovery_port)
        server.refuse(why)
    finally:
        server.close()
