"""``--engine ssh``: one supervisor per host over the user's ssh, without MPI.

``remote_shell`` is the program that starts and watches the connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.launch.engines.engine import CONNECT_SECONDS, Engine, EngineProcess, Located
from hccl_tools.programs import ssh

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan


class SshProcess(EngineProcess):
    """The process that holds the connections."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name in messages."""
        return "ssh"


class Ssh(Engine):
    """Starts the supervisors with ssh; on the launching host without it."""

    name = "ssh"
    takes_colons = True
    waits_for_lost_hosts = True
    uses_ssh = True
    #: Its program names the hosts in their output, which ssh encrypts.
    merges_output = False
    asks_hosts = True
    process = SshProcess

    def locate(self, environ: Mapping[str, str], wanted: str | None, hosts: Sequence[str]) -> Located:  # noqa: ARG002
        """Return the ssh to use: the ssh set for Open MPI, else the first on PATH.

        Raises:
            UsageError: The program does not exist.
        """
        return Located(" ".join(ssh.command(None, environ, wait=CONNECT_SECONDS)), self.name)

    def command(self, plan: Plan) -> list[str]:
        """Return the command line of the program that starts the supervisors of a plan."""
        hosts = ",".join(map(plan.way_to, plan.hosts))
        options = ["--ssh", plan.engine_program, "--hosts", hosts, "--dir", plan.working_dir]
        options += ["--export", ",".join(plan.exported)]
        if plan.shown != "all":
            shown = {plan.way_to(plan.rank(number).host) for number in plan.shown}
            options += ["--shown", ",".join(sorted(shown))]
        program = own_python.command("hccl_tools.launch.engines.remote_shell", *options)
        return [*program, "--", *plan.supervisor]

    def keeps_stderr_apart(self, plan: Plan) -> bool:  # noqa: ARG002
        """Return true: ssh's messages would mix with rank 0's output."""
        return True
