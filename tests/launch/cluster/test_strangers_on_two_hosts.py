"""Strangers at the port of a job without a key, and what a user of the job's own hosts could do."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

from tests.beds.network_host import configure
from tests.support import two_by_two
from tests.support.attackers import Attackers
from tests.support.attacks import LIKE_A_HOST
from tests.support.jobs import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.network_host import Host
    from tests.beds.two_hosts import TwoHosts

pytestmark = pytest.mark.bed

PORT = 18118
#: An address of the first host that the table does not have.
OTHER = "10.77.0.77"


@pytest.fixture
def started(two_hosts: TwoHosts) -> Iterator[ExitStack]:
    configure("-n", two_hosts.first.namespace, "addr", "add", f"{OTHER}/24", "dev", two_hosts.first.cable)
    with ExitStack() as stack:
        yield stack
    configure("-n", two_hosts.first.namespace, "addr", "del", f"{OTHER}/24", "dev", two_hosts.first.cable)


def launch(bed: TwoHosts, host: Host, started: ExitStack) -> subprocess.Popen[str]:
    command = two_by_two.command((bed.first.address, bed.second.address), "--start", "torch", "--grace", "1")
    launcher = host.start(
        [*command, "--log-dir", host.namespace, "--no-python", "true"],
        env=two_by_two.environ(bed), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    started.callback(launcher.wait)
    started.callback(launcher.kill)
    return launcher


def attack(bed: TwoHosts, source: str, *kinds: str, started: ExitStack) -> None:
    """Attack rank 0's host, the second, from an address of the first."""
    attackers = started.enter_context(closing(Attackers(*kinds, within=bed.first.command)))
    attackers.attack((bed.second.address, PORT), source)
    attackers.are_in_place()


def waits(launcher: subprocess.Popen[str]) -> None:
    assert launcher.stderr is not None
    assert any("waiting for" in line for line in launcher.stderr)


@pytest.mark.usefixtures("own_directory")
def test_other_addresses_are_refused(two_hosts: TwoHosts, started: ExitStack) -> None:
    waiting = launch(two_hosts, two_hosts.second, started)
    waits(waiting)
    attack(two_hosts, OTHER, *LIKE_A_HOST, started=started)
    joining = launch(two_hosts, two_hosts.first, started)

    said = waiting.communicate(timeout=LONG)[1]
    joining.communicate(timeout=LONG)

    assert (waiting.returncode, joining.returncode) == (0, 0), said
    (line,) = [line for line in said.splitlines() if "refused" in line]
    assert line == f"hccl-tools: refused 4 connections from {OTHER}: not an address of the job's hosts"


@pytest.mark.usefixtures("own_directory")
def test_a_user_of_the_jobs_own_hosts_could_end_the_job(two_hosts: TwoHosts, started: ExitStack) -> None:
    """Without a key nothing tells the processes of one host apart: this is what a key prevents."""
    waiting = launch(two_hosts, two_hosts.second, started)
    waits(waiting)
    attack(two_hosts, two_hosts.first.address, "no key", started=started)

    said = waiting.communicate(timeout=LONG)[1]

    assert waiting.returncode == 125, said
    assert f"the hosts start different programs: program true on {two_hosts.second.address}" in said
