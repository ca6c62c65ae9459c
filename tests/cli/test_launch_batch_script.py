"""``launch --emit slurm --spares N``: a batch script with nodes for the spares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.spares import write_table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

EMIT = ["launch", "--emit", "slurm", "--max-restarts", "3"]
TABLE = ["--product", "a2", "--ignore", "HCC2,HCC4,HCC5"]
LAUNCH = "exec hccl-tools launch --engine slurm --max-restarts 3 "


@pytest.fixture(autouse=True)
def _table(command_line: CommandLine) -> None:
    write_table("10.0.0.1", "10.0.0.2")


def test_the_allocation_has_nodes_for_the_spares(command_line: CommandLine) -> None:
    options = ["--rank-table", "table.json", *TABLE, "--spares", "2", "--log_dir", "my logs"]

    done = command_line(*EMIT, *options, "train.py", "--name", "a b")

    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert {"#SBATCH --nodes=4", "#SBATCH --no-kill", "#SBATCH --ntasks-per-node=1"} <= set(lines)
    assert "# 2 nodes for the job, and 2 spares: sbatch THIS_FILE" in lines
    assert "--nodelist" in done.out
    assert lines[-1] == (
        f"{LAUNCH}--rank-table table.json {' '.join(TABLE)} --spares 2 --log_dir 'my logs' "
        "train.py --name 'a b'"
    )


def test_without_a_table_the_job_takes_the_nodes_that_slurm_chooses(command_line: CommandLine) -> None:
    done = command_line(*EMIT, "--nnodes=4", "--engine=slurm", "--spares", "1", "--", "train.py")

    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert "#SBATCH --nodes=5" in lines
    assert "--nodelist" not in done.out
    assert lines[-1] == f"{LAUNCH}--spares 1 -- train.py"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--spares", "1"], "--emit slurm --spares needs the number of nodes of the job"),
        (["--spares", "1", "--nnodes", "2", "--max-restarts", "0"], "spares need --max-restarts: "),
        (["--spare-hosts", "n3", "--nnodes", "2"], "--emit slurm does not support --spare-hosts: "),
        (["--spares", "1", "--nnodes", "2", "--restart-on", "hang"], "spares need --restart-on host-lost"),
    ],
)
def test_wrong_options_are_refused(command_line: CommandLine, options: list[str], sentence: str) -> None:
    done = command_line(*EMIT, *options, "train.py")

    assert (done.code, done.out) == (2, "")
    assert done.sentence.startswith(sentence)


def test_a_table_that_cannot_be_read_is_named(command_line: CommandLine) -> None:
    done = command_line(*EMIT, "--spares", "1", "--rank-table", "no.json", "train.py")

    assert (done.code, done.out, done.sentence) == (125, "", "no such file: no.json")


@pytest.mark.parametrize("node_rank", [[], ["--node-rank", "0"]])
@pytest.mark.parametrize(
    ("target", "way"),
    [
        ("slurm", "run `hccl-tools launch` without --emit in the batch job"),
        ("mpirun", "--ips A,B with their addresses"),
        ("xllm", "add --rank-table FILE"),
    ],
)
def test_a_script_for_machines_without_names_is_refused(
    command_line: CommandLine, target: str, way: str, node_rank: list[str]
) -> None:
    """A script is for all machines: it does not need the --node-rank of one of them."""
    done = command_line("launch", "--nnodes", "2", "-n", "16", *node_rank, "--emit", target, "train.py")

    assert done.code == 2
    assert done.sentence == f"--emit {target}: nothing names the 2 machines of the job"
    assert way in " ".join(done.err.split())


@pytest.mark.parametrize("tool", ["torchrun", "msrun"])
def test_a_command_of_one_machine_needs_no_names(command_line: CommandLine, tool: str) -> None:
    job = ["launch", "--cpu", "--nnodes", "2", "-n", "16", "--emit", tool]

    refused = command_line(*job, "train.py")
    done = command_line(*job, "--node-rank", "1", "--master-addr", "10.0.0.1", "train.py")

    assert "--node-rank I and --master-addr ADDRESS" in " ".join(refused.err.split())
    assert done.code == 0, done.err
    assert "10.0.0.1" in done.out
