"""What every command does alike: help, mistakes in the call, an output that takes nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hccl_tools import cli

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

_TABLE_1P = """{"version": "1.0", "server_count": "1", "status": "completed", "server_list": [
{"server_id": "10.0.0.1", "device": [{"device_id": "0", "device_ip": "192.168.100.101", "rank_id": "0"}]}]}"""
#: Commands that print at length, for a folder with the table t.json.
_PRINTING = ["--help", "rules", "schema 1.0", "validate t.json", "show t.json", "gen --simulate 910a -o -"]


def in_shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which ``$tool`` is hccl-tools."""
    return subprocess.run(
        ["bash", "-c", f'tool="{sys.executable} -m hccl_tools"; {script}'],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["", *cli.COMMANDS])
def test_help_keeps_the_lines_of_examples(command_line: CommandLine, command: str) -> None:
    done = command_line(*command.split(), "--help")

    assert done.code == 0
    assert "\\b" not in done.out
    assert "\b" not in done.out
    for line in done.out.splitlines():
        assert line.count("hccl-tools ") <= 1 or "|" in line, line


@pytest.mark.parametrize(
    ("call", "sentence", "helper"),
    [
        ("gne", 'there is no command "gne"; did you mean "gen"?', "hccl-tools --help"),
        ("quux", 'there is no command "quux"', "hccl-tools --help"),
        ("--foo", "no such option", "hccl-tools --help"),
        ("validate --strickt t.json", "--strict", "hccl-tools validate --help"),
        ("validate", "missing argument", "hccl-tools validate --help"),
        ("convert t.json", "missing option", "hccl-tools convert --help"),
        ("schema 1.0 2.0", "unexpected extra argument", "hccl-tools schema --help"),
        ("launch -n none train.py", "invalid value for", "hccl-tools launch --help"),
    ],
)
def test_a_wrong_call_is_one_sentence(
    command_line: CommandLine, call: str, sentence: str, helper: str
) -> None:
    done = command_line(*call.split())

    assert done.code == 2
    assert done.out == ""
    assert sentence in done.sentence
    assert done.err.splitlines()[1:] == [f"  help: `{helper}` shows how it is called"]


def test_without_a_command_it_shows_the_help(command_line: CommandLine) -> None:
    done = command_line()

    assert "Commands:" in done.out + done.err
    assert "error:" not in done.err


@pytest.mark.parametrize("call", _PRINTING)
def test_a_full_disk_behind_stdout(tmp_path: Path, call: str) -> None:
    (tmp_path / "t.json").write_text(_TABLE_1P)

    done = in_shell(f"$tool {call} > /dev/full", tmp_path)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: standard output cannot be written: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("call", _PRINTING)
def test_a_closed_stdout(tmp_path: Path, call: str) -> None:
    (tmp_path / "t.json").write_text(_TABLE_1P)

    done = in_shell(f"$tool {call} >&-", tmp_path)

    assert done.returncode == 0
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("call", _PRINTING)
def test_a_reader_that_goes(tmp_path: Path, call: str) -> None:
    (tmp_path / "t.json").write_text(_TABLE_1P)

    done = in_shell(f"PYTHONUNBUFFERED=1 $tool {call} | true; echo ${{PIPESTATUS[0]}}", tmp_path)

    assert done.stdout.splitlines()[-1] in {"0", "141"}  # 0: it was through before the reader went
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("gen --simulate a2 --device_num 0-2", " --product a2"),
        ("gen --simulate a3", ""),
        ("gen --simulate 910a", ""),
        ("convert a3.json --to 1.0", " --product a3"),
        ("merge --product a2 t.json", " --product a2"),
        ("merge t.json", ""),
        ("subset --product a2 t.json --devices 0", " --product a2"),
    ],
)
def test_what_to_type_next_is_not_refused(command_line: CommandLine, call: str, named: str) -> None:
    """A table of a product that its format does not tell is launched with the product's name."""
    command_line.write("t.json", _TABLE_1P)
    command_line("gen", "--simulate", "a3", "-o", "a3.json")

    done = command_line(*call.split())

    assert done.code == 0, done.err
    (following,) = [line for line in done.err.splitlines() if line.startswith("next: ")]
    assert following.endswith(f".json{named} train.py")
    _, _, typed = following.partition("hccl-tools launch ")
    plan = command_line(
        "launch",
        "--dry-run",
        "--cpu",
        "--all-here",
        "--no-python",
        *typed.replace("train.py", "true").split(),
    )
    assert plan.code == 0, plan.err


def test_a_refused_table_names_where_the_product_is_from(command_line: CommandLine) -> None:
    done = command_line("gen", "--simulate", "910a", "--device_num", "0-2")

    assert done.code == 1
    assert "product 910a (--simulate)" in done.out.splitlines()[0]


def test_what_a_tool_said_cannot_steer_the_terminal(command_line: CommandLine) -> None:
    tool = command_line.folder / "hccn_tool"
    tool.write_text("#!/bin/sh\nprintf '\\033[31mno\\033[0m address\\n'\nexit 1\n")
    tool.chmod(0o755)

    done = command_line("gen", "--device_num", "0", "--hccn-tool", str(tool), "--product", "910a")

    assert done.code == 1
    assert "\x1b" not in done.err
    assert "\\x1b[31mno" in done.err
