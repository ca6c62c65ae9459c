"""The command lines that start one process per host."""

from __future__ import annotations

import pytest

from hccl_tools.gathering import engine_run
from hccl_tools.gathering.commands import SshStart, mpirun, srun
from hccl_tools.programs.mpirun import Mpirun

MEMBERS = [("localhost", ["python", "-c", "x"]), ("10.0.0.2", ["python", "-c", "y"])]


@pytest.mark.parametrize(
    ("start", "first"),
    [
        (
            SshStart(Mpirun("/usr/bin/mpirun", "openmpi-4"), ["ssh", "-p", "2222"]),
            ["/usr/bin/mpirun", "--mca", "plm_rsh_agent", "ssh -p 2222"],
        ),
        (
            SshStart(Mpirun("/venv/bin/mpirun", "openmpi-5"), ["ssh"], as_root=True),
            *[
                [
                    "/venv/bin/mpirun",
                    "--allow-run-as-root",
                    "--prefix",
                    "/venv",
                    "--mca",
                    "plm_ssh_agent",
                    "ssh",
                ],
            ],
        ),
    ],
    ids=["Open MPI 4 of the system", "Open MPI 5 from a wheel"],
)
def test_mpirun_starts_one_application_per_host(start: SshStart, first: list[str]) -> None:
    each = ["--wdir", "/", "python", "-c"]

    assert mpirun(start, MEMBERS) == [
        *first,
        *["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"],
        *["-n", "1", "--host", "localhost", *each, "x"],
        *[":", "-n", "1", "--host", "10.0.0.2", *each, "y"],
    ]


def test_mpirun_labels_lines_if_it_is_asked_to() -> None:
    start = SshStart(Mpirun("/usr/bin/mpirun", "openmpi-4"), ["ssh"])

    assert "--tag-output" in mpirun(start, MEMBERS, labelled=True)
    assert "--tag-output" not in mpirun(start, MEMBERS)


def test_srun_starts_one_task_on_each_node_and_lets_no_failure_end_the_others() -> None:
    command = srun("/usr/bin/srun", ["n1", "n2"], ["python", "-c", "x"])

    assert command[:7] == [
        "/usr/bin/srun",
        "--nodes",
        "2",
        "--ntasks",
        "2",
        "--ntasks-per-node=1",
        "--nodelist",
    ]
    assert command[7] == "n1,n2"
    assert "--kill-on-bad-exit=0" in command
    assert command[-3:] == ["python", "-c", "x"]


def test_an_engine_under_us_does_not_see_our_own_place_but_its_settings() -> None:
    environ = {
        "PATH": "/bin",
        "OMPI_COMM_WORLD_RANK": "3",
        "PMIX_RANK": "3",
        "PMIX_MCA_psec": "native",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "SLURM_STEP_ID": "1",
        "SLURM_JOB_ID": "7",
    }

    assert engine_run.environment(environ) == {
        "PATH": "/bin",
        "PMIX_MCA_psec": "native",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "SLURM_JOB_ID": "7",
        "SLURM_OVERLAP": "1",
        "LC_ALL": "C.UTF-8",
    }
