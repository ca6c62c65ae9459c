"""What the processes that an engine starts report to the launcher: only they can, and it is checked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hccl_tools import codec
from hccl_tools.codec import DecodeError
from hccl_tools.launch.cluster import verdict
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.model.rank_messages import RankExit
from tests.support.mpiruns import MPIRUNS

RANK: dict[str, Any] = {
    "rank": 1, "pid": 77, "status": 7 << 8, "duration": 1.5, "was_terminated": False,
    "log": "/log/rank_1.log",
}  # fmt: skip
WRONG: list[dict[str, Any]] = [
    {"rank": "1"}, {"rank": -1}, {"rank": True}, {"rank": 2}, {"pid": None}, {"status": 1 << 40},
    {"status": 127}, {"status": 7.5}, {"duration": -1}, {"duration": float("nan")}, {"log": 5},
    {"was_terminated": 3},
]  # fmt: skip


def plan() -> Plan:
    ranks = (RankProcess(rank, "10.0.0.1", 0, rank, rank, {}, ("true",), f"{rank}.log") for rank in (0, 1))
    return Plan(tuple(ranks), "torch", "loop", "/log", "/", 2)


def test_a_rank_s_end_arrives_as_it_was_reported() -> None:
    end = verdict.rank_end(plan(), codec.decode(RankExit, json.loads(json.dumps(RANK))))

    assert (end.process.rank, end.pid, end.code, end.duration) == (1, 77, 7, 1.5)
    assert RankExit.of(end)._asdict() == RANK


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_report_is_checked_field_by_field(wrong: dict[str, Any]) -> None:
    with pytest.raises((DecodeError, ValueError)):
        verdict.rank_end(plan(), codec.decode(RankExit, {**RANK, **wrong}))


SAYS = """\
import json, os
if os.environ["RANK_ID"] == "0":
    print('{"hccl_tools": "host refused"}', flush=True)
    print(json.dumps({"cause": None, "ranks": [%r]}), flush=True)
    print("token:", os.environ.get("HCCL_TOOLS_LAUNCHER"))
"""


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
@pytest.mark.parametrize("with_table", [True, False], ids=["supervisor", "MPI ranks"])
def test_ranks_cannot_report_by_what_they_print(own_directory: Path, with_table: bool) -> None:
    Path("says.py").write_text(SAYS % RANK)
    devices = [{"device_id": str(n), "device_ip": f"192.168.0.{n}", "rank_id": str(n)} for n in range(2)]
    server = {"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}
    table = {"version": "1.0", "server_count": "1", "server_list": [server], "status": "completed"}
    Path("table.json").write_text(json.dumps(table))
    ranks = ["--rank-table", "table.json", "--start", "torch"] if with_table else ["-n", "2"]

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", *ranks, "--cpu", *MPIRUNS[0].for_launch, "says.py"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert done.stdout.splitlines()[0] == '{"hccl_tools": "host refused"}'
    assert "token: None" in done.stdout
    report = json.loads(Path("log/latest/report.json").read_text())
    assert (report["reason"], report["exit_code"]) == ("ended", 0)
