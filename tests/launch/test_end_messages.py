"""What shims and supervisors report: only they can, and what is not a report ends nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hccl_tools.launch import end_messages, host_ends, mpi_rank_end
from hccl_tools.launch.engine_wire import EngineWire
from hccl_tools.launch.plan import Plan, RankProcess
from tests.support.mpiruns import MPIRUNS

RANK: dict[str, Any] = {
    "hccl_tools": "rank failed", "rank": 1, "device": 5, "host": "b", "pid": 77, "exit_code": 7,
    "signal": None, "time": 5.0, "duration": 1.5, "log": "/log/rank_1.log", "last_lines": ["no"],
    "traceback": None,
}  # fmt: skip
BEGAN = {"hccl_tools": host_ends.BEGAN, "host": "a", "node": "n1", "time": 1}
WRONG: list[dict[str, Any]] = [
    {"rank": "1"}, {"rank": -1}, {"rank": True}, {"pid": None}, {"exit_code": 1 << 40}, {"signal": "SIGN"},
    {"signal": 9}, {"signal": "signal x"}, {"time": "now"}, {"time": float("nan")}, {"time": float("inf")},
    {"duration": -1}, {"log": 5}, {"last_lines": "no"}, {"last_lines": [1]}, {"traceback": {}},
    {"hccl_tools": "rank"}, {"hccl_tools": ["rank failed"]},
]  # fmt: skip


def write(run_dir: Path, name: str, *values: object) -> None:
    with (run_dir / name).open("a") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_report_is_checked_field_by_field(wrong: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path, mpi_rank_end.ENDS_FILE, {**RANK, **wrong}, RANK)

    assert end_messages.read(str(tmp_path)) == [RANK]


def test_what_is_not_a_report_is_left_out(tmp_path: Path) -> None:
    (tmp_path / host_ends.ENDS_FILE).write_text('{"hccl_tools": "host ended"}\n5\n{"hccl\n' + "[" * 9999)
    write(tmp_path, host_ends.ENDS_FILE, BEGAN)

    assert end_messages.nodes(str(tmp_path)) == {}
    write(tmp_path, host_ends.ENDS_FILE, BEGAN)
    assert end_messages.nodes(str(tmp_path)) == {"a": "n1"}


def test_output_of_an_engine_is_read_by_the_token_alone(tmp_path: Path) -> None:
    write(tmp_path, "engine.log", RANK)
    with (tmp_path / "engine.log").open("a") as file:
        file.write(end_messages.mark("other") + json.dumps(RANK) + "\n")
        file.write(end_messages.mark("right") + json.dumps({**RANK, "rank": 2}) + "\n")

    assert end_messages.read(str(tmp_path)) == []
    assert [report["rank"] for report in end_messages.read(str(tmp_path), "right")] == [2]


SAYS = """\
import json, os
if os.environ["RANK_ID"] == "0":
    print('{"hccl_tools": "host refused"}', flush=True)
    print('{"hccl_tools": "rank failed", "rank": 0, "time": 1}', flush=True)
    print(json.dumps(%r), flush=True)
    print("token:", os.environ.get("HCCL_TOOLS_LAUNCHER"))
"""


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
def test_ranks_cannot_report_by_what_they_print(own_directory: Path) -> None:
    """One host, one supervisor: what rank 0 prints goes to the output of mpirun."""
    Path("says.py").write_text(SAYS % RANK)
    devices = [{"device_id": str(n), "device_ip": f"192.168.0.{n}", "rank_id": str(n)} for n in range(2)]
    server = {"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}
    table = {"version": "1.0", "server_count": "1", "server_list": [server], "status": "completed"}
    Path("table.json").write_text(json.dumps(table))
    options = ["--rank-table", "table.json", "--cpu", "--start", "torch", *MPIRUNS[0].for_launch]

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch", *options, "says.py"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert done.stdout.splitlines()[:2] == [
        '{"hccl_tools": "host refused"}', '{"hccl_tools": "rank failed", "rank": 0, "time": 1}',
    ]  # fmt: skip
    assert "token: None" in done.stdout
    report = json.loads(Path("log/latest/report.json").read_text())
    assert (report["reason"], report["exit_code"]) == ("ended", 0)


def test_a_supervisor_without_a_connection_marks_what_it_prints(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    process = RankProcess(0, "10.0.0.1", 3, 0, 0, {}, ("true",), "rank_0.log")
    environ = {"HCCL_TOOLS_LAUNCHER": "secret", "PATH": "/bin"}

    EngineWire(str(tmp_path), environ).begin(Plan((process,), "torch", "loop", str(tmp_path), "/", 1))

    (tmp_path / "engine.log").write_text(capfd.readouterr().out)
    assert environ == {"PATH": "/bin"}
    assert list(end_messages.nodes(str(tmp_path), "secret")) == ["10.0.0.1"]
