"""What ``launch --emit`` prints: the stand-alone scripts filled in, and the commands of other tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_here
from tests.support.tables import table as made_table

SHOW = """\
import json, os
print(json.dumps({name: os.environ.get(name) for name in ('RANK_ID', 'DEVICE_ID', 'RANK_SIZE', 'WORDS')}))
"""


@pytest.fixture(autouse=True)
def files(own_directory: Path) -> None:
    (own_directory / "show.py").write_text(SHOW)
    for name, order in (("table.json", (5, 4)), ("ascending.json", (4, 5))):
        devices = [
            {"device_id": str(device), "device_ip": f"192.168.0.{device}", "rank_id": str(rank)}
            for rank, device in enumerate(order)
        ]
        value = {
            "version": "1.0", "server_count": "1", "status": "completed",
            "server_list": [{"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}],
        }  # fmt: skip
        (own_directory / name).write_text(json.dumps(value))


def emit(target: str, *options: str, table: str, start: str = "table") -> subprocess.CompletedProcess[str]:
    typed = ("--rank-table", table, "--start", start, "--emit", target, *options)
    return run_here("launch", *typed, "show.py", "-c", "a b.yml")


def emitted(target: str, *options: str, start: str = "table") -> str:
    # The other tools place ranks along the devices; the scripts know any order.
    table = "ascending.json" if target in {"msrun", "torchrun"} else "table.json"
    done = emit(target, *options, table=table, start=start)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(rank: int) -> dict[str, str]:
    found: dict[str, str] = json.loads(Path("own logs", f"rank_{rank}.log").read_text())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("target", ["rank_loop", pytest.param("mpirun", marks=pytest.mark.mpi)])
def test_emitted_scripts_run_as_they_are(target: str) -> None:
    Path("job.sh").write_text(emitted(target, "--env", "WORDS=a 'b'", "--log-dir", "own logs"))
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    done = subprocess.run(
        ["bash", "job.sh"], capture_output=True, text=True, timeout=60, check=False, env=environ
    )

    assert done.returncode == 0, done.stderr
    assert said(0) == {"RANK_ID": "0", "DEVICE_ID": "5", "RANK_SIZE": "2", "WORDS": "a 'b'"}
    assert said(1) == {"RANK_ID": "1", "DEVICE_ID": "4", "RANK_SIZE": "2", "WORDS": "a 'b'"}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("rank_loop", ["'127.0.0.1 0,1 5,4'", "SERVER=${SERVER:-0}", "show.py -c 'a b.yml')"]),
        ("slurm", ["#SBATCH --ntasks-per-node=2", "#SBATCH --nodes=1", "'127.0.0.1 0,1 5,4'"]),
        ("msrun", ["=4,5 msrun --worker_num=2 --local_worker_num=2", "show.py -c 'a b.yml'"]),
        ("torchrun", ["=4,5 torchrun --nproc-per-node=2 --nnodes=1", "show.py -c 'a b.yml'"]),
    ],
)
def test_emitted_text(target: str, words: list[str]) -> None:
    text = emitted(target)

    assert not [word for word in words if word not in text], text


def test_cluster_start_has_its_port_in_the_loop() -> None:
    assert "SCHED_PORT=${SCHED_PORT:-1" in emitted("rank_loop", start="cluster")
    assert "--master_port=" in emitted("msrun", start="cluster")


@pytest.mark.slow
def test_other_tools_start_python_only() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", "--no-table", "-n", "2", "--emit", "msrun", "--no-python",
         "sh"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 125
    assert "msrun starts Python scripts only" in done.stderr


@pytest.mark.parametrize("target", ["rank_loop", "mpirun", "slurm", "msrun"])
def test_on_a_host_that_is_none_of_the_jobs(target: str) -> None:
    for name in ("table.json", "ascending.json"):
        table = Path(name)
        table.write_text(table.read_text().replace("127.0.0.1", "203.0.113.1"))

    assert emitted(target).strip()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["rank_loop", "mpirun", "slurm", "msrun", "torchrun"])
@pytest.mark.parametrize("program", [["train.py"], ["-m", "no_such_module"]])
def test_the_program_may_be_missing_on_this_host(target: str, program: list[str]) -> None:
    start = "torch" if target == "torchrun" else "table"
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", "--rank-table", "ascending.json", "--start", start,
         "--emit", target, *program],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert " ".join(program) in done.stdout
    assert f'"{program[-1]}" does not exist' in done.stderr
    assert done.stderr.rstrip().endswith("; it must exist on the hosts of the job")


@pytest.mark.slow
def test_a_program_that_exists_must_be_one() -> None:
    os.mkdir("program")  # noqa: PTH102
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", "--rank-table", "ascending.json", "--emit", "slurm",
         "--no-python", "./program"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (126, "")
    assert '"./program" is not executable' in done.stderr


@pytest.mark.slow
def test_a_note_does_not_excuse_a_launch() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "hccl_tools.launch",
            "--rank-table",
            "ascending.json",
            "--dry-run",
            "train.py",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 127
    assert 'error: the script "train.py" does not exist' in done.stderr


@pytest.mark.parametrize(
    ("target", "options", "word"),
    [
        ("rank_loop", ("--grace", "2.5"), "GRACE=${GRACE:-3}\n"),
        ("slurm", ("--env", "A=1", "--env", "B=x y"), "ENVIRONMENT=(A=1 'B=x y')\n"),
        ("slurm", ("--log-dir", "out/%j"), "LOG_DIR=${LOG_DIR:-out/${SLURM_JOB_ID:-nojob}"),
        ("msrun", ("--env", "B=x y", "--log-dir", "out"), "=4,5 B='x y' msrun "),
        ("msrun", ("--log-dir", "out"), "--log_dir=out "),
        ("torchrun", ("--max-restarts", "2"), " --max-restarts=2 "),
        ("torchrun", ("--log-dir", "out"), " --log-dir=out "),
        ("rank_loop", ("--cpu",), "ENVIRONMENT=(PADDLE_DISTRI_BACKEND=gloo)\n"),
        ("slurm", ("--cpu", "--env", "A=1"), "ENVIRONMENT=(PADDLE_DISTRI_BACKEND=gloo A=1)\n"),
    ],
)
def test_options_are_taken_over(target: str, options: tuple[str, ...], word: str) -> None:
    assert word in emitted(target, *options)


@pytest.mark.parametrize("target", ["msrun", "torchrun"])
def test_other_tools_get_no_device_in_a_rehearsal(target: str) -> None:
    start = "cluster" if target == "msrun" else "torch"

    # Torch does not read Paddle's variable.
    before = "" if target == "torchrun" else "PADDLE_DISTRI_BACKEND=gloo "
    assert emitted(target, "--cpu", start=start).startswith(f"{before}{target} ")
    assert "ASCEND_RT_VISIBLE_DEVICES=4,5 " in emitted(target, start=start)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("mpirun", ("--grace", "3")), ("msrun", ("--max-restarts", "2")), ("rank_loop", ("--timeout", "60")),
        ("slurm", ("--tail", "all")), ("torchrun", ("--log-file", "train.log")), ("mpirun", ("--no-export",)),
        ("msrun", ("--engine", "mpirun")), ("mpirun", ("--all-here", "--cpu")),
        ("slurm", ("--master-addr", "10.0.0.1")), ("mpirun", ("--spares", "1")),
    ],
)  # fmt: skip
def test_options_that_would_be_lost_are_refused(target: str, options: tuple[str, ...]) -> None:
    done = emit(target, *options, table="ascending.json")

    assert (done.returncode, done.stdout) == (2, "")
    assert f"--emit {target} does not support {options[0]}" in done.stderr


HOSTILE = [
    "$(touch${IFS}made)", "`touch made`", '"; touch made; "', "a,b", "a:2", "a b",
    "-oProxyCommand=touch made", "\x1b[31mred", "a\ntouch made", "'; touch made; '",
]  # fmt: skip


@pytest.mark.parametrize("server_id", HOSTILE)
@pytest.mark.parametrize("target", ["rank_loop", "mpirun", "slurm"])
def test_a_server_id_that_is_not_a_host_name_is_refused_with_its_place(target: str, server_id: str) -> None:
    table = json.loads(Path("table.json").read_text())
    table["server_list"][0]["server_id"] = server_id
    Path("hostile.json").write_text(json.dumps(table, indent=4))

    done = emit(target, table="hostile.json")

    assert (done.returncode, done.stdout) == (125, "")
    assert "hostile.json:7:26: " in done.stderr.replace(f"{Path.cwd()}/", ""), done.stderr
    assert "\x1b[" not in done.stderr
    assert f"--emit {target} needs host names" in done.stderr


def test_an_ipv6_address_is_a_host_where_no_colon_counts_ranks() -> None:
    Path("six.json").write_text(Path("table.json").read_text().replace("127.0.0.1", "2001:db8::1"))

    for target in ("rank_loop", "slurm", "mpirun"):
        assert "'2001:db8::1 0,1 5,4'" in emit(target, table="six.json").stdout


@pytest.mark.slow
def test_an_emitted_script_runs_nothing_but_its_program() -> None:
    bad = "$(touch made)'\"`touch made`}; touch made; ${x:-"
    Path(bad.replace("/", "")).mkdir()
    table = Path(bad, "table.json")
    table.write_text(Path("table.json").read_text())
    options = ["--env", f"WORDS={bad}", "--log-dir", f"{bad}/own logs", "--rank-table", str(table)]
    program = ["--no-python", "sh", "-c", 'printf "%s|%s|%s" "$WORDS" "$1" "$RANK_TABLE_FILE"', "sh", bad]
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", "--cpu", "--start", "table", "--emit", "rank_loop",
         *options, *program],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    Path("job.sh").write_text(done.stdout)

    ran = subprocess.run(["bash", "job.sh"], capture_output=True, text=True, timeout=60, check=False)

    assert ran.returncode == 0, ran.stderr
    assert Path(bad, "own logs", "rank_0.log").read_text() == f"{bad}|{bad}|{table.resolve()}"
    assert not list(Path.cwd().rglob("made"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("target", ["rank_loop", "mpirun", "slurm"])
def test_shellcheck_finds_nothing_in_what_is_emitted(target: str) -> None:
    options = ("--env", "WORDS=a 'b'", "--log-dir", "own logs/%j")
    text = emitted(target, *(options if target == "slurm" else options[:2]))

    done = subprocess.run(["shellcheck", "-"], input=text, capture_output=True, text=True, check=False)

    assert done.stdout == ""


@pytest.mark.slow
def test_launch_takes_any_server_id_where_no_host_is_named() -> None:
    table = json.loads(Path("table.json").read_text())
    table["server_list"][0]["server_id"] = "$(touch made) a:1,b"
    Path("hostile.json").write_text(json.dumps(table))
    options = ["--rank-table", "hostile.json", "--cpu", "--start", "table", "--server", "$(touch made) a:1,b"]

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", *options, "show.py"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("tool", ["msrun", "torchrun"])
def test_other_tools_cannot_have_ranks_in_any_order(tool: str) -> None:
    done = emit(tool, table="table.json")

    assert (done.returncode, done.stdout) == (125, "")
    assert f"{tool} would put rank 0 on device 4 of 127.0.0.1, which belongs to rank 1" in done.stderr


@pytest.mark.parametrize("target", ["torchrun", "msrun"])
@pytest.mark.parametrize("name", ["h2\ntouch PWN #", "h2\rtouch PWN", "h2\x1b[31m", "h2\u2028touch PWN"])
def test_the_name_of_a_server_is_a_comment_on_one_line(target: str, name: str) -> None:
    value = made_table("1.0", 2, 8)
    value["server_list"][1]["server_id"] = name
    Path("named.json").write_text(json.dumps(value))

    done = emit(target, "--cpu", table="named.json", start="torch")

    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [line for line in lines if line.lstrip().startswith("touch")] == []
    assert sum(line.startswith("# ") for line in lines) == 2
    assert "\x1b" not in done.stdout
