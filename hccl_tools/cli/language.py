"""The option ``--lang``: whether findings also have a line in Chinese, and the language of pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from hccl_tools import load_part
from hccl_tools.cli.values import Choice
from hccl_tools.notation import screen

if TYPE_CHECKING:
    from collections.abc import Callable

    #: From an id to its Chinese line, "" if there is none; ``None`` if the language is English.
    Chinese = Callable[[str], str] | None

#: The variables of the locale of messages: the first one that is set decides (POSIX).
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")


def _chinese(ctx: click.Context, _param: click.Parameter, value: str | None) -> Chinese:
    """Return where Chinese lines are from: the option overrides the variable, which overrides the locale."""
    chosen = value or _of_locale()
    if chosen != "zh" or ctx.resilient_parsing:
        return None
    line_of: Callable[[str], str] = load_part("zh.lines").line_of
    return line_of


def _of_locale() -> str:
    stated = next((value for name in _LOCALE if (value := os.environ.get(name))), "")
    return "zh" if stated.startswith("zh") else "en"


#: The value passed to the command has the Chinese lines. It is known before ``--list`` prints.
lang = click.option(
    "--lang",
    "chinese",
    type=Choice(["zh", "en"]),
    envvar="HCCL_TOOLS_LANG",
    show_envvar=True,
    is_eager=True,
    callback=_chinese,
    help="zh: with a line in Chinese for each. Default: the locale.",
)


#: The value passed to the command is the language of pages, ``zh`` or ``en``.
of_pages = click.option(
    "--lang",
    "pages",
    type=Choice(["zh", "en"]),
    envvar="HCCL_TOOLS_LANG",
    show_envvar=True,
    callback=lambda _ctx, _param, value: value or _of_locale(),
    help="The language of the pages. Default: the locale.",
)


def with_lines(row: str, identifier: str, chinese: Chinese) -> str:
    """Return a row of a list, with the Chinese line of its id below it."""
    line = chinese(identifier) if chinese else ""
    return "\n".join([row, *screen.wrapped(f"  = 中文: {line}", screen.width(), "    ")]) if line else row
