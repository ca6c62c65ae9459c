"""What a user sees who types the word of another tool for a command."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
import pytest

from hccl_tools import cli
from hccl_tools.cli import other_names

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

_COMPLETION = (
    'completion needs no command: add `eval "$(_HCCL_TOOLS_COMPLETE={0}_source hccl-tools)"` to ~/.{0}rc'
)
_DOCTOR = "`hccl-tools doctor --strict job.json` checks whether hosts are ready"


@pytest.mark.parametrize(
    ("call", "help_line"),
    [
        ("generate", "`hccl-tools gen` writes the rank table of this host"),
        ("generate --simulate 910a", "`hccl-tools gen --simulate 910a` writes the rank table of this host"),
        ("verify job.json", "`hccl-tools validate job.json` checks a table"),
        ("check --strict job.json",
         "`hccl-tools validate --strict job.json` checks a table; " + _DOCTOR),
        ("run -n 2 train.py --lr 1", "`hccl-tools launch -n 2 train.py --lr 1` starts a job"),
        ("run", "`hccl-tools launch --rank-table FILE train.py` starts a job"),
        ("ps -ef", "`hccl-tools jobs` lists the runs"),
        ("list --running", "`hccl-tools jobs --running` lists the runs"),
        ("kill 20261121", "`hccl-tools stop 20261121` ends a running job"),
        ("LIST", "`hccl-tools jobs` lists the runs"),
        ("fix job.json", "`hccl-tools validate --fix job.json` shows the corrections that are certain"),
        ("version", "`hccl-tools --version` prints the version"),
        ("help", "`hccl-tools --help` lists the commands"),
        ("help gen", "type `hccl-tools gen --help`"),
        ("help key create", "type `hccl-tools key create --help`"),
        ("help nothing", "`hccl-tools --help` lists the commands"),
        ("key generate --force", "`hccl-tools key create --force` creates the job key"),
        ("key kill", "see `hccl-tools key --help`"),
        ("completion zsh", _COMPLETION.format("zsh")),
        ("completion bash", _COMPLETION.format("bash")),
        ("complete fish",
         "completion needs no command: `_HCCL_TOOLS_COMPLETE=fish_source hccl-tools | source`"),
    ],
)  # fmt: skip
def test_a_word_of_another_tool_names_the_command(
    command_line: CommandLine, call: str, help_line: str
) -> None:
    words = call.split()
    wrong = words[1] if words[0] == "key" else words[0]

    done = command_line(*words)

    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [f'error: no such command "{wrong}"', f"  help: {help_line}"]


@pytest.mark.parametrize(
    ("call", "word", "help_line"),
    [
        ("job.json", "job.json",
         "`hccl-tools validate job.json` checks a table; `hccl-tools show job.json` shows it"),
        ("train.py --lr 1", "train.py",
         ("`hccl-tools launch -n 4 train.py --lr 1` starts it on 4 devices; "
          "with a rank table: --rank-table FILE")),
    ],
)  # fmt: skip
def test_a_file_in_place_of_a_command(
    command_line: CommandLine, call: str, word: str, help_line: str
) -> None:
    done = command_line(*call.split())

    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        f'error: "{word}" is not a command',
        f"  help: {help_line}",
    ]


@pytest.mark.parametrize("meaning", other_names.MEANINGS, ids=lambda meaning: meaning.line)
def test_every_command_that_is_named_can_be_called_so(meaning: other_names.Meaning) -> None:
    command: click.Command = cli.cli
    context = click.Context(cli.cli)
    arguments = shlex.split(f"{meaning.line} {meaning.example}")
    while isinstance(command, click.Group) and not arguments[0].startswith("-"):
        found = command.get_command(context, arguments.pop(0))
        assert found is not None
        command = found
    context = click.Context(command, **command.context_settings)

    _values, left, _order = command.make_parser(context).parse_args(arguments)

    assert left == []


def test_no_command_is_among_the_words() -> None:
    words = {word for meaning in other_names.MEANINGS for word in meaning.words}

    assert words & set(cli.COMMANDS) == set()


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_has_the_usual_option(command_line: CommandLine, option: str) -> None:
    done = command_line(option)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("hccl-tools ")
