"""How the hosts of a job that was started by hand recognise each other: by a job key, else by address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.notation.phrases import named
from hccl_tools.records import NamedTuple
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from hccl_tools.launch.protocol.connection import Connection
    from hccl_tools.launch.protocol.listener import Listener


class Credentials(NamedTuple):
    """What this host accepts.

    Attributes:
        host: The name of this host in the job.
        secret: The job key; empty if this host has none.
        silence: Seconds without an answer until a host counts as lost.
        addresses: Without a key, the addresses from which connections are accepted; ``None`` for all, if the
            job has no table that lists its hosts.
    """

    host: str
    secret: bytes
    silence: float
    addresses: frozenset[str] | None = frozenset()

    def allows(self, address: str) -> bool:
        """Return whether a host with this address may connect."""
        return bool(self.secret) or self.addresses is None or address in self.addresses

    def conflict(self, listener: Listener) -> str:
        """Return why a host of the job cannot take part; "" if there is no such host.

        A connection that has proved nothing is not taken for a host of the job, unless the job has no key.
        """
        for address, problem in listener.problems.items():
            if problem is not None and problem.kind == "keyless here":
                return f"{address} has a job key, and {self.host} has none"
        for address, version in listener.other_versions.items():
            return version_conflict(self.host, address, version)
        return ""

    def check(self, connection: Connection, master: str) -> None:
        """Check why a connection to the host of rank 0 has ended.

        With a key only what is proved counts. Without one nothing can be proved, and the first answer counts.

        Raises:
            LaunchError: Another attempt cannot succeed.
        """
        problem, host = connection.problem, self.host
        if problem is None or (self.secret and not connection.is_proved):
            return  # Another program may have the port.
        if problem.kind == "version":
            there = problem.version
            raise LaunchError(
                f"version of hccl-tools: {master} has {there}, {host} has {__version__}",
                hint="install the same version on all hosts",
            )
        if problem.kind == "keyless here":
            raise LaunchError(
                f"{master} has a job key, and {host} has none",
                hint=f"run `hccl-tools key copy {named(connection.own_address, 'HOST')}` on {master}",
            )
        if problem.kind == "address":
            raise LaunchError(
                f"{master} does not accept {host}: without a job key, its address must be one of the job's",
                hint=f"run `hccl-tools key create` on {master} and `hccl-tools key copy` for the other hosts",
            )


def version_conflict(here: str, there: str, version: str) -> str:
    """Describe that the host ``there`` has another version of hccl-tools than this host."""
    return f"version of hccl-tools: {here} has {__version__}, {there} has {version}"
