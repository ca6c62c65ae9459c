"""Make the page on the commands from click: docs/en/reference/commands.md."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import COMMANDS, cli

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """# Commands

<!-- made from --help by `python -m tests.support.reference_pages` -->

Also: [exit codes](exit_codes.md),
[environment variables](environment.md), [products](products.md).

| command | what it does |
| --- | --- |
"""


def commands() -> str:
    """Return the text of docs/en/reference/commands.md."""
    rows = "".join(f"| [`{name}`](#{name}) | {text} |\n" for name, text in COMMANDS.items())
    root = click.Context(cli, info_name="hccl-tools")
    return _HEAD + rows + "".join(line + "\n" for name in COMMANDS for line in _command(cli, root, name))


def _command(group: click.Group, parent: click.Context, name: str) -> Iterator[str]:
    command = group.get_command(parent, name)
    if command is None:
        raise ValueError(f"no command {name}")
    context = click.Context(command, info_name=name, parent=parent)
    yield from ("", f"## {context.command_path.partition(' ')[2]}", "")
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f"`{context.command_path} {usage}`", "")
    yield from _help(command.help or "")
    yield from _options(command, context)
    yield from ("", *_help(command.epilog or ""))
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            yield from _command(command, context, one)


def _help(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help; those whose lines click keeps are a block."""
    for paragraph in cleandoc(text).split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        if lines[0].strip() == "\b":
            yield from ("```text", *lines[1:], "```", "")
        else:
            yield from (*(line.strip() for line in lines), "")


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    records = [
        record
        for param in command.get_params(context)
        if "--help" not in param.opts and (record := param.get_help_record(context)) and record[1]
    ]
    if records:
        yield from ("| option | meaning |", "| --- | --- |")
    for names, meaning in records:
        text = re.sub(r"\s+", " ", meaning).replace("|", "\\|")
        yield f"| `{names.replace('|', chr(92) + '|')}` | {text} |"
