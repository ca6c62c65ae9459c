"""Ranks of real Paddle on the CPU: from options, from a table, spawned, on two hosts, and some that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.paddle_python import PADDLE_PYTHON, needs_paddle
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.beds.two_hosts import TwoHosts

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(__file__).with_name("paddle_program.py"))
LAUNCH = (sys.executable, "-m", "hccl_tools", "launch", "--python", PADDLE_PYTHON)
SPAWN = """
import hccl_tools
import paddle_program

if __name__ == "__main__":
    hccl_tools.spawn(paddle_program.main, nprocs=2, {options})
"""


def run(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, timeout=600, check=False
    )


def agree(ranks: int, log: Path = Path("log/latest")) -> list[bool]:
    return [
        f"rank {rank} of {ranks} agrees with the others" in (log / f"rank_{rank}.log").read_text()
        for rank in range(ranks)
    ]


@needs_paddle
def test_ranks_from_the_guides_line_agree_and_one_that_fails_is_named() -> None:
    done = run(*LAUNCH, "--gpus", "0,1", "--cpu", PROGRAM, "--fail")

    assert done.returncode == 7, done.stderr
    assert "rank 1 failed first: exit code 7" in done.stderr
    assert agree(2) == [True, True]


@needs_paddle
def test_ranks_of_a_table_agree_although_their_endpoints_are_too_long_for_a_variable() -> None:
    Path("table.json").write_text(json.dumps(table()).replace("10.0.0.1", "127.0.0.1"))

    done = run(*LAUNCH, "--rank-table", "table.json", "--cpu", PROGRAM, PADDLE_ENV_LIMIT_LEN="10")

    assert done.returncode == 0, done.stderr
    assert agree(2) == [True, True]
    plan = json.loads(Path("log/latest/plan.json").read_text())
    assert "PADDLE_TRAINER_ENDPOINTS" not in plan["common_variables"]


@needs_paddle
def test_spawned_ranks_agree() -> None:
    Path("spawning.py").write_text(SPAWN.format(options="cpu=True"))

    done = run(PADDLE_PYTHON, "spawning.py", PYTHONPATH=f"{ROOT}:{Path(PROGRAM).parent}")

    assert done.returncode == 0, done.stderr
    assert agree(2) == [True, True]


@needs_paddle
def test_a_paddle_without_npus_is_named_before_the_start_and_after_the_failure() -> None:
    done = run(*LAUNCH, "--gpus", "0,1", PROGRAM)

    assert done.returncode == 1, done.stderr
    assert "paddle-custom-npu is not installed for" in done.stderr
    assert "hint: the Paddle of the ranks knows no NPU" in done.stderr
    assert "--cpu" in done.stderr.partition("hint: the Paddle")[2]


@needs_paddle
def test_four_ranks_on_two_hosts_agree_without_settings_of_gloo(two_hosts: TwoHosts) -> None:
    hosts = (two_hosts.first, two_hosts.second)
    ips = ",".join(host.address for host in hosts)
    options = ("--ips", ips, "--gpus", "0,1", "--cpu", "--start-port", "17000", "--log-dir")

    started = [
        host.start([*LAUNCH, *options, host.namespace, PROGRAM], stderr=subprocess.PIPE) for host in hosts
    ]
    said = [launcher.communicate(timeout=600)[1] for launcher in started]

    assert [launcher.returncode for launcher in started] == [0, 0], said
    logs = [log for host in hosts for log in sorted(Path(host.namespace, "latest").glob("rank_?.log"))]
    # The first machine of --ips has the first ranks.
    assert [log.name for log in logs] == [f"rank_{rank}.log" for rank in range(4)]
    assert all("of 4 agrees with the others" in log.read_text() for log in logs)
