"""The shim under every mpirun there is: by hand, and started by ``launch --engine mpirun``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.mpi import (
    options as rank_options,
)
from hccl_tools.launch.mpi import (
    scheduler_end,
    shared_preparation,
    standalone,
)
from hccl_tools.launch.mpi import (
    world as mpi_world,
)
from tests.support.jobs import eventually
from tests.support.mpiruns import MPIRUNS, every_mpirun
from tests.support.processes import has_ended

if TYPE_CHECKING:
    from tests.support.mpiruns import Mpirun

SHIM = (sys.executable, "-m", "hccl_tools.launch.rank")
SHOW = """\
import json, os, sys
names = ("RANK_ID", "DEVICE_ID", "RANK_SIZE", "DEVICE_NUM", "RANK_TABLE_FILE", "OMPI_COMM_WORLD_RANK",
         "PMI_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK",
         "ASCEND_RT_VISIBLE_DEVICES", "MS_ROLE")
print(json.dumps({"argv": sys.argv[1:], "cores": len(os.sched_getaffinity(0)),
                  **{name: os.environ.get(name) for name in names}}))
"""


pytestmark = pytest.mark.mpi


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False, env={**os.environ, **variables}
    )


def by_hand(mpirun: Mpirun, *args: str, count: int = 2) -> subprocess.CompletedProcess[str]:
    return run(mpirun.ranks(count, *SHIM, *args))


def launch(mpirun: Mpirun, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "hccl_tools.launch", *mpirun.for_launch, *args], **variables)


def write_table(order: tuple[int, ...], name: str = "table.json") -> str:
    devices = [
        {"device_id": str(device), "device_ip": f"192.168.0.{device + 1}", "rank_id": str(rank)}
        for rank, device in enumerate(order)
    ]
    value = {
        "version": "1.0", "server_count": "1", "status": "completed",
        "server_list": [{"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}],
    }  # fmt: skip
    Path(name).write_text(json.dumps(value))
    return name


def said(rank: int) -> dict[str, Any]:
    # What the shim says about a binding stands before the program's own line.
    value: dict[str, Any] = json.loads(Path("log/latest", f"rank_{rank}.log").read_text().splitlines()[-1])
    return value


@pytest.fixture(autouse=True)
def scripts(own_directory: Path) -> None:
    (own_directory / "show.py").write_text(SHOW)
    (own_directory / "exit7.py").write_text(
        "import os, sys, time\nprint('up', flush=True)\n"
        "os.environ['RANK_ID'] == '1' and sys.exit(7)\ntime.sleep(60)\n"
    )


@every_mpirun
def test_ranks_by_hand_take_devices_in_order(mpirun: Mpirun) -> None:
    done = by_hand(mpirun, "show.py", "-c", "conf.yml", "--rank-table")

    assert done.returncode == 0, done.stderr
    for rank in range(2):
        found = said(rank)
        assert found["argv"] == ["-c", "conf.yml", "--rank-table"]
        assert (found["RANK_ID"], found["DEVICE_ID"], found["RANK_SIZE"]) == (str(rank), str(rank), "2")
        own = found["PMI_RANK" if mpirun.is_mpich else "OMPI_COMM_WORLD_RANK"]
        assert own == str(rank)
        assert (found["OMPI_COMM_WORLD_LOCAL_RANK"] is None) == mpirun.is_mpich
    assert '"RANK_ID": "0"' in done.stdout
    assert '"RANK_ID": "1"' not in done.stdout


@every_mpirun
def test_ranks_by_hand_take_the_tables_devices(mpirun: Mpirun) -> None:
    done = by_hand(
        mpirun, "--rank-table", write_table((5, 4)), "--start", "table", "--tail", "all", "show.py"
    )

    assert done.returncode == 0, done.stderr
    for rank, device in enumerate((5, 4)):
        found = said(rank)
        assert (found["RANK_ID"], found["DEVICE_ID"]) == (str(rank), str(device))
        assert {found[name] for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MPI_LOCALRANKID")} == {None}
        assert Path(found["RANK_TABLE_FILE"]).read_text() == Path("table.json").read_text()
    assert '"RANK_ID": "1"' in done.stdout


def test_the_first_rank_of_a_host_judges_the_table_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    table = write_table((5, 4, 7, 6))
    typed = ["--rank-table", table, "--start", "table", "--no-python", "true"]
    options = rank_options.parse(["--env", "A=1", *typed])
    worlds = [mpi_world.MpiWorld(rank, 4, rank, 4, "job", "Open MPI") for rank in range(4)]
    environ = {"PATH": os.environ["PATH"], "OMPI_X": "1", "RANK_ID": "9", "KEPT": "yes"}
    monkeypatch.setattr(shared_preparation, "_PATIENCE", 0.0)
    assert shared_preparation.read(options, worlds[2], environ) is None

    first = standalone.prepare(options, worlds[0], environ)
    monkeypatch.setattr(shared_preparation, "_PATIENCE", 10.0)

    assert shared_preparation.read(options, worlds[0], environ) is None
    for world in worlds[1:]:
        told = shared_preparation.read(options, world, environ)
        assert told == standalone.prepare(options, world, environ)
        assert told is not None
        assert told.run_dir == first.run_dir
    assert shared_preparation.read(rank_options.parse(typed), worlds[1], environ) is None
    write_table((4, 5, 6, 7))
    assert shared_preparation.read(options, worlds[1], environ) is None


@every_mpirun
def test_world_size_unlike_the_tables_is_refused_once(mpirun: Mpirun) -> None:
    done = by_hand(mpirun, "--rank-table", write_table((0, 1, 2, 3)), "--start", "table", "show.py")

    assert done.returncode == 125
    assert done.stderr.count("mpirun started 2 ranks, but the table has 4") == 1


@every_mpirun
def test_rank_bound_to_one_core_is_unbound(mpirun: Mpirun) -> None:
    available = len(os.sched_getaffinity(0))
    assert by_hand(mpirun, "show.py").returncode == 0

    assert said(0)["cores"] == available


@every_mpirun
def test_failed_rank_by_hand(mpirun: Mpirun) -> None:
    done = by_hand(mpirun, "--start", "table", "exit7.py")

    assert done.returncode == 7
    log = Path("log/latest").resolve() / "rank_1.log"
    # Open MPI's own lines stand around it, and the log may begin with what was said about a binding.
    assert re.search(
        r"^hccl-tools: rank 1 failed first: exit code 7 after .* s \(device 1, host .*, pid \d+\)\n"
        rf"  its last lines, from {log.name}:\n(    \| hccl-tools: mpirun bound .*\n)?    \| up\n"
        rf"  logs: log/{log.parent.name}\n",
        done.stderr,
        re.MULTILINE,
    )
    assert "{" not in done.stdout
    assert done.stderr.count("hccl-tools: rank ") == 1


@every_mpirun
def test_rank_ended_by_a_signal_without_a_name(mpirun: Mpirun) -> None:
    Path("signal35.py").write_text("import os\nos.kill(os.getpid(), 35)\n")

    started = launch(mpirun, "-n", "1", "signal35.py")

    assert started.returncode == 128 + 35
    assert "rank 0 failed first: killed by signal 35" in started.stderr
    assert by_hand(mpirun, "signal35.py", count=1).returncode == 128 + 35


@every_mpirun
def test_exec_becomes_the_program(mpirun: Mpirun) -> None:
    done = by_hand(mpirun, "--exec", "show.py")

    assert done.returncode == 0
    # Nothing of ours is between the ranks and mpirun, which may put both lines into one.
    assert sorted(re.findall(r'"RANK_ID": "(\d)"', done.stdout)) == ["0", "1"]


@every_mpirun
def test_launch_runs_mpirun(mpirun: Mpirun) -> None:
    done = launch(mpirun, "-n", "2", "show.py", "--epochs", "3")

    assert done.returncode == 0, done.stderr
    assert [said(rank)["RANK_ID"] for rank in range(2)] == ["0", "1"]
    assert said(1)["argv"] == ["--epochs", "3"]
    assert '"RANK_ID": "0"' in done.stdout
    report = json.loads(Path("log/latest/report.json").read_text())
    assert [(rank["rank"], rank["exit_code"]) for rank in report["ranks"]] == [(0, 0), (1, 0)]


@every_mpirun
def test_launch_names_the_rank_that_failed(mpirun: Mpirun) -> None:
    done = launch(mpirun, "-n", "2", "exit7.py")

    assert done.returncode == 7
    assert "rank 1 failed first: exit code 7" in done.stderr
    assert "mpirun failed" not in done.stderr
    assert set(done.stdout.splitlines()) <= {"up"}  # Nothing of what mpirun says of it.


def test_what_mpirun_says_when_it_cannot_start_is_told(own_directory: Path) -> None:
    """An mpirun that ends by itself, with an option of the user's environment that it does not know."""
    refused = own_directory / "mpirun"
    refused.write_text(
        f'#!/bin/sh\ntest "$1" = --version || set -- --no-such-option\nexec {MPIRUNS[0].path} "$@"\n'
    )
    refused.chmod(0o755)

    done = run([sys.executable, "-m", "hccl_tools.launch", "-n", "2", "--mpirun", str(refused), "show.py"])

    assert done.returncode not in {0, 125}
    assert "mpirun failed first: exit code" in done.stderr
    assert "no-such-option" in done.stderr


@every_mpirun
def test_several_ranks_are_shown_with_their_names(mpirun: Mpirun) -> None:
    done = launch(mpirun, "-n", "2", "--tail", "all", "--no-python", "sh", "-c", "echo I am $RANK_ID")

    assert sorted(done.stdout.splitlines()) == ["[rank 0] I am 0", "[rank 1] I am 1"], done.stderr


@every_mpirun
def test_children_of_a_rank_do_not_outlive_it(mpirun: Mpirun) -> None:
    child = "setsid sh -c 'echo $$ > child.pid; exec sleep 60'"
    program = f"{child} & until test -s child.pid; do sleep 0.02; done; exit 3"

    assert by_hand(mpirun, "--no-python", "sh", "-c", program, count=1).returncode == 3
    pid = int(Path("child.pid").read_text())
    assert eventually(lambda: has_ended(pid))


@every_mpirun
def test_children_of_ranks_that_mpirun_kills_do_not_outlive_them(mpirun: Mpirun) -> None:
    stubborn = "trap '' TERM; echo $$ > child.pid; sleep 60; sleep 60"
    Path("ranks.sh").write_text(
        "test $RANK_ID = 1 && { until test -s child.pid; do sleep 0.1; done; exit 7; }\n"
        f'trap "" TERM\nsetsid sh -c "{stubborn.replace("$", chr(92) + "$")}" &\nsleep 60\n'
    )

    done = by_hand(mpirun, "--no-python", "sh", "ranks.sh")

    assert done.returncode == 7, done.stdout + done.stderr
    pid = int(Path("child.pid").read_text())
    assert eventually(lambda: has_ended(pid))


@every_mpirun
def test_a_failed_rank_by_hand_ends_the_others_at_once(mpirun: Mpirun) -> None:
    program = "test $RANK_ID = 1 && exit 3; exec sleep 600"

    assert by_hand(mpirun, "--no-python", "sh", "-c", program).returncode == 3


def test_mpich_gives_the_other_ranks_the_grace_time() -> None:
    mpich = next((mpirun for mpirun in MPIRUNS if mpirun.is_mpich), None)
    if mpich is None:
        pytest.skip("no MPICH (Debian's mpich)")
    Path("ranks.sh").write_text(
        "if test $RANK_ID = 1; then until test -e ready; do sleep 0.1; done; exit 7; fi\n"
        "trap 'sleep 0.2; echo saved; exit 0' TERM\n"
        "touch ready\nwhile :; do sleep 0.1; done\n"
    )

    done = launch(mpich, "-n", "2", "--no-python", "sh", "ranks.sh")

    assert done.returncode == 7, done.stderr
    assert "rank 1 failed first: exit code 7" in done.stderr
    assert "saved" in Path("log/latest/rank_0.log").read_text().splitlines()


@every_mpirun
def test_signal_to_the_launcher_ends_mpi_ranks(mpirun: Mpirun) -> None:
    command = [sys.executable, "-m", "hccl_tools.launch", *mpirun.for_launch, "-n", "2", "--no-python"]
    program = ["sh", "-c", "echo $$ > rank_$RANK_ID.pid; echo up; exec sleep 60"]
    with subprocess.Popen([*command, *program], stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "up\n"
        job.send_signal(signal.SIGTERM)
        job.stdout.read()
    assert job.returncode == 143
    assert not [
        pid
        for file in Path.cwd().glob("*.pid")
        if Path(f"/proc/{pid}" if (pid := file.read_text().strip()) else "").exists()
    ]


@every_mpirun
def test_program_that_uses_mpi4py(mpirun: Mpirun) -> None:
    pytest.importorskip("mpi4py")
    Path("mpi.py").write_text(
        "import os\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\n"
        "total = world.allreduce(int(os.environ['RANK_ID']) + 1)\n"
        "print(world.rank, world.size, total, os.environ['RANK_ID'])\n"
    )
    variables = mpirun.for_mpi4py(Path.cwd())
    done = launch(mpirun, "-n", "2", "--tail", "all", "mpi.py", **variables)
    if "cannot load MPI library" in done.stderr + done.stdout:
        pytest.skip("mpi4py finds no library for this mpirun")

    lines = [Path(f"log/latest/rank_{rank}.log").read_text().splitlines()[-1] for rank in range(2)]
    assert lines == ["0 2 3 0", "1 2 3 1"], done.stderr


def test_mpirun_command_line_is_a_function_of_the_plan() -> None:
    done = launch(MPIRUNS[0], "-n", "2", "--devices", "4,5", "--dry-run=json", "show.py")

    command = json.loads(done.stdout)["command"]
    assert command[0] == str(MPIRUNS[0].path)
    assert command[1:3] == ["-n", "2"]
    assert ("--allow-run-as-root" in command) == (os.geteuid() == 0)
    assert "none" in command[command.index("--bind-to") :]
    assert command[command.index("--devices") + 1] == "4,5"
    assert command[-2:][1] == "show.py"


def test_the_first_mpi_on_path_is_taken(own_directory: Path) -> None:
    mpich = next((mpirun for mpirun in MPIRUNS if mpirun.is_mpich), None)
    if mpich is None:
        pytest.skip("no MPICH (Debian's mpich)")
    (own_directory / "mpich").mkdir()
    for name, program in (("mpiexec", mpich.path.name), ("hydra_pmi_proxy", "hydra_pmi_proxy")):
        (own_directory / "mpich" / name).symlink_to(mpich.path.with_name(program))
    command = [sys.executable, "-m", "hccl_tools.launch", "-n", "2", "--engine", "mpirun", "--tail", "all"]

    done = run([*command, "show.py"], PATH=f"{own_directory}/mpich:{os.environ['PATH']}")

    assert done.returncode == 0, done.stderr
    assert [said(rank)["PMI_RANK"] for rank in range(2)] == ["0", "1"]
    plan = json.loads(Path("log/latest/plan.json").read_text())
    assert plan["command"][0] == f"{own_directory}/mpich/mpiexec"


@every_mpirun
def test_launch_gives_mpi_ranks_the_places_of_a_table(mpirun: Mpirun) -> None:
    table = write_table((5, 4))
    done = launch(
        mpirun, "--rank-table", table, "--start", "mpi", "--cpu", "--env", "GREETING=hi",
        "--no-python", "sh", "-c", "echo $RANK_ID $DEVICE_ID ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $GREETING",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    logs = [Path(f"log/latest/rank_{rank}.log").read_text() for rank in range(2)]
    assert logs == ["0 1 0 hi\n", "1 0 1 hi\n"]
    report = json.loads(Path("log/latest/report.json").read_text())
    assert [rank["device"] for rank in report["ranks"] if rank["rank"] >= 0] == [5, 4]


def test_scheduler_that_was_collected_with_the_orphans_is_over() -> None:
    child = subprocess.Popen(["true"])
    os.waitpid(child.pid, 0)
    child.returncode = 0

    scheduler_end.end(child.pid, port=1, wait=True)
    scheduler_end.end(child.pid, port=1, wait=False)
