"""How the hosts of a job that was started by hand recognise each other: by a job key, else by address.

What a peer claims that has not proved itself has one effect, a sentence for the user: the host that hears it
goes on waiting, and does not end the job because of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.notation.phrases import and_more, named
from hccl_tools.records import NamedTuple
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from hccl_tools.launch.protocol.connection import Connection
    from hccl_tools.launch.protocol.listener import Listener

_SAYS = {
    "keyless here": "says that it has a job key",
    "keyless there": "says that it has no job key",
    "key": "says that it has another job key",
    "proof": "answers with a wrong proof of the job key",
    "address": "says that it does not accept this host's address",
    "elsewhere": "says that the connection was for another address or port",
    "version": "says that it has hccl-tools {version}, with another protocol",
    "protocol": "does not speak the protocol of hccl-tools",
}
#: The kinds of claim that another copy of the key can end.
_WITHOUT_KEY = frozenset({"keyless there", "key", "proof"})
_MOST_NAMED = 4


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

    def check(self, connection: Connection, master: str, *, awaits_table: bool = False) -> None:
        """Check why a connection to the host of rank 0 has ended.

        With a key only what is proved counts. Without one nothing can be proved, and the first answer counts.
        If ``awaits_table``, that host may soon have a table with the address of this one.

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
        if problem.kind == "address" and not awaits_table:
            raise LaunchError(
                f"{master} does not accept {host}: without a job key, its address must be one of the job's",
                hint=f"run `hccl-tools key create` on {master} and `hccl-tools key copy` for the other hosts",
            )


def version_conflict(here: str, there: str, version: str) -> str:
    """Describe that the host ``there`` has another version of hccl-tools than this host."""
    return f"version of hccl-tools: {here} has {__version__}, {there} has {version}"


def claim_of_guest(address: str, kind: str, own: str, hosts: frozenset[str] | None) -> str:
    """Return the line about a peer that has connected to ``own``, rank 0's host, without the job's key.

    ``hosts`` are the addresses of the job's hosts, ``None`` if they are unknown. A stranger can say the same
    as a host: the command to copy the key is for an address of the job, or under this condition.
    """
    if hosts is not None and address not in hosts:
        return f"{address}, which is not an address of the job's hosts, {_SAYS[kind]} (not proved)"
    condition = "" if hosts is not None else "if it is a host of this job, "
    return (
        f"{address} {_SAYS[kind]} (not proved): {condition}run `{_copy(address, kind)}` on {own}, "
        f"then start the job on {address} again"
    )


class UnprovedAnswers:
    """What programs have answered to this host in place of rank 0's host.

    ``master`` is the address of that host; "" if the key is not the user's, but that of a run.
    """

    def __init__(self, master: str) -> None:
        self._master = master
        #: In order, each once; bounded by the few kinds and addresses.
        self._heard: dict[str, None] = {}

    def note(self, connection: Connection, port: int) -> str:
        """Record an answer; return a line for the user, "" if this answer is known or says nothing."""
        problem, where = connection.problem, f"{connection.address} (port {port})"
        if problem is None:
            said = "closes connections without an answer" if connection.closed else "does not answer"
            self._heard.setdefault(f"{where} {said}")
            return ""
        said = _SAYS[problem.kind].format(version=problem.version)
        text = f"{where} {said} (not proved)"
        if text in self._heard or len(self._heard) >= _MOST_NAMED:
            return ""
        self._heard[text] = None
        return f"{text}; this host goes on waiting{self._help(problem.kind, connection.own_address)}"

    def note_silence(self, address: str, port: int) -> None:
        """Record that a peer with the key has not continued the rendezvous."""
        self._heard.setdefault(f"{address} (port {port}) has the job key, but has stopped answering")

    def summary(self) -> str:
        """Return what was heard, "" if nothing was."""
        return and_more([*self._heard], _MOST_NAMED)

    def _help(self, kind: str, own: str) -> str:
        if kind not in _WITHOUT_KEY or not self._master:
            return ""
        if kind == "keyless there":
            return f": if it is {self._master}, run `{_copy(self._master, kind)}` here, and start it again"
        return (
            f": if it is {self._master}, run `{_copy(own, kind)}` there, and start the job on this host again"
        )


def _copy(host: str, kind: str) -> str:
    return f"hccl-tools key copy {named(host, 'HOST')}{'' if kind == 'keyless there' else ' --force'}"
