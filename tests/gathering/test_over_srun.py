"""Hosts that srun asks: each answers for itself, whatever it writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.host.survey import SurveyRequest, survey
from tests.beds.slurm_cluster import ALL_NODES

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.beds.slurm_cluster import SlurmCluster

pytestmark = pytest.mark.bed

GEN = [
    sys.executable,
    "-m",
    "hccl_tools",
    "gen",
    "--engine",
    "slurm",
    "--simulate",
    "a2",
    "--output",
    "t.json",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def hostile_node(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[SlurmCluster]:
    """A node whose Python runs another program, which answers in the name of n2, and says so twice."""
    facts = survey(SurveyRequest(simulate="a3"))
    text = SurveyAnswer("n2", facts._replace(server_id="10.6.6.6")).to_json()
    package = tmp_path / "hostile" / "hccl_tools" / "gathering"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    lines = ["hccl-tools-gather n2 began", f"hccl-tools-gather n2 1/1 {text}"]
    (package / "worker.py").write_text(f"def main(host, text):\n    print(*{lines * 2!r}, sep=chr(10))\n")
    variables = slurm_cluster.config.parent / "n1.env"
    variables.write_text(f"export PYTHONPATH={package.parents[1]}\n")
    yield slurm_cluster
    variables.unlink()


def gen(bed: SlurmCluster, hosts: str, *options: str) -> subprocess.CompletedProcess[str]:
    nodes = len(hosts.split(","))
    allocate = ["salloc", f"-N{nodes}", f"--partition={ALL_NODES}", f"--nodelist={hosts}"]
    return bed.run([*allocate, *GEN, "--hosts", hosts, *options])


def server_ids() -> list[str]:
    return [server["server_id"] for server in json.loads(Path("t.json").read_text())["server_list"]]


def test_hosts_in_another_order_than_slurms_answer_for_themselves(slurm_cluster: SlurmCluster) -> None:
    done = gen(slurm_cluster, "n3,n1,n2")

    assert done.returncode == 0, done.stderr
    # A simulated machine has the number of its node in Slurm's order.
    assert server_ids() == ["192.0.2.3", "192.0.2.1", "192.0.2.2"]
    assert "server 192.0.2.3  ranks 0-7  from n3" in done.stderr


def test_a_node_that_answers_for_another_is_named(hostile_node: SlurmCluster) -> None:
    done = gen(hostile_node, "n1,n2", "--allow-missing")

    assert done.returncode == 0, done.stderr
    assert 'n1: it answered in the name of "n2"' in done.stderr
    assert server_ids() != ["10.6.6.6"]
    assert len(server_ids()) == 1
