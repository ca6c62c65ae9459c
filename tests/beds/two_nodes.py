"""A Slurm cluster of two nodes on one machine, with a munge of its own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.daemons import Daemon, end_processes, need, pids_with_environment, program, wait_until
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.beds.slurm_cluster import SlurmCluster

SLURM_CONFIG = """\
ClusterName=bed
SlurmctldHost={host}({address})
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
ProctrackType=proctrack/pgid
TaskPlugin=task/none
TaskProlog={folder}/task_prolog
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=5
MailProg=/bin/true
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
{nodes}\
PartitionName=p Nodes={names} Default=YES State=UP
"""
_NODES = """\
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=8
"""

#: A batch job may import MindSpore on as few as two cores.
_LONGEST_JOB_S = 300.0


@dataclass(frozen=True)
class TwoNodes:
    """The bed: nodes n1 and n2. ``env`` is what makes a program talk to this cluster and no other.

    Both are this machine. What a site's TaskProlog would set on a node stands in ``n1.env`` and ``n2.env``.
    """

    folder: Path
    config: Path

    @property
    def env(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.config)}

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a Slurm command or a program that uses Slurm, to its end (at most 120 s)."""
        env = {**os.environ, **options.pop("env", {}), **self.env}
        options = {"timeout": 120, "capture_output": True, **options}
        return subprocess.run(argv, text=True, env=env, check=False, **options)


def run_batch_job(bed: TwoNodes | SlurmCluster, argv: Sequence[str], **options: Any) -> int:
    """Run a batch job to its end; return its exit code. ``sbatch --wait`` would look every 2 to 10 s."""
    submitted = bed.run(["sbatch", "--parsable", *argv], **options)
    assert submitted.returncode == 0, submitted.stderr
    job = submitted.stdout.strip()

    def ended() -> re.Match[str] | None:
        shown = bed.run(["scontrol", "--oneliner", "show", "job", job]).stdout
        return re.search(r" JobState=(?:COMPLETED|FAILED|CANCELLED|NODE_FAIL) .* ExitCode=(\d+):", shown)

    assert eventually(ended, _LONGEST_JOB_S), f"job {job} does not end"
    found = ended()
    assert found is not None
    return int(found[1])


def write_task_prolog(folder: Path) -> None:
    """Let each node add its own variables to every task (lines such as ``export HOST_IP=10.78.0.1``)."""
    script = folder / "task_prolog"
    variables = f"{folder}/$SLURMD_NODENAME.env"
    script.write_text(f"#!/bin/sh\n[ ! -e {variables} ] || cat {variables}\n")
    script.chmod(0o755)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def start_munge(stack: ExitStack, folder: Path, env: dict[str, str]) -> None:
    """Start a munge of one's own, whose socket lies in ``folder``."""
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    files = {"socket": "sock", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={folder}/munge.{suffix}" for option, suffix in files.items()]
    # The folder lies under a world-writable one, which munged takes only with --force.
    argv = [program("munged"), "--foreground", "--force", f"--key-file={key}", *options]
    daemon = Daemon(argv, log=folder / "munged.out", env=env)
    stack.callback(daemon.stop)
    wait_until((folder / "munge.sock").exists, "munge's socket", log=daemon.log)


def _start_slurm(stack: ExitStack, bed: TwoNodes, env: dict[str, str]) -> None:
    (bed.folder / "state").mkdir()
    daemons = [
        [program("slurmctld"), "-D"],
        *([program("slurmd"), "-D", "-N", node] for node in ("n1", "n2")),
    ]
    for argv in daemons:
        log = bed.folder / f"{Path(argv[0]).name}-{argv[-1].lstrip('-')}.out"
        stack.callback(Daemon(argv, log=log, env=env).stop)
    stack.callback(bed.run, [program("scancel"), "--user=root", "--signal=KILL"])

    def both_idle() -> bool:
        states = bed.run([program("sinfo"), "--noheader", "--Node", "--format=%t"]).stdout.split()
        return states == ["idle", "idle"]

    wait_until(both_idle, "two idle nodes", log=bed.folder / "slurmctld.log")


@pytest.fixture(scope="session")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    """A Slurm cluster of two nodes with eight cores each."""
    need("two_nodes", ["munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "scancel"])
    folder = tmp_path_factory.mktemp("two_nodes")
    folder.chmod(0o755)
    bed = TwoNodes(folder, folder / "slurm.conf")
    write_task_prolog(folder)
    host = socket.gethostname().split(".")[0]
    ports = _free_ports(3)
    nodes = _NODES.format(host=host, ports=ports)
    facts = {"host": host, "address": "127.0.0.1", "ports": ports, "folder": folder}
    bed.config.write_text(SLURM_CONFIG.format(**facts, nodes=nodes, names="n1,n2"))
    env = {**os.environ, **bed.env}
    with ExitStack() as stack:
        stack.callback(end_processes, lambda: pids_with_environment(f"SLURM_CONF={bed.config}"))
        start_munge(stack, folder, env)
        _start_slurm(stack, bed, env)
        yield bed
