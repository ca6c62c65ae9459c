"""``--env`` of ``validate``: the environment variables of the job, which HCCL reads before the table."""

from __future__ import annotations

import os
import re

import click

from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import did_you_mean

_OPTION = "--env"
#: What follows ``--env`` as its value: an assignment, or a name without its value. Other words are files.
_VALUE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*|[A-Z_][A-Z0-9_]*", re.DOTALL)


class Command(click.Command):
    """A command whose ``--env`` may stand alone, also before a file: the variables of the shell."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; ``--env`` without a value becomes ``--env=``."""
        end = args.index("--") if "--" in args else len(args)
        alone = {
            place
            for place, word in enumerate(args[:end])
            if word == _OPTION and (place + 1 >= end or _VALUE.fullmatch(args[place + 1]) is None)
        }
        return super().parse_args(
            ctx, [f"{word}=" if place in alone else word for place, word in enumerate(args)]
        )


def _names() -> tuple[str, ...]:
    """Return the variables of which HCCL refuses values."""
    from hccl_tools.variables.rows import NAMES  # noqa: PLC0415  (1.3 ms; few calls name variables)

    return tuple(NAMES)


def _read(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    if not values:
        return {}
    from_shell = {name: os.environ[name] for name in _names() if name in os.environ} if "" in values else {}
    return from_shell | dict(map(_assignment, filter(None, values)))


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(
            f'{_OPTION} "{text}" has no value',
            hint=f'use {_OPTION} "{name}=VALUE", or {_OPTION} alone for the variables of this shell',
        )
    if name not in _names():
        raise UsageError(
            f"{_OPTION}: HCCL accepts every value of {name}, or does not read it",
            hint=f"{did_you_mean(name, _names())} HCCL refuses values of: {', '.join(_names())}".lstrip(),
        )
    return name, value


env = click.option(
    _OPTION,
    multiple=True,
    metavar="[NAME=VALUE]",
    callback=_read,
    help="A variable of HCCL in the job's environment; without a value, those of this shell.",
)
