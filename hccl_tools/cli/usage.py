"""What is wrong with a call, in the style of all other errors; click has several styles."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


class Problem(NamedTuple):
    """A sentence, and what to do."""

    message: str
    hint: str


def problem(error: click.ClickException, args: Sequence[str], command_path: str) -> Problem:
    """Return what click found wrong with a call.

    Args:
        error: As click raised it.
        args: The call as it was typed; an option is named as its user wrote it.
        command_path: The command that was called, for errors that do not know theirs.
    """
    ctx = getattr(error, "ctx", None)
    command_path = ctx.command_path if ctx is not None else command_path
    hint = f"`{command_path} --help` shows how it is called"
    if isinstance(error, click.NoSuchOption):
        close = f"did you mean {error.possibilities[0]}? " if error.possibilities else ""
        of_command = _with_command(ctx, error.option_name, args) if ctx is not None else None
        return Problem(f"no such option {error.option_name}", of_command or close + hint)
    if isinstance(error, click.BadOptionUsage):
        return Problem(f"{error.option_name} {_misuse(error.option_name, args)}", hint)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return Problem(_missing(error.param), hint)
    if isinstance(error, click.BadParameter) and error.param is not None:
        return Problem(f"{_name(error.param, args)} {error.message}", hint)
    sentence = " ".join(error.format_message().split()).removesuffix(".")
    return Problem(sentence[:1].lower() + sentence[1:], _range_option(sentence, ctx) or hint)


def _with_command(ctx: click.Context, option: str, args: Sequence[str]) -> str | None:
    """Return what to type where an option of a command was given without the command."""
    if not isinstance(ctx.command, click.Group):
        return None
    for name in ctx.command.list_commands(ctx):
        command = ctx.command.get_command(ctx, name)
        if command is not None and _plain(option) in _options(command):
            return f"options follow their command: {ctx.command_path} {name} {shlex.join(args)}"
    return None


def _range_option(sentence: str, ctx: click.Context | None) -> str | None:
    """Return what to type where a device range was given without its option."""
    extra = re.search(r"unexpected extra argument \(([\[(0-9][\[\](),0-9 -]*)\)$", sentence)
    if extra is None or ctx is None or "--device-num" not in _options(ctx.command):
        return None
    return f'did you mean --device_num "{extra[1]}"?'


def _options(command: click.Command) -> set[str]:
    return {_plain(option) for param in command.params for option in param.opts}


def _misuse(option: str, args: Sequence[str]) -> str:
    """Return which of the two: only the last word of a call can lack its value."""
    given = any(_plain(arg).startswith(f"{_plain(option)}=") for arg in args)
    return "does not take a value" if given and _plain(args[-1]) != _plain(option) else "needs a value"


def _missing(param: click.Parameter) -> str:
    if isinstance(param, click.Argument):
        return f"missing argument {param.metavar}"
    choices = f": one of {', '.join(param.type.choices)}" if isinstance(param.type, click.Choice) else ""
    return f"missing option {_name(param, ())}{choices}"


def _name(param: click.Parameter, args: Sequence[str]) -> str:
    """Return an option as it was typed, else its first long name."""
    known = {_plain(name) for name in param.opts}
    for arg in args:
        name = arg.partition("=")[0]
        if _plain(name) in known:
            return name
        if arg[:2] in known:
            return arg[:2]
    return next((name for name in param.opts if name.startswith("--")), param.opts[0])


def _plain(name: str) -> str:
    return name.replace("_", "-")
