"""A host with another version of hccl-tools does not take part in a job that an engine starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hccl_tools.version import __version__
from tests.support import two_by_two
from tests.support.mpiruns import every_remote_engine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.beds.two_hosts import TwoHosts
    from tests.support.mpiruns import Mpirun, Ssh

pytestmark = [pytest.mark.bed, pytest.mark.mpi]

#: Imported at the start of every Python on the second host.
OTHER_VERSION = "import hccl_tools.version\nhccl_tools.version.__version__ = '0.0.9'\n"


@pytest.fixture
def older(two_hosts: TwoHosts) -> TwoHosts:
    """The bed with an older hccl-tools on its second host."""
    changed = two_hosts.second.folder / "python" / "sitecustomize.py"
    changed.parent.mkdir()
    changed.write_text(OTHER_VERSION)
    return two_hosts


@every_remote_engine
@pytest.mark.rotates("engine")
def test_the_host_and_both_versions_are_named(
    older: TwoHosts, own_directory: Path, engine: Mpirun | Ssh
) -> None:
    hosts = (older.first.address, older.second.address)
    command = two_by_two.command(hosts, *engine.for_launch, "--start", "torch", "--grace", "2")

    done = older.first.run([*command, "--no-python", "sleep", "6363"], env=two_by_two.environ(older))

    here, there = older.first.name, older.second.address
    said = f"version of hccl-tools: {here} has {__version__}, {there} has 0.0.9"
    assert done.returncode == 125, done.stderr
    assert f"{there} does not start its part: {said}" in done.stderr
    (report,) = own_directory.glob("*/latest/report.json")
    assert said in json.loads(report.read_text())["detail"]
