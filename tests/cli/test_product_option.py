"""``--product`` takes the names of chips and machines in every command, and says how it read them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

NOTE = "note: 910B4 is an a2\n"
COMMANDS = {
    "gen": ("gen", "--simulate", "910B4", "-o", "-"),
    "validate": ("validate", "job.json"),
    "show": ("show", "job.json"),
    "convert": ("convert", "job.json", "--to", "group_list", "-o", "-"),
    "merge": ("merge", "job.json", "-o", "-"),
    "replace": ("replace", "job.json", "--server", "10.0.0.2", "--with", "spare.json", "-o", "-"),
    "subset": ("subset", "job.json", "--devices", "0-2", "-o", "-"),
    "launch": ("launch", "--rank-table", "job.json", "--server", "10.0.0.2", "--dry-run", "train.py"),
}


@pytest.fixture
def job(command_line: CommandLine) -> CommandLine:
    """Tables of two Atlas A2 machines, ``job.json`` and ``spare.json``, and a script."""
    command_line("gen", "--simulate", "a2", "-o", "spare.json")
    command_line("gen", "--simulate", "a2:2", "--server_ip", "10.0.0.2", "-o", "job.json")
    command_line.write("train.py", "")
    return command_line


@pytest.mark.parametrize("name", COMMANDS)
def test_the_name_of_a_chip(job: CommandLine, name: str) -> None:
    done = job(COMMANDS[name][0], "--product", "910B4", *COMMANDS[name][1:])

    assert done.code == 0, done.err
    assert done.err.count(NOTE) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_the_variable(job: CommandLine, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_TOOLS_PRODUCT", "910B4")
    done = job(*COMMANDS[name])

    assert done.code == 0, done.err
    assert done.err.count("note: HCCL_TOOLS_PRODUCT: 910B4 is an a2\n") == 1
    monkeypatch.setenv("HCCL_TOOLS_PRODUCT", "910x")
    assert 'HCCL_TOOLS_PRODUCT: unknown product "910x"' in job(*COMMANDS[name]).err


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_name(job: CommandLine, name: str) -> None:
    done = job(COMMANDS[name][0], "--product", "910x", *COMMANDS[name][1:])

    assert done.code == 2
    assert 'unknown product "910x"' in done.err
    assert "a2 (910B, 910B1" in done.err


def test_a_set_that_only_a_910a_forbids_is_taken_for_a_910b(job: CommandLine) -> None:
    refused = job("subset", "job.json", "--devices", "0,4", "-o", "-")
    assert refused.code == 1
    assert "--product 910B4" in refused.err

    assert job("subset", "job.json", "--devices", "0,4", "--product", "910B", "-o", "-").code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"), [("910B4", "note: 910B4 is an a2\n"), ("910x", 'unknown product "910x"')]
)
def test_spawn_reads_the_same_names(name: str, words: str) -> None:
    script = f"import hccl_tools; hccl_tools.spawn(print, nprocs=1, cpu=True, product={name!r}, tail=None)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stderr.count(words) >= 1
