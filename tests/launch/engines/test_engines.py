"""The table of engines, and an engine that another program adds to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.gathering import default_engine
from hccl_tools.launch import engines
from hccl_tools.launch.engines.engine import Reach
from tests.support import published

#: A program of its own: ``/bin/sh`` starts the supervisor of the one host in a session of its own.
LAUNCHER = """\
import sys
from hccl_tools.__main__ import main
from hccl_tools.launch import engines
from hccl_tools.launch.engines.engine import Engine, Located


class Shell(Engine):
    name = "shell"
    hidden_output = (b"shell: ",)
    settings = {"SHELL_ENGINE": "yes"}
    asks_hosts = True

    def locate(self, environ, wanted, hosts):
        return Located("/bin/sh")

    def command(self, plan):
        script = 'echo "shell: up ${SHELL_ENGINE:-no}"; setsid -w "$@"'
        return [plan.engine_program, "-c", script, "sh", *plan.supervisor]

    def on_host(self, host, words, reach):
        return ["/bin/sh", "-c", f'echo {host} >>asked; exec "$@"', "sh", *words]


engines.register(Shell())
main()
"""
PROGRAM = 'echo "rank $RANK_ID of $RANK_SIZE on $DEVICE_ID"; exit $((RANK_ID == FAILING ? 7 : 0))'


@pytest.fixture
def table(own_directory: Path) -> str:
    (own_directory / "launcher.py").write_text(LAUNCHER)
    devices = [
        {"device_id": str(4 + rank), "device_ip": f"192.168.0.{rank + 1}", "rank_id": str(rank)}
        for rank in range(2)
    ]
    server = {"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}
    value = {"version": "1.0", "server_count": "1", "status": "completed", "server_list": [server]}
    (own_directory / "table.json").write_text(json.dumps(value))
    return "table.json"


def run(*arguments: str, failing: int = -1) -> subprocess.CompletedProcess[str]:
    package = str(Path(engines.__file__).parents[3])
    environ = {**os.environ, "FAILING": str(failing), "PYTHONPATH": package}
    command = [sys.executable, "launcher.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environ)


def launch(*options: str, failing: int = -1) -> subprocess.CompletedProcess[str]:
    how = ("--engine", "shell", "--cpu", "--start", "table", "--no-python")
    return run("launch", *how, *options, "sh", "-c", PROGRAM, failing=failing)


def asked() -> list[str]:
    """Return the hosts on which the engine has started a program."""
    return sorted(Path("asked").read_text().split())


@pytest.mark.slow
def test_another_programs_engine_starts_a_job(table: str) -> None:
    done = launch("--rank-table", table)

    assert done.returncode == 0, done.stdout + done.stderr
    run_dir = Path("log/latest")
    assert [(run_dir / f"rank_{rank}.log").read_text() for rank in range(2)] == [
        "rank 0 of 2 on 4\n",
        "rank 1 of 2 on 5\n",
    ]
    assert "shell: up yes" in (run_dir / "engine.log").read_text()
    assert "rank 0 of 2 on 4" in done.stdout
    assert "shell: " not in done.stdout
    plan = published.read("plan", run_dir / "plan.json")
    assert (plan["engine"], plan["command"][0]) == ("shell", "/bin/sh")


@pytest.mark.slow
def test_a_rank_that_fails_under_another_programs_engine_decides_the_exit_code(table: str) -> None:
    done = launch("--rank-table", table, failing=1)

    assert done.returncode == 7, done.stdout + done.stderr


@pytest.mark.slow
def test_another_programs_engine_asks_hosts_for_a_table(table: str) -> None:
    done = run(
        "gen", "--hosts", "node[1-2]", "--engine", "shell", "--simulate", "a2", "--output", "made.json"
    )

    assert table
    assert done.returncode == 0, done.stderr
    assert "querying 2 hosts with shell (--engine)" in done.stderr
    servers = json.loads(Path("made.json").read_text())["server_list"]
    assert [server["server_id"] for server in servers] == ["192.0.2.1", "192.0.2.2"]
    assert asked() == ["node1", "node2"]


@pytest.mark.slow
def test_another_programs_engine_lets_doctor_look_at_hosts(table: str) -> None:
    done = run("doctor", "--hosts", "node[1-2]", "--engine", "shell", "--format", "json")

    assert table
    assert json.loads(done.stdout)["hosts"], done.stderr
    assert asked() == ["node1", "node2"]


@pytest.mark.slow
def test_another_programs_engine_copies_a_table(table: str) -> None:
    copy = Path("copy/table.json").absolute()
    copy.parent.mkdir()
    done = run("distribute", table, "node1", "--engine", "shell", "-o", str(copy), "--write")

    assert done.returncode == 0, done.stderr
    assert copy.read_bytes() == Path(table).read_bytes()
    assert asked() == ["node1", "node1"]


@pytest.mark.slow
def test_a_host_that_another_programs_engine_does_not_reach_is_named(table: str) -> None:
    text = Path("launcher.py").read_text().replace('exec "$@"', "echo shell: no way to it >&2; exit 1")
    Path("launcher.py").write_text(text)

    done = run("gen", "--hosts", "node1", "--engine", "shell", "--simulate", "a2", "--output", "made.json")

    assert table
    assert done.returncode == 1
    assert "node1: shell: no way to it" in done.stderr
    assert not Path("made.json").exists()


@pytest.mark.parametrize("command", ["gen", "doctor", "distribute"])
def test_the_help_of_commands_that_ask_hosts_names_a_registered_engine(table: str, command: str) -> None:
    names = "slurm|ssh|shell" if command == "distribute" else "mpirun|slurm|ssh|shell"

    assert table
    assert f"[{names}]" in run(command, "--help").stdout.replace("\n", "").replace(" ", "")


def test_an_engine_without_mpi_ranks_needs_a_table(table: str) -> None:
    done = launch("-n", "2")

    assert table
    assert done.returncode == 2
    assert "error: --engine shell needs a rank table" in done.stderr


def test_help_and_errors_name_a_registered_engine(table: str) -> None:
    help_text = subprocess.run(
        [sys.executable, "launcher.py", "launch", "--help"], capture_output=True, text=True, check=True
    ).stdout
    done = launch("--engine", "shel", "--rank-table", table)

    assert "loop|mpirun|slurm|ssh|shell" in help_text.replace("\n", "").replace(" ", "")
    assert '"shel" is not one of loop, mpirun, slurm, ssh, shell' in done.stderr


@pytest.mark.parametrize("name", engines.ENGINES)
def test_every_engine_of_the_table_is_found_under_its_name(name: str) -> None:
    engine = engines.get(name)

    assert engine.name == name
    assert engine.asks_hosts is (name in engines.asking_hosts(one_by_one=True))


def test_slurm_reaches_a_host_with_a_step_of_the_allocation(tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.touch(0o755)
    reach = Reach({"PATH": str(tmp_path), "SLURM_JOB_ID": "7"}, seconds=4)

    command = engines.get("slurm").on_host("n1", ["sh", "-c", "echo 'a  b'"], reach)

    assert command[:4] == [str(srun), "--jobid", "7", "--overlap"]
    assert command[command.index("--nodelist") + 1] == "n1"
    assert command[-4:] == ["--immediate=4", "sh", "-c", "echo 'a  b'"]
    with pytest.raises(LaunchError, match="not in a Slurm allocation"):
        engines.get("slurm").on_host("n1", ["sh"], Reach({"PATH": str(tmp_path)}))


@pytest.mark.parametrize(
    ("name", "asks"), [("ssh", "ssh"), ("slurm", "slurm"), ("loop", "ssh"), ("mpirun", "ssh")]
)
def test_the_hosts_of_a_job_are_asked_with_its_engine_or_with_ssh(
    name: str, asks: str, tmp_path: Path
) -> None:
    (tmp_path / "srun").touch(0o755)
    environ = {"PATH": str(tmp_path), "SLURM_JOB_ID": "7"}

    assert default_engine.of_job(engines.get(name), environ) == asks
    assert default_engine.default(environ) == ("slurm", "inside a Slurm allocation")


@pytest.mark.parametrize(
    ("flavour", "is_open_mpi", "patience"),
    [("openmpi-4", True, "1"), ("openmpi-5", True, "20"), ("openmpi-6", True, "1"), ("mpich-4", False, None)],
)
def test_mpirun_has_the_options_of_its_flavour(
    flavour: str, patience: str | None, *, is_open_mpi: bool
) -> None:
    from hccl_tools.launch.engines.mpirun import OpenMpi

    engine = engines.get("mpirun").of_flavour(flavour)

    assert engine.is_open_mpi is is_open_mpi
    assert (str(engine.kill_timeout) if isinstance(engine, OpenMpi) else None) == patience


CANCELLED = "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-25T15:41:02 ***"
ABORTED = "srun: Job step aborted: Waiting up to 7 seconds for job step to finish."
KILLED = "srun: error: n2: task 1: Killed"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([CANCELLED], "Slurm has ended step 7.0 by `scancel 7.0`, or by an administrator"),
        (
            [CANCELLED, KILLED, "srun: launch/slurm: _step_signal: Terminating StepId=7.0"],
            "Slurm has ended step 7.0 by `scancel 7.0`, or by an administrator",
        ),
        ([KILLED, "srun: launch/slurm: _step_signal: Terminating StepId=7.0", CANCELLED], ""),
        ([KILLED, "srun: Terminating job step 7.0", CANCELLED], ""),
        (
            [ABORTED, KILLED, "srun: launch/slurm: _step_signal: Terminating StepId=7.0", CANCELLED],
            "Slurm has ended step 7.0 by `scancel 7.0`, or by an administrator",
        ),
        (
            [KILLED, "srun: launch/slurm: _step_signal: Terminating StepId=7.0", ABORTED, CANCELLED],
            "Slurm has ended step 7.0 by `scancel 7.0`, or by an administrator",
        ),
        ([ABORTED, KILLED], ""),
        (
            [CANCELLED.replace("STEP 7.0", "JOB 7").replace(" ***", " DUE TO TIME LIMIT ***")],
            "Slurm has ended job 7 due to time limit",
        ),
        ([CANCELLED.replace(" ***", " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***")], ""),
        ([KILLED], ""),
    ],
)
def test_what_slurm_says_of_the_end_of_a_step(lines: list[str], why: str) -> None:
    assert engines.get("slurm").why_ended(lines) == why
