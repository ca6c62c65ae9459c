"""``hccl-tools launch`` as its users type it: real children, real run directories."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import published
from tests.support.screens import on_terminal
from tests.support.tables import table as rank_table

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Each test starts processes, or takes a second or more.
pytestmark = pytest.mark.slow

HELLO = """\
import json, os, sys
names = ("RANK_ID", "DEVICE_ID", "RANK_SIZE", "DEVICE_NUM", "SERVER_ID", "RANK_TABLE_FILE",
         "OMPI_COMM_WORLD_RANK")
print(json.dumps({"argv": sys.argv[1:], **{name: os.environ.get(name) for name in names}}))
"""


def launch(
    *args: str, env: Mapping[str, str] | None = None, module: bool = False
) -> subprocess.CompletedProcess[str]:
    name = ["-m", "hccl_tools.launch"] if module else ["-m", "hccl_tools", "launch"]
    bin_directory = str(Path(sys.executable).parent)
    environ = {**os.environ, "PATH": f"{bin_directory}:{os.environ['PATH']}", **(env or {})}
    return subprocess.run(
        [sys.executable, *name, *args], capture_output=True, text=True, timeout=120, check=False, env=environ
    )


def write_table(count: int = 4, first: int = 4, name: str = "table.json") -> str:
    devices = [
        {"device_id": str(first + rank), "device_ip": f"192.168.0.{rank + 1}", "rank_id": str(rank)}
        for rank in range(count)
    ]
    value = {
        "version": "1.0", "server_count": "1", "status": "completed",
        "server_list": [{"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}],
    }  # fmt: skip
    Path(name).write_text(json.dumps(value))
    return name


def run_dir(log_dir: str = "log") -> Path:
    return Path(log_dir, "latest").resolve()


def said(rank: int, log_dir: str = "log") -> dict[str, Any]:
    value: dict[str, Any] = json.loads((run_dir(log_dir) / f"rank_{rank}.log").read_text())
    return value


@pytest.fixture(autouse=True)
def hello(own_directory: Path) -> Path:
    script = own_directory / "hello.py"
    script.write_text(HELLO)
    return script


#: A rehearsal with the variables of the table start: no framework and no NPU is needed.
TABLE_START = ("--start", "table", "--cpu")
#: A job with devices as far as the launcher knows; the program opens none.
WITH_DEVICES = ("--start", "table", "--no-preflight")


def test_every_rank_starts_with_its_variables_and_its_own_log() -> None:
    done = launch(
        "--rank-table", write_table(), *TABLE_START, "hello.py", "-c", "conf.yml", "--dry-run", "--", "-n"
    )

    assert done.returncode == 0, done.stderr
    for rank in range(4):
        assert said(rank) == {
            "argv": ["-c", "conf.yml", "--dry-run", "--", "-n"],
            "RANK_ID": str(rank),
            "DEVICE_ID": str(4 + rank),
            "RANK_SIZE": "4",
            "DEVICE_NUM": "4",
            "SERVER_ID": "0",
            "RANK_TABLE_FILE": str(run_dir() / "rank_table.json"),
            "OMPI_COMM_WORLD_RANK": None,
        }
    assert json.loads(done.stdout)["RANK_ID"] == "0"
    assert (run_dir() / "rank_table.json").read_bytes() == Path("table.json").read_bytes()
    assert not (run_dir() / "rank_table.json").is_symlink()
    assert published.read("plan", run_dir() / "plan.json")["world_size"] == 4
    assert published.read("report", run_dir() / "report.json")["exit_code"] == 0


def test_run_directory_has_time_and_a_random_ending() -> None:
    assert launch("--no-table", "-n", "1", *TABLE_START, "--log-dir", "out/%j", "hello.py").returncode == 0

    name = run_dir("out/nojob").name
    stamp, ending = name.rsplit("-", 1)
    assert time.strptime(stamp, "%Y%m%d-%H%M%S")
    assert len(ending) == 32


def test_slurms_job_is_in_the_name() -> None:
    done = launch("--no-table", "-n", "1", *TABLE_START, "hello.py", env={"SLURM_JOB_ID": "4711"})

    assert done.returncode == 0
    assert run_dir().name.endswith("-4711")


def test_module_program_and_python() -> None:
    Path("package").mkdir()
    Path("package/train.py").write_text(HELLO)

    assert (
        launch("--no-table", "-n", "1", "-m", *TABLE_START, "package.train", "--epochs", "3").returncode == 0
    )
    assert said(0)["argv"] == ["--epochs", "3"]
    done = launch("--no-table", "-n", "1", "--no-python", "sh", "-c", "echo rank $RANK_ID of $RANK_SIZE")
    assert done.stdout == "rank 0 of 1\n"
    Path("mypython").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    Path("mypython").chmod(0o755)
    assert launch("--no-table", "-n", "1", "--python", "./mypython", *TABLE_START, "hello.py").returncode == 0


def test_variables_of_the_user() -> None:
    Path("job.env").write_text("DEVICE_NUM=2\nGREETING='good day'\n")
    options = ("--env-file", "job.env", "--env", "DEVICE_NUM=8", "--no-table", "-n", "2", "--no-python")

    done = launch(*options, "sh", "-c", 'echo "$DEVICE_NUM $GREETING $PYTHONUNBUFFERED"')

    assert done.stdout == "8 good day 1\n"


def test_stale_variables_are_removed_and_said_in_one_line() -> None:
    stale = {"OMPI_COMM_WORLD_RANK": "3", "RANK_ID": "9", "PADDLE_TRAINER_ID": "1"}

    done = launch("--rank-table", write_table(1, 0), *TABLE_START, "hello.py", env=stale)

    assert said(0)["OMPI_COMM_WORLD_RANK"] is None
    assert said(0)["RANK_ID"] == "0"
    lines = [line for line in done.stderr.splitlines() if "OMPI_COMM_WORLD_RANK" in line]
    assert len(lines) == 1
    assert "removed" in lines[0]
    assert "PADDLE_TRAINER_ID" in lines[0]


def test_exit_code_is_the_failed_ranks() -> None:
    program = "test $RANK_ID = 2 && exit 7; sleep 60"

    done = launch("--rank-table", write_table(), *TABLE_START, "--no-python", "sh", "-c", program)

    assert done.returncode == 7
    assert "rank 2 failed first" in done.stderr
    report = published.read("report", run_dir() / "report.json")
    assert report["first_failure"]["rank"] == 2
    assert report["first_failure"]["device"] == 6


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_to_the_launcher_ends_all(number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "hccl_tools", "launch", "--no-table", "-n", "2", "--no-python"]
    with subprocess.Popen(
        [*command, "sh", "-c", "echo up; exec sleep 60"], stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "up\n"
        job.send_signal(number)
        job.stdout.read()

    assert job.returncode == code


def test_a_table_from_standard_input() -> None:
    table = Path(write_table()).read_bytes()
    argv = [sys.executable, "-m", "hccl_tools", "launch", "--rank-table", "-", *TABLE_START, "hello.py"]

    done = subprocess.run(argv, input=table, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr
    assert Path("log/latest/rank_table.json").read_bytes() == table
    assert json.loads(Path("log/latest/plan.json").read_bytes())["rank_table"] == "standard input"


def test_log_file_of_rank_0() -> None:
    Path("train.log").write_text("of an older run\n")

    assert (
        launch("--no-table", "-n", "2", *TABLE_START, "--log-file", "train.log", "hello.py").returncode == 0
    )

    assert json.loads(Path("train.log").read_text())["RANK_ID"] == "0"
    assert said(0)["RANK_ID"] == "0"
    assert said(1)["RANK_ID"] == "1"


def test_paddles_flat_logs() -> None:
    assert (
        launch("--no-table", "-n", "2", *TABLE_START, "--flat-logs", "--log_dir=out", "hello.py").returncode
        == 0
    )

    assert json.loads(Path("out/workerlog.1").read_text())["RANK_ID"] == "1"


def test_same_table_twice_is_refused_while_the_first_runs() -> None:
    table = write_table(1, 0)
    command = [sys.executable, "-m", "hccl_tools", "launch", "--rank-table", table, *WITH_DEVICES]
    program = ["--no-python", "sh", "-c", "echo up; exec sleep 60"]
    with subprocess.Popen([*command, *program], stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        job.stdout.readline()
        first = run_dir()
        done = launch("--rank-table", table, *WITH_DEVICES, "hello.py")
        rehearsal = launch("--rank-table", table, *TABLE_START, "--log-dir", "rehearsed", "hello.py")
        job.kill()

    assert done.returncode == 125
    assert f"a job with this table is already running on this host: pid {job.pid}, {first}" in done.stderr
    assert f"end it with `hccl-tools stop {first}`" in done.stderr
    assert rehearsal.returncode == 0, rehearsal.stderr
    # The kernel has released it with the launcher, however that ended.
    assert launch("--rank-table", table, *WITH_DEVICES, "hello.py").returncode == 0


def test_rehearsals_of_one_table_run_at_the_same_time() -> None:
    """Each of two rehearsals ends only when it has seen the other one run."""
    table = str(Path(write_table(2, 0)).resolve())
    command = [sys.executable, "-m", "hccl_tools", "launch", "--rank-table", table, *TABLE_START]
    meet = "touch here; until [ -e ../$0/here ]; do sleep 0.05; done"
    for folder in ("one", "two"):
        Path(folder).mkdir()
    jobs = [
        subprocess.Popen(
            [*command, "--timeout", "60", "--no-python", "sh", "-c", meet, other],
            cwd=folder, stderr=subprocess.PIPE, text=True,
        )
        for folder, other in (("one", "two"), ("two", "one"))
    ]  # fmt: skip
    said = [job.communicate(timeout=120)[1] for job in jobs]

    assert [job.returncode for job in jobs] == [0, 0], said


@pytest.mark.parametrize(("listed", "count"), [(None, 2), ("4,5,6", 3)])
def test_rehearsal_without_a_number_of_ranks(listed: str | None, count: int) -> None:
    environ = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}

    done = launch("--cpu", "--start", "table", "--dry-run", "hello.py", env=environ)

    assert done.returncode == 0, done.stderr
    assert f"plan: {count} ranks on localhost" in done.stdout
    assert f"--cpu without a number of ranks: {count}" in done.stdout


def test_lock_is_not_inherited_by_ranks() -> None:
    table = write_table(1, 0)
    program = "setsid sleep 60 >/dev/null 2>&1 & exit 0"

    environ = {"TMPDIR": str(Path.cwd())}
    done = launch("--rank-table", table, *WITH_DEVICES, "--no-python", "sh", "-c", program, env=environ)

    assert done.returncode == 0, done.stderr
    (lock,) = Path.cwd().glob("hccl-tools-*/table-*.lock")
    with lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_dry_run_starts_and_writes_nothing() -> None:
    done = launch("--rank-table", write_table(), *TABLE_START, "--dry-run", "hello.py", "--dry-run=json")

    assert done.returncode == 0
    assert "device  DEVICE_ID  log" in done.stdout
    assert done.stdout.count("RANK_ID={rank} ") == 1
    assert "hello.py --dry-run=json" in done.stdout
    assert not Path("log").exists()


@pytest.mark.parametrize("letters", [["-mn", "2"], ["-mn2"], ["-n2", "-m"], ["-n", "2", "-m"]])
def test_dry_run_after_short_options(letters: list[str]) -> None:
    done = launch("--no-table", *TABLE_START, *letters, "--dry-run", "json.tool", "-h")

    assert done.returncode == 0, done.stderr
    assert "-m json.tool -h" in done.stdout


def test_port_that_sites_do_not_open_is_told() -> None:
    options = ("--no-table", "--cpu", "--start", "torch", "--start-port", "8118", "--dry-run")
    machines = ("-n", "2", "--nnodes", "2", "--node-rank", "0", "--master-addr", "10.0.0.1")

    done, on_one = launch(*options, *machines, "hello.py"), launch(*options, "-n", "1", "hello.py")

    assert done.returncode == on_one.returncode == 0, done.stderr
    assert "port 8118 is outside 10000-20000" in done.stderr + done.stdout
    assert "(--start-port)" in done.stderr + done.stdout
    assert "10000-20000" not in on_one.stderr + on_one.stdout


def test_dry_run_as_json() -> None:
    done = launch("--rank-table", write_table(), *TABLE_START, "--dry_run=json", "hello.py")

    value = json.loads(done.stdout)
    assert [process["device_id"] for process in value["processes"]] == [4, 5, 6, 7]
    assert value["start"] == "table"


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        ([], 2, "PROGRAM is missing"),
        (["--no-such-option", "hello.py"], 2, "no such option"),
        (["--rank-table", "absent.json", "hello.py"], 125, "absent.json"),
        (["--rank-table", ".", "hello.py"], 125, "is a directory without"),
        (["--rank-table", "empty.json", "hello.py"], 125, "empty.json"),
        (["--rank-table", "hello.py", "hello.py"], 125, "hello.py"),
        (["hello.py"], 2, "the number of ranks is missing"),
        (["-n", "1", "--rank-table", "absent.json", "--all-here", "hello.py"], 125, "absent.json"),
        (["-n", "0", "hello.py"], 2, "-n"),
        (["--no-table", "-n", "1", "absent.py"], 127, '"absent.py" does not exist'),
        (["--no-table", "-n", "1", "--no-python", "./hello.py"], 126, "not executable"),
        (["--no-table", "-n", "1", "--python", "nopython", "hello.py"], 127, '"nopython" does not exist'),
        (["--no-table", "-n", "1", "--python", "./hello.py", "hello.py"], 126, "is not executable"),
        (["--no-table", "-n", "1", "-m", "no.such"], 127, 'the module "no.such" does not exist'),
        (
            ["--no-table", "-n", "1", "bash", "job.sh"],
            127,
            "--no-python bash job.sh` starts the program",
        ),
        (["--no-table", "-n", "1", "/bin/true"], 126, "is a compiled program, not a Python script"),
        (["--no-table", "-n", "1", "python", "-O", "hello.py"], 2, "only -u and -m are allowed between"),
        (
            ["--no-table", "-n", "1", "--python", "python3.9", "python", "hello.py"],
            2,
            "leave one of them out",
        ),
        (["--no-table", "-n", "1", "python"], 2, "only -u and -m are allowed between"),
        (
            ["--no-table", "-n", "2", "--env", "RANK_ID=7", "hello.py"],
            2,
            "RANK_ID=7 assigns one value to all ranks",
        ),
        (["--no-table", "-n", "1", "--env", "X", "hello.py"], 2, '"X" is not NAME=VALUE'),
        (["--no-table", "-n", "1", "-m", "--no-python", "x"], 2, "exclude each other"),
        (["--no-table", "-n", "1", "--start", "mpi", "hello.py"], 2, "--engine loop does not"),
        (
            ["--no-table", "-n", "1", "--engine", "ssh", "--mpirun", "mpiexec", "hello.py"],
            2,
            "--engine ssh and --mpirun mpiexec exclude each other",
        ),
        (
            ["--no-table", "-n", "1", "--mpirun", "mpiexec", "--engine=loop", "hello.py"],
            2,
            "--engine loop and --mpirun mpiexec exclude each other",
        ),
        (["--hostfile", "f", "--hosts", "a", "hello.py"], 2, "--hosts and --hostfile exclude each other"),
        (["--hosts", "a", "--no-table", "hello.py"], 2, "--hosts cannot be combined with --rank-table"),
        (["--hosts", "a", "--cpu", "hello.py"], 2, "--hosts queries the NPUs of the hosts"),
        (["--hosts", "a", "--engine", "loop", "hello.py"], 2, "--engine loop starts the ranks of this host"),
        (["--hosts", "10.0.0.1-4", "hello.py"], 2, "for a range write 10.0.0.[1-4]"),
        (["--hostfile", "none", "hello.py"], 2, "the hostfile none cannot be read"),
        (["--no-table", "-n", "1", "--no_core=x", "hello.py"], 2, "no such option --no_core"),
        (["--no-table", "-n", "1", "--bind_core=x", "hello.py"], 2, "launch has no option --bind_core x"),
        (["--no-table", "--nproc-per-node", "auto", "hello.py"], 2, "no NPU is visible"),
        (["--no-table", "-n", "1", "--master", "etcd://x:1", "hello.py"], 2, "is not ADDRESS:PORT"),
        (["--no-table", "-n", "1", "--timeout", "nan", "hello.py"], 2, '--timeout "nan" is not a time'),
        (["--no-table", "-n", "1", "--grace", "inf", "hello.py"], 2, '--grace "inf" is not a time'),
        (["--no-table", "-n", "1", "--tail", "first", "hello.py"], 2, '--tail "first"'),
        (["--no-table", "-n", "2", "--tail", "0,2", "hello.py"], 2, "--tail 2: the job has no rank 2"),
        (["--no-table", "-n", "2", "--stdin", "2", "hello.py"], 2, "--stdin 2: the job has no rank 2"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_refusals_are_one_clear_message(args: list[str], code: int, sentence: str, dry: bool) -> None:
    Path("empty.json").write_text("")

    done = launch(*(["--dry-run"] if dry else []), *args)

    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("log").exists()


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ((), "loop (the default)"),
        (("--engine", "loop"), "loop (--engine)"),
        (("--engine", "ssh"), "ssh (--engine)"),
    ],
)
def test_the_plan_names_the_engine_and_why(typed: tuple[str, ...], shown: str) -> None:
    arguments = ["--rank-table", write_table(), *TABLE_START, *typed]

    text = launch(*arguments, "--dry-run", "hello.py")
    plan = launch(*arguments, "--dry-run=json", "hello.py")

    assert f"  engine:        {shown}\n" in text.stdout
    assert json.loads(plan.stdout)["engine"] == shown.split(maxsplit=1)[0]
    assert json.loads(plan.stdout)["chosen"]["engine"] == shown


def test_help_has_examples_and_groups() -> None:
    done = launch("--help")

    assert done.returncode == 0
    assert "hccl-tools launch --rank-table" in done.stdout
    assert "Rehearse without NPUs:" in done.stdout
    assert "Exit codes:" in done.stdout


@pytest.mark.parametrize(
    "args",
    [
        ["--log_dir=./log/", "--gpus", "0,1,2,3", "hello.py", "-c", "conf.yml"],
        ["--selected_gpu", "0,1,2,3", "hello.py", "-c", "conf.yml"],
        ["--nproc_per_node=4", "hello.py", "-c", "conf.yml"],
        ["--nproc-per-node", "4", "--nnodes=1", "--node-rank=0", "--master-addr", "127.0.0.1",
         "--master-port", "18200", "hello.py", "-c", "conf.yml"],
        ["--worker_num=4", "--local_worker_num=4", "--master_addr=127.0.0.1", "--master_port=18201",
         "--node_rank=0", "--join=True", "--log_dir=log", "hello.py", "-c", "conf.yml"],
        ["--devices", "0-3", "--master", "127.0.0.1:18202", "hello.py", "-c", "conf.yml"],
        ["--standalone", "--rdzv_backend=c10d", "--nnodes=1:1", "--nproc_per_node=4", "-r", "3", "hello.py",
         "-c", "conf.yml"],
        ["--worker_num=4", "--local_worker_num=4", "--cluster_time_out=300", "--bind_core", "False",
         "--tail_worker_log=-1", "hello.py", "-c", "conf.yml"],
        ["--ips=127.0.0.1", "--npus", "[0,4)", "hello.py", "-c", "conf.yml"],
    ],
)  # fmt: skip
def test_habits_of_other_launchers(args: list[str]) -> None:
    done = launch(*TABLE_START, "--cpu", *args, module=True)

    assert done.returncode == 0, done.stderr
    assert [said(rank)["RANK_ID"] for rank in range(4)] == ["0", "1", "2", "3"]
    assert said(3)["argv"] == ["-c", "conf.yml"]


@pytest.mark.parametrize(
    "program",
    [
        ["python", "hello.py"],
        ["python3", "-u", "hello.py"],
        [sys.executable, "hello.py"],
        ["python", "-m", "hello"],
    ],
)
def test_a_python_before_the_program_is_its_interpreter(program: list[str]) -> None:
    done = launch("--no-table", "-n", "2", *TABLE_START, *program, "--epochs", "3")

    assert done.returncode == 0, done.stderr
    assert said(1)["argv"] == ["--epochs", "3"]
    plan = published.read("plan", run_dir() / "plan.json")
    assert Path(plan["processes"][0]["argv"][0]).name.startswith("python")
    assert "--python" in plan["chosen"]["python"]


def test_arguments_that_are_options_of_launch_are_noted() -> None:
    typed = ("--no-table", "-n", "1", *TABLE_START)
    noted = launch(*typed, "python", "hello.py", "--dry-run", "--log_dir=x", "--epochs", "3")
    meant = launch(*typed, "--", "hello.py", "--dry-run")
    plain = launch(*typed, "hello.py", "--epochs", "3")

    assert [done.returncode for done in (noted, meant, plain)] == [0, 0, 0]
    assert "--dry-run, --log_dir=x are passed to hello.py" in noted.stderr
    assert "must precede the program" not in meant.stderr + plain.stderr


def test_a_module_that_the_ranks_python_lacks() -> None:
    Path("train.py").write_text("import no_such_framework\n")

    done = launch("--no-table", "-n", "1", *TABLE_START, "train.py")

    assert done.returncode == 1
    assert "has no module 'no_such_framework': select another Python for the ranks with" in done.stderr


@pytest.mark.parametrize(("options", "is_said"), [((), True), (("--cpu",), False), (("--no-table",), False)])
def test_a_host_without_npu_is_told(options: tuple[str, ...], is_said: bool) -> None:
    done = launch("-n", "2", *options, "--start", "torch", "hello.py")

    assert done.returncode == 0, done.stderr
    assert ("hccl-tools: no NPU on this host: the device numbers" in done.stderr) == is_said
    assert not is_said or "--cpu rehearses" in done.stderr


def test_torch_start_from_the_command_line() -> None:
    done = launch("--no-table", "-n", "2", "--cpu", "--start", "torch", "--no-python", "sh", "-c",
                  "echo $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR")  # fmt: skip

    assert done.stdout == "0 0 2 127.0.0.1\n"


def test_table_from_the_shell_is_said_aloud() -> None:
    done = launch(*TABLE_START, "hello.py", env={"RANK_TABLE_FILE": write_table(2, 0)})

    assert done.returncode == 0
    assert "from RANK_TABLE_FILE of your shell" in done.stderr
    assert said(1)["RANK_SIZE"] == "2"


def test_variables_that_change_hccls_verdict_count() -> None:
    """HCCL refuses every job with this one alone; the ranks would say so, one by one."""
    typed = ("--rank-table", write_table(), "--env", "HCCL_INTRA_ROCE_ENABLE=0", "--no-python", "true")

    done = launch(*typed, env={"HCCL_INTRA_ROCE_ENABLE": "1"})
    assert done.returncode == 125
    assert "HCCL_INTRA_ROCE_ENABLE is 0 and HCCL_INTRA_PCIE_ENABLE is not set" in done.stderr
    assert not Path("log").exists()

    assert launch("--cpu", *typed).returncode == 0


def test_a_variable_of_the_shell_that_hccl_refuses_stops_the_start() -> None:
    typed = ("--rank-table", write_table(), "--no-python", "true")

    done = launch(*typed, env={"HCCL_RDMA_TC": "3"})
    assert done.returncode == 125
    assert 'HCCL_RDMA_TC="3": HCCL accepts 0 to 255, a multiple of 4' in done.stderr
    assert "set it to 0 to 255, a multiple of 4, or unset it" in done.stderr
    assert not Path("log").exists()

    assert launch("--cpu", *typed, env={"HCCL_RDMA_TC": "3"}).returncode == 0


def test_wait_starts_once_the_table_is_completed() -> None:
    write_table(2, name="complete.json")
    Path("table.json").write_text('{"status": "initializing", "version": "1.0", "server_list": []}')
    command = [
        sys.executable,
        "-m",
        "hccl_tools.launch",
        "--rank-table",
        "table.json",
        "--wait",
        "60",
        "--cpu",
    ]
    with subprocess.Popen(
        [*command, "--cpu", "--start", "table", "--no-python", "true"], stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stderr is not None
        assert "waiting for table.json: its status is" in job.stderr.readline()
        Path("complete.json").replace("table.json")
        job.stderr.read()
    assert job.returncode == 0
    assert len(list(run_dir().glob("rank_[0-9].log"))) == 2


def test_a_table_that_is_waited_for_begins_no_line() -> None:
    pods = {"instance_count": "3", "instance_list": [{"pod_name": "\x1b[2Jjob\n::error::x\nhelp: run evil"}]}
    Path("table.json").write_text(json.dumps({"status": "initializing", "group_list": [pods]}))

    done = launch("--rank-table", "table.json", "--wait", "0.1", "--cpu", "--no-python", "true")

    assert "waiting for table.json: " in done.stderr
    assert "\x1b" not in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith(("help: run evil", "::error"))]


def test_wait_that_was_in_vain_is_a_refusal() -> None:
    done = launch("--rank-table", "table.json", "--wait", "0.1", "--cpu", "--no-python", "true")

    assert done.returncode == 125
    assert "table.json is not ready after 0.1 s: the file does not exist yet" in done.stderr


@pytest.mark.parametrize("spelling", [("-np", "2"), ("--np", "2"), ("-n2",)])
def test_the_number_of_ranks_as_mpirun_spells_it(spelling: tuple[str, ...]) -> None:
    done = launch("--no-table", "--cpu", *spelling, "--dry-run=json", "hello.py")

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["world_size"] == 2


def test_times_may_have_a_unit() -> None:
    Path("sleep.py").write_text("import time; time.sleep(300)")

    done = launch("--no-table", "--cpu", "-n1", "--timeout", "0.01m", "--grace", "1s", "sleep.py")

    assert done.returncode == 124
    assert "--timeout 0.6 s exceeded" in done.stderr


def test_full_width_characters_in_a_list_of_devices() -> None:
    Path("hello.py").write_text(HELLO)
    done = launch("--cpu", "--gpus", "0\uff0c1", "hello.py")

    assert done.returncode == 2
    assert 'full-width comma "\uff0c" in "0\uff0c1"' in done.stderr
    assert 'type "0,1"' in done.stderr


def test_a_script_with_control_characters_is_not_shown_on_a_terminal(own_directory: Path) -> None:
    table: Any = rank_table("1.0", 1, 8)
    table["server_list"][0]["server_id"] = "h\x1b[2J"
    (own_directory / "t.json").write_text(json.dumps(table))
    typed = ("launch", "--rank-table", "t.json", "--product", "a2", "--emit", "xllm", "--no-python", "true")

    shown = on_terminal(*typed)

    assert "\x1b[2J" not in shown.raw
    assert shown.code == 2
    assert "control characters" in shown.raw.replace("\n", " ")
