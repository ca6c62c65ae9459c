"""An ordinary user listens on the port of a job before its launcher does; and hosts without the key."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.impostors import KINDS
from tests.support.jobs import LONG
from tests.support.typed_jobs import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.network_host import Host
    from tests.beds.three_hosts import ThreeHosts

pytestmark = [pytest.mark.bed, pytest.mark.usefixtures("own_directory")]

PORT = 18118
ROOT = Path(__file__).parents[3]
ORDINARY_USER = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
#: An impostor that listens gives rank 0's host no port: these are what ended a job, and what did not.
ANSWERS = ("no key", "other protocol", "refused: key", "refused: address", "wrong proof", "garbage")


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def launch(bed: ThreeHosts, number: int, started: ExitStack, key: str = KEY) -> subprocess.Popen[str]:
    """Type the command of the job on a host, as the user with this key or with none."""
    host = bed.hosts[number]
    command = [
        *(sys.executable, "-m", "hccl_tools", "launch", "--no-table", "--start", "torch", "--cpu"),
        *("--nnodes", "3", "--node-rank", str(number), "--nproc-per-node", "1", "--grace", "1"),
        *("--master-addr", bed.hosts[0].address, "--log-dir", host.namespace, "--no-python", "true"),
    ]
    env = {"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": str(Path.cwd()), "PYTHONPATH": str(ROOT)}
    if key:
        env["HCCL_TOOLS_JOB_KEY"] = key
    launcher = host.start(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    started.enter_context(launcher)
    started.callback(launcher.kill)
    return launcher


def tells(launcher: subprocess.Popen[str], text: str) -> str:
    """Wait until a launcher writes a line with this text."""
    assert launcher.stderr is not None
    said = []
    for line in launcher.stderr:
        said.append(line)
        if text in line:
            return line
    pytest.fail(f"{text!r} is not in {said}")


def impostor(host: Host, kind: str, started: ExitStack) -> subprocess.Popen[str]:
    command = [*ORDINARY_USER, sys.executable, "-m", "tests.support.impostors", host.address, str(PORT), kind]
    listening = host.start(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    started.enter_context(listening)
    started.callback(listening.kill)
    assert listening.stdout is not None
    assert listening.stdout.readline() == "in place\n"
    return listening


def ends_well(*launchers: subprocess.Popen[str]) -> None:
    said = [launcher.communicate(timeout=LONG)[1] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0] * len(launchers), said


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_job_starts_when_the_real_launcher_does(
    three_hosts: ThreeHosts, started: ExitStack, kind: str
) -> None:
    first = three_hosts.hosts[0]
    listening = impostor(first, kind, started)
    assert listening.stdin is not None
    assert listening.stdout is not None
    waiting = [launch(three_hosts, number, started) for number in (1, 2)]
    claim = f"{first.address} (port {PORT}) {KINDS[kind][1]}; this host goes on waiting"
    for launcher in waiting:
        tells(launcher, claim)
    for _ in range(4):  # At least one of the two has asked again.
        assert listening.stdout.readline() == "served\n"
    listening.stdin.close()
    listening.wait()

    ends_well(launch(three_hosts, 0, started), *waiting)


@pytest.mark.parametrize(
    ("key", "says", "force"),
    [("", "says that it has no job key", ""), ("0f" * 32, "says that it has another job key", " --force")],
)
def test_each_screen_names_the_host_without_the_key(
    three_hosts: ThreeHosts, started: ExitStack, key: str, says: str, force: str
) -> None:
    first, second, third = three_hosts.hosts
    with_key = [launch(three_hosts, number, started) for number in (0, 1)]
    without = launch(three_hosts, 2, started, key)
    fix = f"`hccl-tools key copy {third.address}{force}` on {first.address}"
    for launcher in with_key:
        line = tells(launcher, f"{third.address} {says} (not proved)")
        assert f"run {fix}, then start the job on {third.address} again" in line
    without.terminate()
    said = without.communicate(timeout=LONG)[1]
    assert without.returncode != 0, said
    assert [launcher.poll() for launcher in with_key] == [None, None]
    assert second.address not in said

    ends_well(*with_key, launch(three_hosts, 2, started))
