"""A Slurm cluster as sites have it: a login node and three others, each with an address, name and disk."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.daemons import Daemon, end_processes, need, pids_with_environment, program, wait_until
from tests.beds.network_host import configure, make_host
from tests.beds.two_nodes import SLURM_CONFIG, start_munge, write_task_prolog

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.beds.network_host import Host

_ADDRESSES = {"login": "10.79.0.254", "n1": "10.79.0.1", "n2": "10.79.0.2", "n3": "10.79.0.3"}
_NAMES = tuple(_ADDRESSES)[1:]
_NODES = "".join(f"NodeName={name} NodeAddr={_ADDRESSES[name]} CPUs=8\n" for name in _NAMES)


@dataclass(frozen=True)
class SlurmCluster:
    """The bed. Jobs are submitted on ``login``; the cable of a node can be pulled, and a node can die."""

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

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program on the login node to its end."""
        return self.login.run(argv, env=self.env, **options)

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a program on the login node."""
        return self.login.start(argv, env=self.env, **options)

    def states(self) -> list[str]:
        return self.run([program("sinfo"), "--noheader", "--Node", "--format=%t"]).stdout.split()

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


def _wire(hosts: Sequence[Host]) -> None:
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
    programs = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "scancel", "scontrol"]
    need("slurm_cluster", [*programs, "ip", "nsenter", "unshare", "hostname"])
    folder.chmod(0o755)
    tag = f"{os.getpid()}"
    with ExitStack() as stack:
        options: dict[str, Any] = {"neighbours": _ADDRESSES.values(), "own_sys": False}
        hosts = [
            make_host(stack, f"hccl{tag}{name}", address, folder / name, name=name, **options)
            for name, address in _ADDRESSES.items()
        ]
        _wire(hosts)
        login, first, second, third = hosts
        bed = SlurmCluster(login, first, second, third, folder / "slurm.conf", stack)
        text = SLURM_CONFIG.format(
            host="login",
            address=_ADDRESSES["login"],
            ports=(6817, 6818),
            folder=folder,
            nodes=_NODES,
            names=",".join(_NAMES),
        )
        write_task_prolog(folder)
        bed.config.write_text(text)
        stack.callback(end_processes, lambda: pids_with_environment(f"SLURM_CONF={bed.config}"))
        start_munge(stack, folder, bed.env)
        _start_daemons(bed, folder)
        yield bed


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """A login node and the nodes n1 to n3, which share no disk but the bed's own folders."""
    with make_slurm_cluster(tmp_path_factory.mktemp("slurm_cluster")) as bed:
        yield bed
