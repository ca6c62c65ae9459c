"""Each way in which the torch example hangs or fails, on three hosts: it leaves evidence and is explained."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.beds.daemons import program
from tests.beds.slurm_cluster import ALL_NODES
from tests.beds.three_hosts import isolate
from tests.examples.test_hang_torch import OPTIONS, SCRIPT
from tests.support import published
from tests.support.hanging import without_py_spy
from tests.support.jobs import LONG, eventually
from tests.support.three_by import IGNORED, STARTS, Job, Start, environ, host_of
from tests.support.torch_python import needs_torch

if TYPE_CHECKING:
    from tests.beds.slurm_cluster import SlurmCluster
    from tests.beds.three_hosts import ThreeHosts

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.bed]


class Kind(NamedTuple):
    """How a job ends, and what ``explain`` says of it.

    Attributes:
        codes: The exit codes that the job may have: gloo can abort a rank that ends with an exception.
        said: Parts of the first cause: its id, its ranks, words of its sentence.
        options: Options of ``launch``, in place of a short --hang-timeout.
        stacks: Ranks that leave a stack and a recorder dump, at least.
    """

    codes: tuple[int, ...]
    said: tuple[str, ...]
    options: tuple[str, ...] = ("--hang-timeout", "3")
    stacks: int = 3


#: A loaded machine needs long to load torch, in which a rank prints nothing.
STEPS = ("--progress", r"step \d+", "--hang-timeout", "25")
KINDS = {
    "missing": Kind((124,), ("HCM895 [2]", "last issued number 5 and is in load_data (")),
    "loop": Kind((124,), ("HCM895 [2]", "last issued number 5 and is in load_data ("), STEPS),
    "file": Kind((124,), ("HCM895 [2]", "last issued number 5 and is in read_batch (")),
    "operation": Kind((124,), ("HCM894 [2]", "ranks 0-1 in all_reduce, rank 2 in broadcast")),
    "order": Kind((124,), ("HCM894 [", "group tp0", "group dp0", "in another order")),
    "skipped": Kind((124,), ("HCM894 [2]", "some have left out one operation")),
    "lost": Kind((124,), ("HCM940 [", "have begun all_reduce number 6")),
    "stopped": Kind((124,), ("[2]", "stopped"), stacks=2),
    "slow": Kind((124,), ("[2]", "the others wait for it"), ("--timeout", "25")),
    "size": Kind((1, 134), ("HCM944",), stacks=0),
    "dead": Kind((137,), ("HCM820 [2]",), stacks=0),
    "fails": Kind((1, 134), ("[2]", "batch 5 is empty"), stacks=0),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def check(kind: str, answer: str, reports: list[dict[str, Any]], said: object) -> None:
    """Check what a job left, and the causes that ``explain -f json`` printed."""
    expected = KINDS[kind]
    cause = json.loads(answer)["causes"][0]
    sentence = f"{cause['message']} {cause['ranks']} {cause['sentence']} {cause['reason']}".lower()
    assert [part for part in expected.said if part.lower() not in sentence] == [], sentence
    notes = [note for report in reports for note in report["evidence"]]
    assert notes, said
    assert sum(note["stacks"] for note in notes) >= expected.stacks, said
    assert sum(note["recorders"] for note in notes) >= expected.stacks, said


@pytest.mark.mpi
@every_kind
@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.rotates("start")
def test_by_every_start(
    three_hosts: ThreeHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, start: Start
) -> None:
    without_py_spy(monkeypatch)
    monkeypatch.chdir(tmp_path)
    # Where every rank answers, the wait ends with the last answer: torch takes seconds on a loaded machine.
    patience = ("--evidence-timeout", str(LONG)) if KINDS[kind].stacks == 3 else ()
    job = Job(three_hosts, start, (*KINDS[kind].options, *patience, *OPTIONS), (str(SCRIPT), kind))
    codes, said = job.end(LONG)

    assert set(codes) <= set(KINDS[kind].codes), said
    host = three_hosts.hosts[0]
    command = [sys.executable, "-m", "hccl_tools", "explain", "-f", "json", *map(str, job.run_dirs())]
    done = host.run(command, env=environ(three_hosts))
    check(kind, done.stdout, job.reports(), said)


@pytest.mark.mpi
@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.rotates("start")
def test_a_host_that_is_cut_off(
    three_hosts: ThreeHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--host-timeout", "3", "--start", "torch", *OPTIONS[2:])
    job = Job(three_hosts, start, options, (str(SCRIPT), "missing"))
    with ExitStack() as stack:
        assert eventually(
            lambda: job.logs().get(2) is not None and "step 5" in job.logs()[2].read_text(), LONG
        )
        stack.enter_context(three_hosts.impaired(*isolate(three_hosts.hosts[host_of(2)])))
        _, said = job.end(LONG)
    command = [sys.executable, "-m", "hccl_tools", "explain", "-f", "json", *map(str, job.run_dirs())]
    answer = three_hosts.hosts[0].run(command, env=environ(three_hosts)).stdout
    lost = three_hosts.hosts[host_of(2)].address
    assert lost in json.loads(answer)["causes"][0]["sentence"], (answer, said)


def in_slurm(bed: SlurmCluster, kind: str, *options: str) -> list[str]:
    """Write the table of three nodes; return the command that starts the job on them."""
    servers = [
        {
            "server_id": node.address,
            "device": [{"device_id": "4", "device_ip": f"192.168.0.{rank}", "rank_id": str(rank)}],
            "host_nic_ip": "reserve",
        }
        for rank, node in enumerate(bed.nodes)
    ]
    table = {"version": "1.0", "server_count": "3", "server_list": servers, "status": "completed"}
    Path("table.json").write_text(json.dumps(table))
    words = [
        "--rank-table",
        "table.json",
        "--product",
        "a2",
        "--ignore",
        IGNORED,
        "--cpu",
        "--engine",
        "slurm",
    ]
    launch = [sys.executable, "-m", "hccl_tools", "launch", "--engine", "slurm", *words, *options]
    salloc = ["salloc", "-N3", f"--partition={ALL_NODES}", "--ntasks-per-node=1"]
    return [*salloc, *launch, str(SCRIPT), kind]


def explained() -> str:
    command = [sys.executable, "-m", "hccl_tools", "explain", "-f", "json"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONG).stdout


@every_kind
def test_in_slurm(
    slurm_cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    without_py_spy(monkeypatch)
    monkeypatch.chdir(tmp_path)
    done = slurm_cluster.run(in_slurm(slurm_cluster, kind, *KINDS[kind].options, *OPTIONS))

    assert done.returncode in KINDS[kind].codes, done.stdout + done.stderr
    report = published.read("report", Path("log/latest/report.json"))
    check(kind, explained(), [report], done.stdout + done.stderr)


def test_a_node_of_slurm_that_is_cut_off(
    slurm_cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lost = slurm_cluster.third
    command = in_slurm(slurm_cluster, "missing", "--host-timeout", "3", *OPTIONS)
    job = slurm_cluster.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    log = Path("log/latest/rank_2.log")
    try:
        assert eventually(lambda: log.exists() and "step 5" in log.read_text(), LONG)
        lost.cut_off()
        said = job.communicate(timeout=LONG)[0]
    finally:
        lost.reconnect()
        slurm_cluster.run([program("scancel"), "--user=root", "--signal=KILL"])
        assert eventually(lambda: slurm_cluster.is_idle)

    assert job.returncode not in {0, 124}, said
    cause = json.loads(explained())["causes"][0]
    assert lost.address in cause["sentence"], (cause, said)
