"""``--exclude``: hosts, or devices of hosts, that are left out of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools import load_part

if TYPE_CHECKING:
    from hccl_tools.notation.exclusion import Exclusion


def _parsed(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[Exclusion, ...]:
    if not values:
        return ()
    parsed: tuple[Exclusion, ...] = load_part("notation.exclusion").parse(values)
    return parsed


#: The attributes of the option; its value is a tuple of exclusions.
ATTRIBUTES: dict[str, Any] = {
    "multiple": True,
    "metavar": "HOST[:DEVICES]",
    "callback": _parsed,
    "help": "Leave out hosts, or devices of a host: node7, 10.0.0.[3-5], node7:0,1, [fd00::3]:0, or several "
    "joined with @. Repeatable.",
}
option = click.option("--exclude", **ATTRIBUTES)
