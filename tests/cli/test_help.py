"""``--help`` of every command fits the terminal, and its examples can be copied."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from hccl_tools.cli import COMMANDS
from hccl_tools.notation.screen import cells

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

MORE = {"scaling": ("report", "run"), "key": ("create", "copy", "status")}
NAMES = [(), *((name, *more) for name in COMMANDS for more in ((), *((one,) for one in MORE.get(name, ()))))]


@pytest.mark.parametrize("columns", [80, 60])
def test_every_line_fits(command_line: CommandLine, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    helps = {names: command_line(*names, "--help").out for names in NAMES}
    wide = {
        names: [line for line in text.splitlines() if cells(line) > columns and " " in line.strip()]
        for names, text in helps.items()
    }

    assert all(text.startswith("Usage: hccl-tools") for text in helps.values())
    assert {names: lines for names, lines in wide.items() if lines} == {}


@pytest.mark.parametrize("columns", [60, 72, 80])
def test_no_line_ends_inside_the_name_of_an_option(
    command_line: CommandLine, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in ("launch", "gen", "validate", "doctor"):
        lines = command_line(command, "--help").out.splitlines()

        assert [line for line in lines if re.search(r"--[a-z-]*-$", line)] == []


def test_an_explanation_has_its_column_or_a_line_of_its_own(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = command_line("show", "--help").out.splitlines()

    assert "    hccl-tools show hccl_2s_16p.json --here  the server, devices and ranks of" in lines
    at = lines.index("    hccl-tools show hccl_2s_16p.json -o topo.html")
    assert lines[at + 1] == "                                             a page to search, fold and zoom"


def test_a_command_that_is_too_long_goes_on_as_a_shell_reads_it(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = command_line("scaling", "run", "--help").out
    examples = text.partition("Examples:\n")[2].replace("\\\n", " ").splitlines()

    assert shlex.split(examples[2])[:8] == [
        "hccl-tools", "scaling", "run", "--nproc-per-node", "1,2", "--from", "epoch 1/", "--to",
    ]  # fmt: skip
