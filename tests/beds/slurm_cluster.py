"""A Slurm cluster as sites have it: a login node and three others, each with an address, name and disk."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds import network_host
from tests.beds.daemons import Daemon, end_processes, need, pids_with_environment, program, wait_until
from tests.beds.network_host import configure, make_host
from tests.support.jobs import eventually

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.beds.network_host import Host

_CONFIG = """\
ClusterName=bed
SlurmctldHost=login({address})
SlurmctldPort=6817
SlurmdPort=6818
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
PartitionName=two Nodes={two} Default=YES State=UP
PartitionName={all_nodes} Nodes={names} State=UP
"""
PROGRAMS = (
    *("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "scancel", "scontrol"),
    *network_host.PROGRAMS,
)
_ADDRESSES = {"login": "10.79.0.254", "n1": "10.79.0.1", "n2": "10.79.0.2", "n3": "10.79.0.3"}
_NAMES = tuple(_ADDRESSES)[1:]
_NODES = "".join(f"NodeName={name} NodeAddr={_ADDRESSES[name]} CPUs=8\n" for name in _NAMES)

#: The partition with the third node. The default partition has only n1 and n2, so that a job of two nodes
#: never gets n3 while an earlier job completes.
ALL_NODES = "all"
#: A batch job may import MindSpore on as few as two cores.
_LONGEST_JOB_S = 300.0


@dataclass(frozen=True)
class SlurmCluster:
    """The bed. Jobs are submitted on ``login``; the cable of a node can be pulled, and a node can die.

    What a site's TaskProlog would set on a node stands in ``folder``, in ``n1.env`` and so on.
    """

    login: Host
    first: Host
    second: Host
    third: Host
    config: Path
    daemons: ExitStack

    @property
    def nodes(self) -> tuple[Host, ...]:
        return (self.first, self.second, self.third)

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.config)}

    @property
    def folder(self) -> Path:
        """What the login node and all others share."""
        return self.config.parent

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on the login node to its end; ``env`` are further variables."""
        return self.login.run(argv, env={**self.env, **(env or {})}, **options)

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a program on the login node."""
        return self.login.start(argv, env=self.env, **options)

    def states(self) -> list[str]:
        return self.run(
            [program("sinfo"), "--noheader", "--Node", f"--partition={ALL_NODES}", "--format=%t"]
        ).stdout.split()

    @property
    def is_idle(self) -> bool:
        return self.states() == ["idle"] * len(self.nodes)

    def start_daemon(self, host: Host, name: str, *options: str) -> None:
        argv, log = [program(name), "-D", *options], self.config.with_name(f"{host.namespace}.out")
        self.daemons.callback(Daemon(host.command(argv), log=log, env=self.env).stop)

    def revive(self, node: Host) -> None:
        """Start Slurm's daemon on a node on which everything was killed; the node is idle on return."""
        self.start_daemon(node, "slurmd", "-N", node.name)
        self.run([program("scontrol"), "update", f"nodename={node.name}", "state=resume"])
        wait_until(lambda: self.is_idle, "idle nodes", log=self.config.with_name("slurmctld.log"))


def run_batch_job(bed: SlurmCluster, argv: Sequence[str], **options: Any) -> int:
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


def _write_task_prolog(folder: Path) -> None:
    """Let each node add its own variables to every task (lines such as ``export HOST_IP=10.78.0.1``)."""
    script = folder / "task_prolog"
    variables = f"{folder}/$SLURMD_NODENAME.env"
    script.write_text(f"#!/bin/sh\n[ ! -e {variables} ] || cat {variables}\n")
    script.chmod(0o755)


def _start_munge(stack: ExitStack, folder: Path, env: Mapping[str, str]) -> None:
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


def _connect(hosts: Sequence[Host]) -> None:
    """Join the hosts by a switch, which stands in the first."""
    login = hosts[0].namespace
    configure("-n", login, "link", "add", "cable", "type", "bridge")
    for number, host in enumerate(hosts[1:], 1):
        far = ("peer", "name", "cable", "netns", host.namespace)
        configure("link", "add", "name", f"port{number}", "netns", login, "type", "veth", *far)
        configure("-n", login, "link", "set", f"port{number}", "master", "cable", "up")
    for host in hosts:
        configure("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", host.cable)
        configure("-n", host.namespace, "link", "set", host.cable, "up")


def _start_daemons(bed: SlurmCluster, folder: Path) -> None:
    (folder / "state").mkdir()
    bed.start_daemon(bed.login, "slurmctld")
    for node in bed.nodes:
        bed.start_daemon(node, "slurmd", "-N", node.name)
    bed.daemons.callback(bed.run, [program("scancel"), "--user=root", "--signal=KILL"])
    wait_until(lambda: bed.is_idle, "idle nodes", log=folder / "slurmctld.log")


@contextmanager
def make_slurm_cluster(folder: Path) -> Iterator[SlurmCluster]:
    """A cluster with its files in a folder, until the context is left."""
    need("slurm_cluster", PROGRAMS)
    folder.chmod(0o755)
    tag = f"{os.getpid()}"
    with ExitStack() as stack:
        options: dict[str, Any] = {"neighbours": _ADDRESSES.values(), "own_sys": False}
        hosts = [
            make_host(stack, f"hccl{tag}{name}", address, folder / name, name=name, **options)
            for name, address in _ADDRESSES.items()
        ]
        _connect(hosts)
        login, first, second, third = hosts
        bed = SlurmCluster(login, first, second, third, folder / "slurm.conf", stack)
        facts = {
            "address": _ADDRESSES["login"],
            "nodes": _NODES,
            "names": ",".join(_NAMES),
            "two": ",".join(_NAMES[:2]),
            "all_nodes": ALL_NODES,
        }
        text = _CONFIG.format(folder=folder, **facts)
        _write_task_prolog(folder)
        bed.config.write_text(text)
        stack.callback(end_processes, lambda: pids_with_environment(f"SLURM_CONF={bed.config}"))
        _start_munge(stack, folder, bed.env)
        _start_daemons(bed, folder)
        yield bed


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """A login node and the nodes n1 to n3, which share no disk but the bed's own folders."""
    with make_slurm_cluster(tmp_path_factory.mktemp("slurm_cluster")) as bed:
        yield bed
