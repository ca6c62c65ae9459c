"""Jobs of two hosts and a spare, started by ssh or an mpirun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import published
from tests.support.jobs import LONG, eventually
from tests.support.processes import has_ended, kill_all, name_of
from tests.support.spares import OPTIONS, TIMING, write_table
from tests.support.three_by import environ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.beds.network_host import Host
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.mpiruns import Mpirun, Ssh

LAUNCH = [sys.executable, "-m", "hccl_tools", "launch", "--product", "a2", "--cpu", *OPTIONS]


class OnThreeHosts:
    """Where a job runs: started on the first of three hosts, on the first two, with the third in reserve."""

    def __init__(
        self, bed: ThreeHosts, engine: Mpirun | Ssh, *, reserve: Sequence[str] | None = None
    ) -> None:
        """``reserve`` are the hosts in reserve, by default the third host."""
        self.bed, self.engine, self.hosts = bed, engine, bed.hosts
        reserve = [self.spare] if reserve is None else reserve
        self._options = ["--spare-hosts", ",".join(reserve)] if reserve else []

    @property
    def spare(self) -> str:
        return self.hosts[2].address

    def start(self, *argv: str) -> subprocess.Popen[str]:
        return self.hosts[0].start(
            [*LAUNCH, *self.engine.for_launch, *self._options, *argv],
            env=environ(self.bed) | TIMING,
            **_STREAMS,
        )


class SpareJob:
    """A job whose second host is replaced."""

    def __init__(self, place: OnThreeHosts, *argv: str, own_table: bool = False) -> None:
        """Start it; ``argv`` are further options and the program, with ``own_table`` also the rank table."""
        self.place = place
        self._always = {pid for host in place.hosts for pid in host.pids()}
        first, second, _ = (host.address for host in place.hosts)
        table = () if own_table else ("--rank-table", write_table(first, second))
        self.launcher = place.start(*table, *argv)

    def waits_for(self, *files: str | Path) -> bool:
        """Whether the job writes these files before long."""
        return eventually(lambda: all(map(os.path.exists, files)) or self.has_ended) and not self.has_ended

    @property
    def has_ended(self) -> bool:
        return self.launcher.poll() is not None

    def on(self, host: Host) -> list[int]:
        """Return the processes of the job on a host, without those of the host's own daemons."""
        found = [pid for pid in host.pids() if pid not in self._always]
        return [pid for pid in found if not has_ended(pid) and name_of(pid) != _DAEMON]

    def left(self) -> list[int]:
        """Return the processes of the job on all hosts."""
        return [pid for host in self.place.hosts for pid in self.on(host)]

    def kill(self) -> None:
        """Kill everything on the second host."""
        kill_all(self.on(self.place.hosts[1]))

    def end(self) -> tuple[int, str, dict[str, Any]]:
        """Wait for the end: the code, the output and the report; nothing may be left on any host."""
        try:
            said = self.launcher.communicate(timeout=LONG)[0]
        finally:
            self.launcher.kill()
        assert eventually(lambda: not self.left()), (said, self.left())
        return self.launcher.returncode, said, published.read("report", Path("log/latest/report.json"))


#: A host that is cut off keeps its sessions, until it notices that.
_DAEMON = "sshd"
_STREAMS: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.STDOUT,
}
