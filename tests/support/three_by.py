"""A job of three hosts, servers and ranks of its table in no order, started by ssh, mpirun or by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support import published
from tests.support.jobs import eventually
from tests.support.mpiruns import MPIRUNS, Ssh
from tests.support.processes import has_ended, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.beds.network_host import Host
    from tests.beds.three_hosts import ThreeHosts
    from tests.support.mpiruns import Mpirun

#: Index of the host of rank 0, of rank 1 and of rank 2, and so on again: the last host has rank 0.
ORDER = (2, 0, 1)
#: Findings on a table of less than eight devices per server, and of servers with an IPv6 address.
IGNORED = "HCC2,HCC4,HCC5,HCC6"
KEY = "0123456789abcdef" * 4
#: A rank that nothing but a signal ends; its process id is in the file ``up_<rank>``.
STAYS = (
    "--no-python",
    "sh",
    "-c",
    'echo $$ > "new_$RANK_ID"; mv "new_$RANK_ID" "up_$RANK_ID"; exec sleep 6464',
)


class Start(NamedTuple):
    """A way to start the job: by an engine from the first host, or (``None``) by hand on each host."""

    name: str
    engine: Mpirun | Ssh | None
    has_key: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def controller(self) -> int:
        """The index of the host whose launcher all others are connected to."""
        return 0 if self.engine else ORDER[0]

    @property
    def supervisor(self) -> str:
        """What messages call the process that starts the ranks of a host."""
        return "supervisor" if self.engine else "launcher"


BY_HAND = (Start("by hand", None), Start("by hand with key", None, has_key=True))
BY_SSH = Start("ssh", Ssh())
#: Every way that this machine has.
STARTS = (BY_SSH, *(Start(str(mpirun), mpirun) for mpirun in MPIRUNS), *BY_HAND)


def host_of(rank: int) -> int:
    """Return the index of a rank's host."""
    return ORDER[rank % len(ORDER)]


def ranks_of(index: int, count: int) -> list[int]:
    """Return the ranks on a host, of a job of so many."""
    return [rank for rank in range(count) if host_of(rank) == index]


def table(addresses: Sequence[str], ranks: int) -> dict[str, Any]:
    """Return the rank table."""
    servers = [
        {
            "server_id": addresses[index],
            "device": [
                {"device_id": str(device), "device_ip": f"192.168.{index}.{device}", "rank_id": str(rank)}
                for device, rank in enumerate(ranks_of(index, ranks), 4)
            ],
            "host_nic_ip": "reserve",
        }
        for index in (1, 2, 0)
    ]
    return {"version": "1.0", "server_count": "3", "server_list": servers, "status": "completed"}


def environ(bed: ThreeHosts, *, key: bool = False) -> dict[str, str]:
    """Return an environment in which every engine reaches the other hosts by the bed's ssh."""
    agent = {
        f"{prefix}_MCA_plm_{name}_agent": str(bed.ssh)
        for prefix in ("OMPI", "PRTE")
        for name in ("rsh", "ssh")
    }
    found = {**os.environ, **agent, "HYDRA_LAUNCHER_EXEC": str(bed.ssh)}
    return {**found, "HCCL_TOOLS_JOB_KEY": KEY} if key else found


class Job:
    """A job that has been started in the current folder, with a log directory for each of its launchers.

    Attributes:
        names: What the table calls the hosts.
        hosts: The hosts of the launchers: the first of the bed, or all if it was started by hand.
        launchers: The processes that were started, in the same order.
    """

    def __init__(
        self,
        bed: ThreeHosts,
        start: Start,
        options: Sequence[str] = (),
        program: Sequence[str] = STAYS,
        *,
        ranks: int = 3,
        ipv6: bool = False,
        own_tables: Mapping[int, dict[str, Any]] | None = None,
        variables: Mapping[str, str] | None = None,
        output: int = subprocess.PIPE,
    ) -> None:
        """Start it; ``own_tables`` has the tables of hosts that have another than the rest, by index."""
        self.bed, self.start, self.ranks = bed, start, ranks
        self.names = [host.ipv6 if ipv6 else host.address for host in bed.hosts]
        self._always = {pid for host in bed.hosts for pid in host.pids()}
        tables = dict.fromkeys(range(3), table(self.names, ranks)) | dict(own_tables or {})
        self.hosts = bed.hosts[:1] if start.engine else bed.hosts
        self.launchers: list[subprocess.Popen[str]] = []
        for index, host in enumerate(self.hosts):
            file = Path(f"table_{index}.json")
            file.write_text(json.dumps(tables[index]))
            self.launchers.append(
                host.start(
                    [
                        *(*_LAUNCH, "--rank-table", str(file), *self._engine(), *options),
                        *("--log-dir", str(self.log_dir(host)), *program),
                    ],
                    env=environ(bed, key=start.has_key) | dict(variables or {}),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )

    def _engine(self) -> Sequence[str]:
        return self.start.engine.for_launch if self.start.engine else ()

    def log_dir(self, host: Host) -> Path:
        """Return the log directory of a host's launcher."""
        return Path(f"log_{host.namespace}")

    def run_dirs(self) -> list[Path]:
        """Return the run directory of each launcher."""
        return [(self.log_dir(host) / "latest").resolve() for host in self.hosts]

    def logs(self) -> dict[int, Path]:
        """Return the logs of the ranks."""
        found = [log for run_dir in self.run_dirs() for log in run_dir.glob("rank_?.log")]
        return {int(log.stem.removeprefix("rank_")): log for log in found}

    def reports(self) -> list[dict[str, Any]]:
        """Return the report of each launcher that has written one."""
        paths = [run_dir / "report.json" for run_dir in self.run_dirs()]
        return [published.read("report", path) for path in paths if path.exists()]

    def is_up(self) -> bool:
        """Whether all ranks run before long; for ranks that write their process ids."""
        return eventually(lambda: len(list(Path().glob("up_*"))) == self.ranks)

    def pid(self, rank: int) -> int:
        """Return the process of a rank that has written it."""
        return int(Path(f"up_{rank}").read_text())

    def living(self) -> list[int]:
        """Return the processes of the job, on all hosts, that have not ended.

        The session of an sshd that is cut off ends when its administrator's settings say so.
        """
        found = {pid for host in self.bed.hosts for pid in host.pids()} - self._always
        return [pid for pid in found if not has_ended(pid) and name_of(pid) != "sshd"]

    def end(self, within: float) -> tuple[list[int], list[str]]:
        """Wait for the launchers; their exit codes and what they said."""
        said = [launcher.communicate(timeout=within)[0] for launcher in self.launchers]
        return [launcher.returncode for launcher in self.launchers], said


_LAUNCH = (
    *(sys.executable, "-m", "hccl_tools", "launch", "--product", "a2", "--ignore", IGNORED),
    *("--cpu", "--python", sys.executable),
)
