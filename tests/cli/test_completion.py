"""What the shell's TAB key offers, asked as click's completion scripts ask."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from hccl_tools.cli import completion

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

#: Each test starts processes.
pytestmark = pytest.mark.slow

_PROGRAM = str(Path(sys.executable).parent / "hccl-tools")


def completed(typed: str) -> list[str]:
    """Return the answers for the last word of a command line, as ``type,value``."""
    environ = {
        **os.environ,
        "_HCCL_TOOLS_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    done = subprocess.run([_PROGRAM], capture_output=True, text=True, timeout=60, check=False, env=environ)

    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "typed",
    [
        "validate 21_d", "validate ", "validate -f json a.json b", "show 21_d", "merge a.json 21_d",
        "convert 21_d", "subset 21_d", "replace 21_d", "replace a.json --server x --with 21_d",
        "gen --hostfile ho", "key copy --hostfile ho", "doctor 21_d",
        "distribute 21_d", "distribute a.json -o ta",
        "gen --hccn-tool ./h", "gen -o ta", "launch --rank-table 21_d", "launch --rank_table 21_d",
        "launch --rank-table a.json tr", "launch --no-table --python .ve", "launch -n 2 --env-file e",
        "convert a.json --to 1.2 --super-pods po",
    ],
)  # fmt: skip
def test_files(typed: str) -> None:
    _, _, last = typed.rpartition(" ")

    assert completed(f"hccl-tools {typed}") == [f"file,{last}"]


def test_folders() -> None:
    assert completed("hccl-tools launch --log-dir lo") == ["dir,lo"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("va", ["validate"]),
        ("validate --st", ["--strict"]),
        ("launch --eng", ["--engine"]),
        ("key c", ["create", "copy"]),
        ("key create --f", ["--force"]),
        ("launch --engine s", ["slurm", "ssh"]),
        ("launch --emit rank-", ["rank_loop"]),
        ("convert a.json --to group", ["group_list"]),
        ("validate --product a3", ["a3", "a3-server"]),
        ("schema 1", ["1.0", "1.2"]),
        ("rules EI000", [f"EI000{number}" for number in range(1, 10)]),
        ("explain EI000", [f"EI000{number}" for number in range(1, 10)]),
        ("rules HCD10", [f"HCD10{number}" for number in range(1, 10)]),
        ("validate --select HCC20", [f"HCC20{number}" for number in range(1, 6)]),
        ("doctor --ignore HCD10", [f"HCD10{number}" for number in range(1, 10)]),
        ("gen --simulate a", ["a2", "a3", "a5"]),
        ("rules duplicate-r", ["duplicate-rank-id"]),
        ("guide first", ["first-table"]),
    ],
)
def test_words(typed: str, words: list[str]) -> None:
    assert completed(f"hccl-tools {typed}") == [f"plain,{word}" for word in words]


@pytest.mark.parametrize("command", ["logs", "stacks", "stop"])
def test_runs(command_line: CommandLine, command: str) -> None:
    for name in ("20010101-101530-a1b2", "20010102-093012-77e0"):
        command_line.write(f"log/{name}/plan.json", {"processes": []})
        command_line.write(f"elsewhere/{name[::-1]}/plan.json", {"processes": []})

    assert completed(f"hccl-tools {command} 20010102") == ["plain,20010102-093012-77e0"]
    assert "plain,latest" in completed(f"hccl-tools {command} ")
    assert completed(f"hccl-tools {command} --log-dir elsewhere 0e77") == ["plain,0e77-210390-20101002"]


#: Names that another user may give to a run: the shell's script puts them on the command line without quotes.
HOSTILE = (
    "20010103-101530-$(touch${IFS}made)",
    "20010103-101530-`id`",
    "20010103-101530-a;id",
    "20010103-101530-a b",
    "20010103-101530-*",
    "-20010103",
    "20010103-101530-a\nplain,id",
)


@pytest.mark.parametrize("command", ["logs", "stacks", "stop", "explain"])
def test_only_names_of_the_form_of_a_run_are_offered(command_line: CommandLine, command: str) -> None:
    for name in (*HOSTILE, "20010103-101530-a1b2-77"):
        command_line.write(f"log/{name}/plan.json", {"processes": []})

    assert completed(f"hccl-tools {command} 2001") == ["plain,20010103-101530-a1b2-77"]
    assert not [line for line in completed(f"hccl-tools {command} ") if "id" in line or "touch" in line]


def test_a_value_that_is_more_than_a_word_is_not_offered() -> None:
    kind = completion._Value(lambda _context: ["plain-1.0", "a b", "$(id)", "*", "~x", ""])

    found = kind.shell_complete(click.Context(click.Command("x")), click.Option(["--x"]), "")

    assert [one.value for one in found] == ["plain-1.0"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_of_the_page(shell: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "en" / "howto" / "installation.md").read_text(
        encoding="utf-8"
    )
    environ = {**os.environ, "_HCCL_TOOLS_COMPLETE": f"{shell}_source"}

    done = subprocess.run([_PROGRAM], capture_output=True, text=True, timeout=60, check=False, env=environ)

    assert done.returncode == 0
    assert "_hccl_tools_completion" in done.stdout
    assert f"_HCCL_TOOLS_COMPLETE={shell}_source hccl-tools" in page
