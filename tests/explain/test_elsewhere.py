"""``explain RUN`` of a job whose other host keeps its logs on its own disk."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

PORT = "[ERROR] HCCL(4001,p):2026-03-18-10:00:05.113.403 [x.cc:1] host nic listen start failed, port[60000]\n"
WAIT = "[ERROR] HCCL(4000,p):2026-03-18-10:02:05.113.403 [x.cc:1] topo exchange agent get socket timeout! timeout[120]\n"


@pytest.fixture
def run_dir(command_line: CommandLine) -> Path:
    """A run of two hosts: rank 0 has its log here, rank 1 on ``hostb``."""
    here = command_line.folder / "log" / "run1"
    here.mkdir(parents=True)
    processes = [
        {"rank": rank, "host": host, "log": f"rank_{rank}.log", "argv": ["x"], "here": rank == 0, "device": 0}
        for rank, host in enumerate(["hosta", "hostb"])
    ]
    (here / "plan.json").write_text(json.dumps({"processes": processes, "hosts": ["hosta", "hostb"]}))
    (here / "rank_table.json").write_text(json.dumps(table("1.0", 2, 1)))
    (here / "rank_0.log").write_text(WAIT)
    there = command_line.folder / "hostb"
    there.mkdir()
    (there / "rank_1.log").write_text(PORT)
    return here


def ssh(folder: Path, text: str) -> str:
    """Write a program that stands for ssh; it gets the host and the command line for its shell."""
    program = folder / "ssh"
    program.write_text(f'#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n{text}\n')
    program.chmod(0o755)
    return str(program)


def test_the_logs_of_the_other_host_are_searched_there(command_line: CommandLine, run_dir: Path) -> None:
    there = shlex.quote(str(command_line.folder / "hostb"))
    python = shlex.quote(sys.executable)
    program = ssh(command_line.folder, f"exec {python} -m hccl_tools explain --serve -- {there}")
    done = command_line("explain", "run1", "--ssh", program)

    lines = done.out.splitlines()
    assert lines[0].startswith("Rank 1 (device 0 of ")
    assert "port 60000" in lines[0]
    assert lines[1].startswith("  in hostb:")
    assert not any("is on hostb only" in line for line in lines)


def test_on_a_shared_disk_a_host_has_the_logs_of_its_own_ranks_only(
    command_line: CommandLine, run_dir: Path
) -> None:
    plan = json.loads((run_dir / "plan.json").read_text())
    plan["processes"][1]["host"] = "hostc"
    plan["processes"].append({"rank": 2, "host": "hostb", "log": "rank_2.log", "argv": ["x"], "device": 1})
    (run_dir / "plan.json").write_text(json.dumps(plan))
    (run_dir / "rank_1.log").write_text(PORT)
    here, python = shlex.quote(str(run_dir)), shlex.quote(sys.executable)
    program = ssh(command_line.folder, f"exec {python} -m hccl_tools explain --serve -- {here}")
    done = command_line("explain", "run1", "--ssh", program)

    lines = done.out.splitlines()
    assert lines[0].startswith("Rank 1 (device 0 of ")
    assert not any("hostb:" in line for line in lines)


def test_a_host_that_cannot_be_reached_costs_a_note(command_line: CommandLine, run_dir: Path) -> None:
    program = ssh(
        command_line.folder, "echo 'ssh: connect to host hostb port 22: No route to host' >&2; exit 255"
    )
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code == 0
    assert "  hostb: ssh: connect to host hostb port 22: No route to host" in done.out


@pytest.mark.parametrize("answer", ["{}", "nonsense", '{"sources": [], "events": [["X"]], "notes": []}'])
def test_an_answer_of_another_form_costs_a_note(
    command_line: CommandLine, run_dir: Path, answer: str
) -> None:
    program = ssh(command_line.folder, f"echo {shlex.quote(answer)}")
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code == 0
    assert "  hostb sent an answer that this version does not understand" in done.out.splitlines()
