"""Shared options of commands, both spellings of option names, colours, and standard output."""

from __future__ import annotations

import os
import sys
from glob import glob, has_magic
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hccl_tools.cli import product_option
from hccl_tools.cli.help_option import QuickHelp
from hccl_tools.cli.values import EITHER_SPELLING, Choice
from hccl_tools.errors import InputError
from hccl_tools.notation.printable import is_in_workflow, on_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_F = TypeVar("_F", bound="Callable[..., Any]")


def command(
    name: str, *, epilog: str, kind: type[click.Command] = QuickHelp
) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command that accepts both spellings of its options; ``epilog`` contains the examples."""
    return click.command(
        name, cls=kind, epilog=f"\b\nExamples:\n{epilog}", context_settings=dict(EITHER_SPELLING)
    )


def together(*several: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Combine option decorators, applied from last to first: click shows options in reverse order."""

    def add(function: _F) -> _F:
        for option in several:
            function = option(function)
        return function

    return add


def _split_names(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for text in values for part in text.split(",") if (name := part.strip()))


def _output_format(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    return value or ("github" if is_in_workflow() else "text")


def _color(_ctx: click.Context, _param: click.Parameter, value: str) -> bool:
    """Return whether to use colours: the option overrides NO_COLOR, which overrides FORCE_COLOR."""
    if value != "auto":
        return value == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced != "0"
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _rules(name: str, text: str) -> Callable[[_F], _F]:
    return click.option(name, multiple=True, metavar="RULES", callback=_split_names, help=text)


select = _rules("--select", "Apply only the given rules, such as HCC2,HCC301.")
ignore = _rules("--ignore", "Ignore the given rules, such as HCC4,HCC602.")
product = click.option(
    "--product",
    metavar="NAME",
    callback=product_option.read,
    help=product_option.help_text("this host's, else the product of the table's format"),
)


def format_of_findings(*others: str) -> Callable[[_F], _F]:
    """Return the option for the format of findings, with further formats."""
    return click.option(
        "-f",
        "--format",
        "output_format",
        type=Choice(["text", "concise", "json", "junit", "github", "sarif", *others]),
        callback=_output_format,
        help="Output format. Default: text; github if GITHUB_ACTIONS=true.",
    )


output_format = format_of_findings()
#: The value passed to the command tells whether to use colours.
color = click.option(
    "--color",
    type=Choice(["auto", "always", "never"]),
    default="auto",
    callback=_color,
    help="Use colours; auto: on a terminal, unless NO_COLOR is set.",
)


def expand(name: str) -> list[str]:
    """Return the files that an argument names: the argument itself, or the matches of a quoted pattern.

    Raises:
        InputError: No file matches the pattern.
    """
    if os.path.lexists(name):
        return [name]
    if not has_magic(name):
        return [name]
    found = sorted(glob(name, recursive=True))  # noqa: PTH207  (Path.glob takes no absolute pattern)
    if not found:
        raise InputError(
            f"no file matches {name}", hint="check the pattern (it is relative to the current folder)"
        )
    return found


def write(pieces: Iterable[str]) -> None:
    """Write the pieces to standard output; characters that its encoding does not support are escaped."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    for piece in pieces:
        sys.stdout.write(on_stdout(piece))
    sys.stdout.flush()


mode = click.option("--mode", metavar="MODE", help="File mode, such as 640. Default: 0666 minus the umask.")
_force = click.option("--force", is_flag=True, help="Replace a file that contains another table.")
_output = click.option(
    "-o", "--output", metavar="DIR|FILE|-", help="Output path; - for stdout. Default: the current folder."
)


#: The frameworks of ``--target``.
TARGET = Choice(["mindspore", "torch", "mindie", "xllm"])
writing = together(mode, _force, _output)
