"""A Slurm cluster as sites have it: a login node and two others, each with its own address, name and disk."""

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

_NODES = """\
NodeName=n1 NodeAddr=10.79.0.1 CPUs=8
NodeName=n2 NodeAddr=10.79.0.2 CPUs=8
"""


@dataclass(frozen=True)
class SlurmCluster:
    """The bed. Jobs are submitted on ``login``; the cable of a node can be pulled."""

    login: Host
    first: Host
    second: Host
    config: Path

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


def _start_daemons(stack: ExitStack, bed: SlurmCluster, folder: Path) -> None:
    (folder / "state").mkdir()
    daemons = [
        (bed.login, ["slurmctld", "-D"]),
        (bed.first, ["slurmd", "-D", "-N", "n1"]),
        (bed.second, ["slurmd", "-D", "-N", "n2"]),
    ]
    for host, argv in daemons:
        log = folder / f"{host.namespace}.out"
        stack.callback(Daemon(host.command([program(argv[0]), *argv[1:]]), log=log, env=bed.env).stop)
    stack.callback(bed.run, [program("scancel"), "--user=root", "--signal=KILL"])
    wait_until(lambda: bed.states() == ["idle", "idle"], "two idle nodes", log=folder / "slurmctld.log")


@contextmanager
def make_slurm_cluster(folder: Path) -> Iterator[SlurmCluster]:
    """A cluster with its files in a folder, until the context is left."""
    programs = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "scancel"]
    need("slurm_cluster", [*programs, "ip", "nsenter", "unshare", "hostname"])
    folder.chmod(0o755)
    tag = f"{os.getpid()}"
    with ExitStack() as stack:
        addresses = {"login": "10.79.0.254", "n1": "10.79.0.1", "n2": "10.79.0.2"}
        options: dict[str, Any] = {"neighbours": addresses.values(), "own_sys": False}
        hosts = [
            make_host(stack, f"hccl{tag}{name}", address, folder / name, name=name, **options)
            for name, address in addresses.items()
        ]
        _wire(hosts)
        bed = SlurmCluster(hosts[0], hosts[1], hosts[2], folder / "slurm.conf")
        text = SLURM_CONFIG.format(
            host="login", address="10.79.0.254", ports=(6817, 6818), folder=folder, nodes=_NODES
        )
        write_task_prolog(folder)
        bed.config.write_text(text)
        stack.callback(end_processes, lambda: pids_with_environment(f"SLURM_CONF={bed.config}"))
        start_munge(stack, folder, bed.env)
        _start_daemons(stack, bed, folder)
        yield bed


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """A login node and the nodes n1 and n2, which share no disk but the bed's own folders."""
    with make_slurm_cluster(tmp_path_factory.mktemp("slurm_cluster")) as bed:
        yield bed
