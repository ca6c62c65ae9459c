"""Shell completion of values: files, runs, rules, formats, products.

The metavar or the name of a parameter determines its values.
"""

from __future__ import annotations

from importlib import import_module
from shlex import quote
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from hccl_tools.cli.values import Choice
from hccl_tools.doctor.registry import all_checks
from hccl_tools.explain.knowledge.registry import codes, messages
from hccl_tools.guide.topics import topics
from hccl_tools.rules.registry import all_rules
from hccl_tools.runs import index
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Values = Callable[[click.Context], Iterable[str]]

_FILES = {"FILE", "FILE...", "PATH", "DIR|FILE|-", "FILE|HOST", "PROGRAM", "PROGRAM ARGS...", "TABLE"}
_FOLDERS = {"DIR"}


def equip(command: click.Command) -> click.Command:
    """Replace the types of a command's parameters with types for completion."""
    for param in command.params:
        metavar = (getattr(param, "metavar", None) or "").strip("[]")  # [FILE] is optional
        values = _VALUES.get(f"{command.name} {param.name}") or _VALUES.get(str(param.name))
        if metavar in _FILES | _FOLDERS:
            param.type = click.Path(file_okay=metavar in _FILES)
        elif values is not None:
            param.type = _Value(values)
        elif isinstance(param.type, Choice):
            param.type = _Name(param.type)
    return command


class _Name(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    name = "name"

    def __init__(self, choice: Choice) -> None:
        self._choice = choice

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  (click's signature)
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self._choice.names(incomplete)]


class _Value(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    name = "value"

    def __init__(self, values: Values) -> None:
        self._values = values

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002  (click's signature)
        incomplete: str,
    ) -> list[CompletionItem]:
        # The shell's script does not quote a value: what is in it could run at Enter.
        return [
            CompletionItem(value)
            for value in self._values(ctx)
            if value.startswith(incomplete) and quote(value) == value
        ]


def _runs(ctx: click.Context) -> Iterable[str]:
    return ["latest", *index.completed(ctx.params.get("log_dir") or "log")]


def _rules(ctx: click.Context) -> Iterable[str]:
    return [*_selected(ctx), *(rule.facts.name for rule in all_rules().values()), *_codes(ctx)]


def _selected(_ctx: click.Context) -> Iterable[str]:
    return [*all_rules(), *all_checks()]


def _codes(_ctx: click.Context) -> Iterable[str]:
    return [*codes(), *messages()]


def _explained(ctx: click.Context) -> Iterable[str]:
    return [*_runs(ctx), *_codes(ctx)]


def _simulated(_ctx: click.Context) -> Iterable[str]:
    return [name for name, product in PRODUCTS.items() if product.simulated]


def _topics(_ctx: click.Context) -> Iterable[str]:
    return topics("en")


def _keys(module: str, name: str) -> Values:
    return lambda _ctx: getattr(import_module(f"hccl_tools.{module}"), name)


#: The name of a parameter, or of command and parameter -> the function that returns its values.
_VALUES: dict[str, Values] = {
    "logs run": _runs,
    "stacks run": _runs,
    "stop run": _runs,
    "explain what": _explained,
    "rules words": _rules,
    "guide words": _topics,
    "schema table_format": _keys("formats", "MODULES"),
    "select": _selected,
    "ignore": _selected,
    "simulate": _simulated,
    "product": _keys("table.products", "PRODUCTS"),
}
