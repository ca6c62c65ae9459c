"""Rendezvous of the hosts of a job that was started by hand on each host, before the first rank starts.

Rank 0's host listens on the port that the ranks use later. The other hosts send their manifests to it, and
receive its verdict. A table, script or setting that differs would otherwise cause a timeout of HCCL or remain
undetected. The connections stay open (see ``peer_link``); the port is released for the ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.rendezvous_client import RendezvousClient
from hccl_tools.launch.cluster.rendezvous_server import RendezvousServer
from hccl_tools.launch.planning import ports

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.cluster.credentials import Credentials
    from hccl_tools.launch.cluster.job_hosts import JobHosts
    from hccl_tools.launch.cluster.membership import HostManifest, Membership

#: Seconds for all hosts to join: the command may be typed on each host in turn.
WAIT = 600.0


def join(
    own: HostManifest,
    hosts: JobHosts,
    *,
    credentials: Credentials,
    notify: Callable[[str], None],
    wait: float = WAIT,
    discovery_port: int = ports.DISCOVERY_PORT,
) -> Membership:
    """Return this host's membership once all hosts have joined and agree.

    Rank 0's host listens at the address of ``hosts``, and has a connection to each other host. ``wait`` is in
    seconds. Hosts with another start port connect to ``discovery_port``.

    Raises:
        RefusalError: Two hosts differ (the message names both), or a host refuses its part.
        LaunchError: A host did not join in time.
    """
    if own.server != hosts.master:
        return RendezvousClient(own, hosts, credentials, discovery_port, notify).join(wait)
    server = RendezvousServer(own, hosts, credentials)
    try:
        server.listen(discovery_port)
        return server.wait_for_all(wait, notify)
    finally:
        server.close()


def refuse(
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
