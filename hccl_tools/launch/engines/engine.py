"""The interface of an engine: a program that starts the agents of a job on their hosts."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING

from hccl_tools.host.local_addresses import interface_addresses
from hccl_tools.launch.model.plan import RankProcess
from hccl_tools.programs import ssh
from hccl_tools.records import NamedTuple
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan

#: Seconds for a host to accept an ssh connection.
CONNECT_SECONDS = 10


class Located(NamedTuple):
    """The program of an engine.

    Attributes:
        program: Its absolute path.
        flavour: The implementation and version, such as ``openmpi-5``.
        nodes: The nodes of a Slurm allocation that the job uses; empty for all nodes.
    """

    program: str = ""
    flavour: str = ""
    nodes: tuple[str, ...] = ()


class Reach(NamedTuple):
    """How this process reaches another host.

    Attributes:
        environ: The variables of this process.
        ssh: The ssh that the user typed; None for the default of :func:`hccl_tools.programs.ssh.command`.
        seconds: The timeout of a connection.
    """

    environ: Mapping[str, str]
    ssh: str | None = None
    seconds: int = CONNECT_SECONDS


class EngineProcess(RankProcess):
    """The process of an engine; the ranks are its descendants, on this host or on other hosts."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the program in messages: ``mpirun``."""
        return os.path.basename(self.argv[0])

    @property
    def is_engine(self) -> bool:
        """Return true."""
        return True


class Engine:
    """Starts ``plan.supervisor`` once on each host of a plan; the supervisors start the ranks.

    A subclass has a ``name``, finds its program (``locate``) and composes its command line (``command``).
    With ``on_host`` and ``asks_hosts``, it also asks hosts for tables, checks and copies.
    """

    name: str
    #: Whether one launcher starts the ranks of all hosts. Otherwise each host has its own launcher.
    starts_all_hosts = True
    #: Whether the engine can start a shim per rank on this host, as an MPI process, instead of supervisors.
    starts_mpi_ranks = False
    #: Whether the MPI is Open MPI, whose variables MindSpore reads.
    is_open_mpi = True
    uses_allocation = False
    #: Whether ``on_host`` reaches a host with the engine's own program. If not, mpirun or ssh asks the hosts.
    asks_hosts = False
    #: Whether the command line contains the host names of the rank table.
    names_hosts = True
    #: Whether these may be IPv6 addresses. For mpirun, a colon precedes the number of processes.
    takes_colons = False
    #: Whether the engine waits forever for an unreachable host, so that its children must be watched.
    waits_for_lost_hosts = False
    #: Whether it connects with the ssh of the site.
    uses_ssh = False
    #: Whether the output of all hosts arrives as one stream, so that no part of it shows its host. Then the
    #: agents send the output of ranks that are shown over their own connections to the launcher.
    merges_output = True
    #: Lines of the engine's output that begin with one of these texts are not shown.
    hidden_output: tuple[bytes, ...] = ()
    settings: Mapping[str, str] = MappingProxyType({})
    process: type[EngineProcess] = EngineProcess

    def of_flavour(self, flavour: str) -> Engine:  # noqa: ARG002  (for engines with several implementations)
        """Return the engine for an implementation."""
        return self

    def is_inside(self, environ: Mapping[str, str]) -> bool:  # noqa: ARG002  (for engines with allocations)
        """Return whether this process is in an allocation that the engine can use."""
        return False

    def locate(self, environ: Mapping[str, str], wanted: str | None, hosts: Sequence[str]) -> Located:  # noqa: ARG002  (for engines with a program)
        """Return the program of the engine, if it needs one; ``wanted`` is the value of ``--mpirun``.

        Raises:
            LaunchError: The program does not exist, or it cannot start this job.
        """
        return Located()

    def command(self, plan: Plan) -> list[str]:  # noqa: ARG002
        """Return the command line that starts the agents of a plan; empty if no program is needed."""
        return []

    def check_spares(self, environ: Mapping[str, str]) -> None:
        """Check that the job can continue on other hosts after the loss of a host.

        Raises:
            LaunchError: The engine or its scheduler would end the whole job.
        """

    def other_hosts(self, hosts: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG002
        """Return the hosts that the engine can start besides those of a job; empty if it knows none."""
        return ()

    def on_host(self, host: str, words: Sequence[str], reach: Reach) -> list[str]:
        """Return the command line that runs a program, with its arguments, on one host.

        It passes on standard input and output, and returns the exit code.
        """
        return ssh.on_host(ssh.command(reach.ssh, reach.environ, wait=reach.seconds), host, words)

    def probe(self, plan: Plan, host: str, command: Sequence[str]) -> list[str]:
        """Return the command line that runs a command on a host of a plan."""
        way = plan.nodes[plan.hosts.index(host)] if plan.nodes else plan.way_to(host)
        return self.on_host(way, command, Reach(os.environ))

    def why_ended(self, errors: Iterable[str]) -> str:  # noqa: ARG002  (for engines with such messages)
        """Return why the engine's scheduler has ended the job, from lines of its stderr; "" if unknown."""
        return ""

    def keeps_stderr_apart(self, plan: Plan) -> bool:  # noqa: ARG002  (for engines that do)
        """Return whether the stderr of the engine is written to a separate file."""
        return False

    def processes(self, plan: Plan) -> tuple[RankProcess, ...]:
        """Return the processes of this host's supervisor: the engine, and the scheduler of MPI ranks.

        The engine has rank 0, because its log contains the output that is shown.
        """
        first = plan.ranks[0]
        engine = self.process(
            rank=0,
            host=_launching_host(plan),
            server_index=first.server_index,
            device=first.device,
            device_id=first.device_id,
            environment=dict(self.settings),
            argv=tuple(self.command(plan)),
            log=names.ENGINE_LOG,
            errors=names.ENGINE_ERRORS if self.keeps_stderr_apart(plan) else "",
        )
        if plan.supervisor:
            return (engine,)  # The scheduler is started by the supervisor of rank 0's host.
        return (*(process for process in plan.local if process.rank < 0), engine)


def _launching_host(plan: Plan) -> str:
    """Return the IPv4 address or name by which the rank table lists this host, or its own name.

    No name is resolved: a job may have thousands of hosts.
    """
    if not plan.supervisor:
        return plan.ranks[0].host
    name = os.uname().nodename
    own = {name, *interface_addresses()}
    return next((host for host in plan.hosts if host in own), name)
