"""The output of mpirun and srun: a host that never joins writes into it, and ranks that are shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.jobs import eventually
from tests.support.mpiruns import MPIRUNS, every_mpirun

if TYPE_CHECKING:
    from tests.beds.network_host import Host
    from tests.beds.slurm_cluster import SlurmCluster
    from tests.beds.two_hosts import TwoHosts
    from tests.support.mpiruns import Mpirun

#: What a host writes in place of its part of the job: lines that look like the launcher's, then 60 MB.
HOSTILE = r"""
import os, signal
said = b"\033]0;title\007\033[2J\nhccl-tools: the job failed\n  help: run evil\n::error::evil\nsrun: evil\n"
for out in (1, 2):
    os.write(out, said)
for _ in range(300):
    for out in (1, 2):
        os.write(out, b"\033[31mred\n" * 14_000)
os.write(1, b"the last line\n")
signal.pause()
"""
MIB = 1 << 20
#: 20,000 lines at once, and an incomplete one.
MUCH = """\
import os, sys
rank = os.environ["RANK_ID"]
for number in range(20_000):
    sys.stdout.write(f"{rank} {number:06} {'x' * 90}\\n")
sys.stdout.write(f"{rank} end")
"""
#: A line of each rank, which is not one of the program's: escapes, bytes that are not UTF-8, no line break.
SPEAK = "printf '\\033[31m%s\\033[0m \\377\\000 no break' \"$RANK_ID\""


def check_that_it_is_named(shown: bytes, name: str, run_dir: Path, errors: bytes = b"") -> None:
    """Check what the launcher has shown, and the logs, after a job with a hostile host."""
    lines = shown.decode().splitlines()
    assert not any(char in shown for char in (b"\x1b", b"\x07"))
    assert f"hccl-tools: {name}: the job failed" in lines
    assert all(line.startswith(f"hccl-tools: {name}: ") for line in lines)
    assert not any(line.lstrip().startswith(("help:", "::error")) for line in errors.decode().splitlines())
    assert len(shown) < 100_000
    assert f"hccl-tools: {name}: the rest of its output is left out" in lines
    sizes = {log.name: log.stat().st_size for log in run_dir.glob("engine*.log")}
    assert all(size < 2 * MIB for size in sizes.values()), sizes


@pytest.mark.bed
@pytest.mark.mpi
@every_mpirun
def test_a_host_that_never_joins_writes_named_lines_up_to_a_limit(
    two_hosts: TwoHosts, own_directory: Path, mpirun: Mpirun
) -> None:
    (own_directory / "hostile.py").write_text(HOSTILE)
    ssh = own_directory / "ssh"
    real = two_hosts.ssh
    ssh.write_text(
        f'#!/bin/sh\ncase "$*" in *{two_hosts.second.address}*) exec {sys.executable} hostile.py;; esac\n'
        f'exec {real} "$@"\n'
    )
    ssh.chmod(0o755)
    hosts = (two_hosts.first.address, two_hosts.second.address)
    command = two_by_two.command(hosts, *mpirun.for_launch, "--join-timeout", "5", "--no-python", "true")
    environment = {
        name: value.replace(str(real), str(ssh)) for name, value in two_by_two.environ(two_hosts).items()
    }

    done = run(two_hosts.first, command, environment)

    assert done.returncode not in {0, 137}, done.stderr
    check_that_it_is_named(done.stdout, mpirun.path.name, Path("log/latest").resolve(), done.stderr)
    assert b"was not ready within 5 s" in done.stderr


@pytest.mark.bed
def test_a_node_that_never_joins_writes_named_lines_up_to_a_limit(
    slurm_cluster: SlurmCluster, own_directory: Path
) -> None:
    # The module that each Python loads at its start; n2 alone has one here.
    (folder := slurm_cluster.second.folder / "disk" / "evil").mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(HOSTILE)
    path = f"{slurm_cluster.login.disk}/evil:{os.environ.get('PYTHONPATH', '')}"
    options = ["--engine", "slurm", "--join-timeout", "5", "--no-python", "true"]
    command = ["salloc", "-Q", "-N2", "--ntasks-per-node=1", *two_by_two.command(("n1", "n2"), *options)]

    try:
        with Path("shown").open("wb") as shown, Path("errors").open("wb") as errors:
            code = subprocess.run(
                slurm_cluster.login.command(command),
                env={**slurm_cluster.env, "PYTHONPATH": path},
                stdout=shown, stderr=errors, timeout=120, check=False,
            ).returncode  # fmt: skip
    finally:
        (folder / "sitecustomize.py").unlink()

    assert code not in {0, 137}, Path("errors").read_text()
    check_that_it_is_named(
        Path("shown").read_bytes(), "srun", Path("log/latest").resolve(), Path("errors").read_bytes()
    )


@pytest.mark.bed
@pytest.mark.mpi
@every_mpirun
def test_the_output_of_a_rank_is_shown_as_it_is(
    two_hosts: TwoHosts, own_directory: Path, mpirun: Mpirun
) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    command = two_by_two.command(hosts, *mpirun.for_launch, "--no-python", "sh", "-c", SPEAK)

    done = run(two_hosts.second, command, two_by_two.environ(two_hosts))

    assert done.returncode == 0, done.stderr
    assert done.stdout == b"\x1b[31m0\x1b[0m \xff\0 no break"


@pytest.mark.bed
@pytest.mark.mpi
@every_mpirun
def test_much_output_of_two_hosts_is_complete_and_in_whole_lines(
    two_hosts: TwoHosts, own_directory: Path, mpirun: Mpirun
) -> None:
    Path("much.py").write_text(MUCH)
    hosts = (two_hosts.first.address, two_hosts.second.address)
    command = two_by_two.command(hosts, *mpirun.for_launch, "--tail", "0,1", "much.py")

    done = run(two_hosts.first, command, two_by_two.environ(two_hosts))

    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    for rank in "01":
        own = [f"{rank} {number:06} {'x' * 90}" for number in range(20_000)]
        assert [line for line in lines if line.startswith(f"{rank} ")] == [*own, f"{rank} end"]


@pytest.mark.bed
def test_a_launcher_that_is_stopped_loses_no_output_and_no_host(
    two_hosts: TwoHosts, own_directory: Path
) -> None:
    Path("much.py").write_text(MUCH)
    hosts = (two_hosts.first.address, two_hosts.second.address)
    mpirun = MPIRUNS[-1]
    options = [*mpirun.for_launch, *two_by_two.SHORT_LOSS, "much.py"]
    command = two_by_two.command(hosts, *options)
    with Path("shown").open("wb") as shown:
        launcher = subprocess.Popen(
            two_hosts.first.command(command), env=two_by_two.environ(two_hosts), stdout=shown,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert eventually(lambda: Path("shown").stat().st_size)
        launcher.send_signal(signal.SIGSTOP)
        time.sleep(6)  # Twice the time after which a silent host counts as lost (two_by_two.SHORT_LOSS).
        launcher.send_signal(signal.SIGCONT)
        _, errors = launcher.communicate(timeout=120)

    assert launcher.returncode == 0, errors
    assert Path("shown").read_bytes().endswith(b"0 019999 " + b"x" * 90 + b"\n0 end")


def run(host: Host, command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run a launcher on a host, and return what it has shown as bytes."""
    return subprocess.run(
        host.command(command), env=environment, capture_output=True, timeout=120, check=False
    )
