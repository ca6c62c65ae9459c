"""The commands that a message suggests, and whether the command line takes them."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout

import click

from hccl_tools import cli
from hccl_tools.errors import HcclToolsError

_SUGGESTED = re.compile(r"`hccl-tools( [^`]*)?`|^next: hccl-tools ([^\n]*)$", re.MULTILINE)
#: What a shell does with the output of a command is no part of the command.
_SHELL = frozenset({"|", ">", "2>", "&", "&&", "||", ";"})


def suggested(text: str) -> list[list[str]]:
    """Return the words of the commands that a text suggests, without those of pipes and files."""
    lines = [(found[1] or found[2] or "") for found in _SUGGESTED.finditer(text)]
    return [_until_pipe(shlex.split(line)) for line in lines]


def _until_pipe(words: list[str]) -> list[str]:
    end = next((place for place, word in enumerate(words) if word in _SHELL), len(words))
    return words[:end]


def refusal(words: list[str]) -> str:
    """Return why the command line does not take the words, as a user sees it; "" if it does.

    The command is not run.
    """
    group: click.Command = cli.cli
    context = click.Context(group, info_name="hccl-tools")
    rest = list(words)
    try:
        with redirect_stdout(io.StringIO()):  # `--help` is printed by the parser.
            return _refusal(group, context, rest)
    except click.exceptions.Exit:
        return ""
    except click.ClickException as error:
        return error.format_message()
    except HcclToolsError as error:
        return error.message


def _refusal(command: click.Command, context: click.Context, rest: list[str]) -> str:
    while isinstance(command, click.Group):
        if not rest or rest[0].startswith("-"):
            command.make_context("hccl-tools", rest or ["--help"])
            return ""
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        if not isinstance(found, click.Group):
            found.make_context(name, rest, parent=context)
            return ""
        command, context = found, click.Context(found, info_name=name, parent=context)
    return ""
